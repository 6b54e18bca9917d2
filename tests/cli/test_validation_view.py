"""The table of a validation: the best method first, ours marked."""

from ampere.cli.commands.validate import show
from ampere.core import Meter
from ampere.evaluation.validation import Row, Validation


def test_the_best_comes_first_and_ours_is_marked(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    row = Row("n", 1.0, 1.02, {"additive": 0.05}, {"additive": 1.05, "physics": 1.01, "flops": 1.4})
    show(Validation("cnn5", (row,), 15.0, Meter("cpu-time", False, "5 W per busy core"), "tuned", "a CPU"))
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines[3:7]]
    assert names == ["physics", "repeatability", "→", "flops"]
    assert lines[5].startswith("→ additive")
    assert lines[3].startswith("  physics")
