"""What becomes of errors nobody foresaw."""

from argparse import Namespace

import pytest

from ampere.cli import entry
from ampere.core.errors import BusyError


class Failing:
    def __init__(self, error):
        self.error = error

    def add_arguments(self, parser): ...

    def run(self, options):
        raise self.error


@pytest.fixture
def failing_with(monkeypatch, capsys):
    def run(error):
        monkeypatch.setattr(entry, "parse", lambda words: (Failing(error), Namespace()))
        return entry.main([]), capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (BusyError("p.json is in use: wait"), 8, "p.json is in use: wait"),
        (KeyboardInterrupt(), 130, "stopped"),
        (OSError(28, "No space left on device", "x.json"), 7, "No space left on device"),
        (ZeroDivisionError("division\nby zero"), 70, "internal error (ZeroDivisionError: division by zero)"),
    ],
)
def test_each_is_one_line_and_a_code(failing_with, error, code, says):
    ended, err = failing_with(error)
    assert ended == code
    assert err.startswith("ampere: ")
    assert err.count("\n") == 1
    assert says in err


def test_the_traceback_can_be_had(failing_with, monkeypatch):
    assert "AMPERE_DEBUG=1" in failing_with(ValueError("odd"))[1]
    monkeypatch.setenv("AMPERE_DEBUG", "1")
    assert "Traceback" in failing_with(ValueError("odd"))[1]
