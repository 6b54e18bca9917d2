"""The table of docs/explanation/faults.md: which faults Ampere survives, the tests that hold it, and what they saw.

@pytest.mark.fault(16)                       marks a test of row 16, or a module by `pytestmark`
record_property("figure", "812 records")     is a figure that the test measured

python tests/faults/table.py                 runs the marked tests, and writes the page from what they recorded
python tests/faults/table.py run.xml         writes it from a run of `pytest --junitxml run.xml`
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "explanation" / "faults.md"
BEGIN, END = "<!-- written by tests/faults/table.py -->\n", "<!-- end -->\n"

# Fault, and what must hold.
ROWS = {
    1: ("`kill -9` in the middle of profiling", "no acknowledged record is lost, at most one variant is repeated"),
    2: ("a lock whose holder was killed", "the next run gets it; a second live run is refused and the holder named"),
    3: ("a meter vanishes, or a read fails", "no joules are invented; three attempts, then a stop that saves"),
    4: ("an energy counter runs over", "at most 1 µJ of error; a gap that could hide two runs over is invalid"),
    5: ("counters that only root can read", "one line with file, cause and remedies; nothing is replaced silently"),
    6: ("a counter is reset", "flagged; never negative, never taken for a run over"),
    7: ("a window too short, or 0 J", "60 samples or 100 updates a window; 0 J is never stored"),
    8: ("thermal throttling", "windows are flagged, and the estimate moves by at most 3 %"),
    9: ("background load", "windows are flagged, and the estimate moves by at most 3 %"),
    10: ("mains plugged or unplugged in a window", "the window is invalid; the power source is part of the device"),
    11: ("battery currents of any sign and unit", "right joules or a refusal"),
    12: ("a variant runs out of memory or crashes", "it costs that variant only; larger ones are not tried again"),
    13: ("NaN losses, infinite energies", "nothing non-finite is stored or estimated with"),
    14: ("a layer that is unknown or cannot be built", "every one is named, and the total is marked"),
    15: ("the clock is set, the machine sleeps", "the wall clock changes nothing; sleep invalidates a window"),
    16: ("a full or read-only disk", "a clean end; records are readable, the old profile is unchanged"),
    17: ("a damaged or truncated file", "refused in one line within 1 s; good lines of a journal still count"),
    18: ("a profile of another device or format", "refused unless insisted on; a newer format says upgrade"),
    19: ("an untrusted file", "nothing in it runs; refused within 2 s and 500 MB"),
    20: ("abuse of the HTTP interface", "own names and origins only, a token off loopback, bounded bodies and memory"),
    21: ("a remote device dies, hangs or lies", "noticed within three heartbeats; impossible readings are discarded"),
    22: ("a stranger reaches a listening worker", "no command without the token; limits on lines, time and clients"),
    23: ("a worker that lies or is broken", "every field is checked before use; one line names it; memory is bounded"),
    24: ("a small file with a huge cost", "2 s and 500 MB at most, or refused with the limit that it exceeds"),
    25: ("accepted numbers that break the estimate", "what loads can be estimated with and is finite, or is refused"),
    26: ("terminal escapes in names", "control characters are shown escaped everywhere"),
    27: ("a budget disturbs the job it guards", "its own readings; a failing meter warns and falls back"),
    28: ("a budget in a distributed job", "one shared decision; the energy of a node is counted once"),
    29: ("throttling in plain loops", "at least 90 % flagged, at most 3 % for nothing"),
    30: ("the memory limit of a container", "cgroup limits are read; a kill under pressure is out of memory"),
    31: ("a half-made virtual environment", "`start.py` repairs it or makes it again"),
    32: ("code in the current folder", "never imported by Ampere or a library; a model imports its neighbours"),
    33: ("an unguarded yardstick", "guarded like any block"),
    34: ("a journal line or file cut in half", "nothing valid is cut; files are written aside and renamed"),
    35: ("odd surroundings", "closed outputs, no home, ASCII, a missing folder: success or one clear line"),
    36: ("lost updates", "reading, changing and writing a file happens under one lock"),
    37: ("`ampere profile` itself is killed", "at most one variant repeated; the result as that of an undisturbed run"),
}


class Test(NamedTuple):
    file: str  # from the folder of the tests
    name: str

    def __str__(self) -> str:
        return f"`{self.file}`: {self.name.removeprefix('test_').replace('_', ' ')}"


def marked() -> dict[int, list[Test]]:
    """The tests of every row, read from the source of all tests."""
    found: dict[int, list[Test]] = {row: [] for row in ROWS}
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.fault(" in text:
            for row, name in _of_source(text):
                found.setdefault(row, []).append(Test(path.relative_to(TESTS).as_posix(), name))
    return found


def _of_source(text: str) -> Iterator[tuple[int, str]]:
    body = ast.parse(text).body
    module = [s.value for s in body if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == "pytestmark"]
    for statement in body:
        if isinstance(statement, ast.FunctionDef) and statement.name.startswith("test_"):
            for row in dict.fromkeys(_rows([*module, *statement.decorator_list])):
                yield row, statement.name


def _rows(expressions: list[ast.expr]) -> Iterator[int]:
    for expression in expressions:
        for call in ast.walk(expression):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.fault":
                yield from (ast.literal_eval(argument) for argument in call.args)


def written(page: str, seen: dict[Test, list[str]]) -> str:
    """The page with its table made anew; what was not seen to pass is said."""
    tests = marked()
    lines = ["", "| # | fault | what holds | seen |", "|---|---|---|---|"]
    for row, (fault, holds) in ROWS.items():
        results = [result for test in tests[row] for result in seen.get(test, ["not run"])]
        lines.append(f"| {row} | {fault} | {holds} | {_summary(results) if tests[row] else '**no test**'} |")
    lines += ["", "## The tests of each row", ""]
    for row in ROWS:
        lines += [f"**{row}.** {ROWS[row][0]}", "", *(f"- {test}" for test in tests[row]), ""]
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    return before + BEGIN + "\n".join(lines) + END + after


def _summary(results: list[str]) -> str:
    passed = sum(result == "passed" for result in results)
    others = list(dict.fromkeys(result for result in results if result != "passed"))
    return "; ".join([*others, f"{passed} passed"] if passed else others).replace("|", "/")


def seen_in(report: Path) -> dict[Test, list[str]]:
    """The results of a run: `passed` once for each case, `failed`, why it was skipped, and figures."""
    found: dict[Test, list[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.get("classname", "").replace(".", "/").removeprefix("tests/") + ".py"
        results = found.setdefault(Test(file, case.get("name", "").split("[")[0]), [])
        results += [str(p.get("value")) for p in case.iter("property") if p.get("name") == "figure"]
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            results.append("**failed**")
        else:
            results.append("passed" if skipped is None else f"skipped ({skipped.get('message')})")
    return found


def listed(page: str) -> dict[int, list[str]]:
    """The tests that the page lists for each row."""
    found: dict[int, list[str]] = {}
    for line in page.split(BEGIN)[1].split(END)[0].splitlines():
        if heading := re.match(r"\*\*(\d+)\.\*\* ", line):
            row = int(heading[1])
            found[row] = []
        elif line.startswith("- "):
            found[row].append(line.removeprefix("- "))
    return found


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(arguments[0]) if arguments else Path(folder) / "run.xml"
        if not arguments:
            files = sorted({str(TESTS / test.file) for tests in marked().values() for test in tests})
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-m",
                "fault",
                "-o",
                "junit_family=xunit1",
                f"--junitxml={report}",
            ]
            subprocess.run([*command, *files], cwd=TESTS.parent, check=False)
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), seen_in(report)), encoding="utf-8")
    print(f"written: {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
