"""From words to a command and its options. Only the module of the command that is asked for is imported."""

from __future__ import annotations

import argparse
import difflib
import textwrap
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn, Protocol

from ampere.core.errors import UsageError

TITLES = {
    "estimate": "how many joules training a model will cost, before it is trained",
    "compare": "which of two models, runtimes or devices is cheaper, and how sure that is",
    "profile": "learn what layers cost on this device, by training small networks",
    "attach": "the log of a bench meter, exported after profiling, as a profile's joules",
    "measure": "train a model for real and tell what an iteration costs",
    "validate": "hold estimates against real training, beside simpler methods",
    "evaluate": "the paper's experiments again, with your own device",
    "prune": "the same model with fewer channels, inside an energy budget",
    "search": "the best architectures of a space, inside an energy budget",
    "report": "one page that shows where the energy goes, and how sure that is",
    "trace": "the layers of a model, and a file of them that needs no PyTorch",
    "devices": "this machine, its meters, and the profiles stored here",
    "conformance": "whether a worker of your own keeps to Ampere's protocol",
}
EXAMPLES = """examples:
  ampere estimate lenet5                                  a family's original network
  ampere estimate net.py:build --input 10x3x32x32         a model of your own
  ampere estimate resnet --epochs 30 --samples 50000 --battery 15Wh

Every command has its own help: ampere estimate --help"""


class Layout(argparse.RawDescriptionHelpFormatter):
    """Sentences are wrapped to the terminal; what has lines of its own keeps them."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent)


class Command(Protocol):
    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace) -> None: ...


class Parser(argparse.ArgumentParser):
    """One line where argparse prints its usage and exits."""

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
    command: Command = import_module(f".commands.{name}", __package__)
    parser = _parser(f"ampere {name}", "", "")
    command.add_arguments(parser)
    return command, parser.parse_args(words)


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
