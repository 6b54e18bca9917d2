"""Energy budgets in a test suite: the fixture `ampere_budget`, and a marker of the same name with its options.

    @pytest.mark.ampere_budget(device="simulated:phone-android")
    def test_training_stays_cheap(ampere_budget):
        ampere_budget("net.py:build", joules="5mJ")                    # no more than this for an iteration
        ampere_budget("net.py:build", baseline="energy.json")          # no more than before, by `ampere check --write`

pytest loads this file in every run of a project where Ampere is installed: nothing heavy is imported until it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ampere.api import EnergyCheck
    from ampere.estimation.estimate import Estimate

MARKER = "ampere_budget(**options): options of the fixture ampere_budget in this test"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture(name="ampere_budget")
def energy_budget(request: pytest.FixtureRequest) -> Callable[..., Estimate | EnergyCheck]:
    """Fails the test where a model's training costs more than allowed, with the whole sentence as the reason."""
    usual: dict[str, Any] = {}
    for marker in reversed([*request.node.iter_markers("ampere_budget")]):  # the closest one counts most
        usual.update(marker.kwargs)

    def assert_affordable(
        model: Any,
        inputs: Any = None,
        *,
        joules: float | str | None = None,
        baseline: Path | str | None = None,
        max_increase: float | None = None,
        **options: Any,
    ) -> Estimate | EnergyCheck:
        from ampere.core.errors import MoreExpensive

        asked = {"joules": joules, "baseline": baseline, "max_increase": max_increase}
        merged = {**usual, **options, **{name: value for name, value in asked.items() if value is not None}}
        try:
            return _affordable(model, inputs, **merged)
        except MoreExpensive as error:
            pytest.fail(str(error), pytrace=False)

    return assert_affordable


def _affordable(
    model: Any,
    inputs: Any,
    *,
    joules: float | str | None = None,
    baseline: Path | str | None = None,
    max_increase: float = 0.05,
    **options: Any,
) -> Estimate | EnergyCheck:
    from ampere.api import check, estimate
    from ampere.core import units
    from ampere.core.errors import MoreExpensive, UsageError

    if (joules is None) == (baseline is None):
        raise UsageError("ampere_budget needs joules='5mJ' or baseline='energy.json': give one of them")
    if baseline is not None:
        found = check(model, baseline, inputs, max_increase=max_increase, **options)
        found.raise_if_failed()
        return found
    allowed = units.parse_energy(joules, "joules") if isinstance(joules, str) else float(joules or 0.0)
    made = estimate(model, inputs, **options)
    low, high = map(units.joules, made.interval)
    if made.interval[0] > allowed:  # noise does not explain it
        raise MoreExpensive(
            f"{made.network or 'the model'} costs {units.joules(made.joules)} per iteration (90 %: {low} to {high}), "
            f"and {units.joules(allowed)} are allowed"
        )
    return made
