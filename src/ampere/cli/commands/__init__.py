"""One file a command: `add_arguments(parser)` and `run(options)` parse, call the API and draw."""
