"""One file a command: `add_arguments(parser)` and `run(options)`. What is heavy is imported in `run`."""
