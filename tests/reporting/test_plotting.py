"""The picture of a validation, and what is said where it cannot be drawn."""

import pytest

from ampere.core import Meter
from ampere.core.errors import RuntimeMissingError, StorageError
from ampere.evaluation.validation import Row, Validation
from ampere.reporting import draw_validation, plotting


def validation(*actuals, measured=False):
    estimates = {"additive": 1.02, "physics": 1.1, "flops": 0.5, "flops_intercept": 1.3}
    rows = tuple(
        Row(f"n{i}", a, a * 1.01, {"additive": a * 0.03}, {m: f * a for m, f in estimates.items()})
        for i, a in enumerate(actuals)
    )
    return Validation(
        "lenet5", rows, 15.0, Meter("cpu-time", measured, "5 W per busy core"), "tuned", "A CPU"
    ).to_json()


@pytest.mark.parametrize("actuals", [(0.01, 0.012, 0.011), (1e-5, 1.0, 3e4), (0.5,)])
def test_it_is_drawn_whatever_the_range(tmp_path, actuals):
    draw_validation(validation(*actuals), tmp_path / "new" / "v.png")
    assert (tmp_path / "new" / "v.png").stat().st_size > 10_000


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot write"):
        draw_validation(validation(1.0, 2.0), tmp_path / "file" / "v.png")


def test_without_matplotlib_one_line_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(plotting.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeMissingError, match=r"pip install 'ampere-energy\[plot\]'"):
        draw_validation(validation(1.0), tmp_path / "v.png")
