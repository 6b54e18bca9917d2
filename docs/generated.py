"""Text that the site takes from the source: the command line, the public API and the list of decisions.

A page says where with a comment, such as `<!-- generated: commands -->`.
"""

import argparse
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import ampere
from ampere.cli.parsing import TITLES

DOCS = Path(__file__).parent
BEGINNING = re.compile(r"\| ?|- |\d+\. ")
MARKER = re.compile(r"<!-- generated: (\w+) -->")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Called by MkDocs for every page."""
    return separated(MARKER.sub(lambda found: "\n".join(SECTIONS[found[1]]()), markdown))


def separated(markdown: str) -> str:
    """Tables and lists with a blank line before them, which GitHub does not need and MkDocs does."""
    lines: list[str] = []
    in_code = inside = False
    for line in markdown.splitlines():
        begins = not in_code and bool(BEGINNING.match(line))
        if begins and not inside and lines and lines[-1].strip():
            lines.append("")
        in_code ^= line.lstrip().startswith("```")
        inside = begins or (inside and line.startswith("  "))
        lines.append(line)
    return "\n".join(lines)


def commands() -> Iterator[str]:
    yield from ("| command | |", "|---|---|")
    yield from (f"| [`ampere {name}`](#ampere-{name}) | {title} |" for name, title in TITLES.items())
    for name in TITLES:
        yield from command(name)


def command(name: str) -> Iterator[str]:
    parser = argparse.ArgumentParser(prog=f"ampere {name}", add_help=False)
    import_module(f"ampere.cli.commands.{name}").add_arguments(parser)
    operands = " ".join(operand(action) for action in parser._actions if not action.option_strings)
    yield from ("", f"## ampere {name}", "", parser.description or "", "")
    yield from ("```text", f"ampere {name} [options] {operands}".rstrip(), "```")
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
        if actions:
            yield from ("", f"**{(group.title or '').capitalize()}**", "", "| argument | |", "|---|---|")
            yield from (row(parser, action) for action in actions)
    if parser.epilog:
        yield from ("", "```text", parser.epilog.strip(), "```")


def operand(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    forms = {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}
    return forms.get(str(action.nargs), name)


def row(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else f" {{{','.join(map(str, action.choices))}}}" if action.choices else None
    value = f" {action.metavar or action.dest.upper()}" if value is None else value
    written = ", ".join(name + value for name in action.option_strings) or operand(action)
    meaning = plain(cell((action.help or "") % {**vars(action), "prog": parser.prog}))
    required = " *(required)*" if action.option_strings and action.required else ""
    return f"| `{cell(written)}` | {meaning}{required} |"


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def plain(text: str) -> str:
    """Text without the characters that Markdown gives a meaning; `code` stays code."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"[<\[\]*_]", lambda found: f"&#{ord(found[0])};", part) for part in parts[::2]]
    return "`".join(parts)


def public() -> Iterator[str]:
    """Every name of `ampere.__all__`, from the docstring at the place where it is defined."""
    named = {name: getattr(ampere, name) for name in ampere.__all__ if not name.startswith("_")}
    yield "## Functions"
    yield from (entry(name, found) for name, found in named.items() if not inspect.isclass(found))
    yield "## Classes"
    yield from (entry(name, found) for name, found in named.items() if inspect.isclass(found))


def entry(name: str, found: type) -> str:
    options = f"    options:\n      heading: ampere.{name}\n      heading_level: 3\n"
    return f"\n::: {found.__module__}.{found.__qualname__}\n{options}"


def decisions() -> Iterator[str]:
    for path in sorted(DOCS.glob("decisions/0*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        yield f"- [{title}]({path.name})"


SECTIONS = {"commands": commands, "public": public, "decisions": decisions}
