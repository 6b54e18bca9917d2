"""Plain words: a short list of banned ones is looked for in file names, public names, help texts and strings."""

import ast
import re
from pathlib import Path

import pytest

from ampere.cli.parsing import TITLES, command_parser

SOURCE = Path(__file__).parents[1] / "src" / "ampere"
BANNED = re.compile(
    r"\b(told|dear|dearer|dearest|sureness|surer|besides|doubts?|doubted|doubtful|knowing|rivals?)\b", re.IGNORECASE
)
NAME_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

FILES = sorted(SOURCE.rglob("*.py"))


def in_words(name: str) -> str:
    """`dearest first` of dearest_first and DearestFirst."""
    return " ".join(NAME_PARTS.findall(name))


def public_names(tree: ast.Module) -> list[str]:
    defined = [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    return [name for name in defined if not name.startswith("_")]


def strings(tree: ast.Module) -> list[tuple[int, str]]:
    """Messages, labels and docstrings, with their lines."""
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [(node.lineno, node.value) for node in constants]


def test_the_pattern_finds_what_is_meant_and_nothing_else():
    for text in ("told by the yardstick", "the dearest layers", "what to doubt", "to be surer", in_words("RivalsOf")):
        assert BANNED.search(text), text
    for text in ("told_as_a_key", "undoubtedly", "unknown", "endearing", "a rivalry"):
        assert not BANNED.search(text), text


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_source_files_use_plain_words(path):
    names = [*path.relative_to(SOURCE).with_suffix("").parts]
    tree = ast.parse(path.read_text())
    found = [name for name in (*names, *public_names(tree)) if BANNED.search(in_words(name))]
    found += [f"line {line}: {text.strip()[:80]}" for line, text in strings(tree) if BANNED.search(text)]
    assert found == []


@pytest.mark.parametrize("command", TITLES)
def test_help_uses_plain_words(command):
    help_text = command_parser(command)[1].format_help()
    assert BANNED.findall(f"{TITLES[command]} {help_text}") == []
