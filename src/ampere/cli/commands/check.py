"""`ampere check`: has a change made training more expensive?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ampere.cli import arguments, option_values
from ampere.cli.console import Display, print_json


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "A gate for continuous integration: compares what training a model costs with its baseline. It fails (exit "
        "code 11) where that is more than --max-increase, and more than noise explains. Both are estimated on the "
        "machine at hand, so the baseline may come from another one. A summary in Markdown is printed.",
        "ampere check net.py:build --baseline energy.json --write",
        "ampere check net.py:build --baseline energy.json --max-increase 5%",
        "ampere check net.py:build --baseline energy.json --summary summary.md",
    )
    arguments.add_model(parser, ", or a file of `ampere trace`")
    parser.add_argument(
        "--baseline", metavar="FILE", required=True, help="a file of --write, or of `ampere estimate --json`"
    )
    parser.add_argument(
        "--max-increase",
        metavar="SHARE",
        type=option_values.increase,
        default=0.05,
        help="how much more an iteration may cost: 5%% (default) or 0.05",
    )
    parser.add_argument("--write", action="store_true", help="write the baseline: what training costs now is accepted")
    parser.add_argument("--summary", metavar="FILE", help="also append the summary to this file")
    arguments.add_allocator(parser, "system")
    arguments.add_device(parser)
    arguments.add_profile_choice(parser)
    arguments.add_other_device(parser)
    arguments.add_method(parser)
    arguments.add_setup(parser)
    arguments.add_meter(parser, "what is known of this CPU")
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.api import check
    from ampere.storage.files import append

    with arguments.open_device(options) as device, Display(options.quiet) as display:
        found = check(
            arguments.model(options.model, options),
            options.baseline,
            max_increase=options.max_increase,
            write=options.write,
            **vars(arguments.api_options(options, device, display)),
        )
    summary = found.to_markdown()
    if options.summary:
        append(Path(options.summary), summary)
    if options.json:
        print_json(found.to_json())
    else:
        print(summary, end="")
    found.raise_if_failed()
