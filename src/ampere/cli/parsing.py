"""From words to a command and its options. Only the module of that command is imported."""

from __future__ import annotations

import argparse
import difflib
import textwrap
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn, Protocol

from ampere.core.errors import UsageError

from .option_values import joined_quantities

TITLES = {
    "estimate": "how many joules training a model will cost, before it is trained",
    "compare": "which of several models, runtimes or devices is cheaper, with what probability",
    "profile": "learn what layers cost on this device, by training small networks",
    "attach": "add the log of a bench meter to a profile, after profiling",
    "measure": "train a model for real and report what an iteration costs",
    "check": "fail where a change makes training more expensive than its baseline",
    "validate": "compare estimates with real training, and with simpler methods",
    "evaluate": "run the paper's experiments on your own device",
    "tune": "find what makes training a model cheaper without changing what it learns",
    "prune": "remove channels of a model until it fits an energy budget",
    "search": "find the best architectures of a space inside an energy budget",
    "fleet": "check, profile and estimate on many devices at the same time",
    "schedule": "assign jobs to the devices of a fleet, inside batteries and deadlines",
    "serve": "explore models and devices in a browser, and answer other programs",
    "report": "write one HTML page that shows where the energy goes",
    "trace": "show the layers of a model, or write them to a file",
    "calibrate": "learn the watts of this device's cores, where its joules are modelled",
    "catalogue": "share profiles, and use those of others",
    "devices": "show this machine, its meters, and the profiles stored here",
    "conformance": "check whether a worker of your own follows Ampere's protocol",
}
EXAMPLES = """examples:
  ampere estimate lenet5                              one of the built-in models
  ampere estimate net.py:build --input 10x3x32x32     a model of your own
  ampere estimate resnet --epochs 30 --samples 50000 --battery 15Wh

Every command has its own help: ampere estimate --help"""


class Layout(argparse.RawDescriptionHelpFormatter):
    """Wraps a text of one line to the terminal; a text of several lines keeps them."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent)


class Command(Protocol):
    """A module of `commands/`."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace) -> None: ...


class Parser(argparse.ArgumentParser):
    """Raises an error of one line where argparse prints its usage and exits."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def parse(words: Sequence[str]) -> tuple[Command, argparse.Namespace]:
    parser = _parser("ampere", "How many joules training a neural network will cost on this device.", EXAMPLES)
    parser.add_argument("--version", action="version", version=f"ampere {import_module('ampere').__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for name, title in TITLES.items():
        commands.add_parser(name, help=title, add_help=False)
    if not words:
        parser.print_help()
        raise SystemExit(UsageError.exit_code)
    if words[0].startswith("-"):
        parser.parse_args(words)
    return _parse_command(words[0], words[1:])


def _parse_command(name: str, words: Sequence[str]) -> tuple[Command, argparse.Namespace]:
    if name not in TITLES:
        near = difflib.get_close_matches(name, TITLES, n=1)
        raise UsageError(f"there is no command {name!r}: {_hint(near)} (see ampere --help)")
    command, parser = command_parser(name)
    return command, parser.parse_args(joined_quantities(words))


def command_parser(name: str) -> tuple[Command, Parser]:
    """A command's module, and its parser with all options."""
    command: Command = import_module(f".commands.{name}", __package__)
    parser = _parser(f"ampere {name}", "", "")
    command.add_arguments(parser)
    return command, parser


def _hint(near: Sequence[str]) -> str:
    return f"did you mean {near[0]}?" if near else f"the commands are {', '.join(TITLES)}"


def _parser(prog: str, description: str, epilog: str) -> Parser:
    return Parser(
        prog=prog,
        description=description,
        epilog=epilog,
        formatter_class=Layout,
        allow_abbrev=False,
    )
