"""Clients of a federated job: cheap and useful ones train, batteries and the budget are kept, none is forgotten."""

import pytest

from ampere.core.errors import UsageError
from ampere.fleet.selection import Client, Selector


def fleet(**more) -> Selector:
    cheap = {f"cheap {n}": Client(10.0, 1.0) for n in range(5)}
    return Selector(cheap | {f"costly {n}": Client(100.0, 10.0) for n in range(5)}, **more)


def trained(selector: Selector, rounds: int, count: int) -> list[list[str]]:
    chosen = []
    for n in range(1, rounds + 1):
        names = selector.select(n, count)
        for name in names:
            selector.report(n, name, loss=1.0 / n)
        chosen.append(names)
    return chosen


def test_cheap_clients_train_more_often_and_none_is_forgotten():
    names = [name for round_ in trained(fleet(), 40, 5) for name in round_]
    cheap = sum(name.startswith("cheap") for name in names)
    assert cheap > 0.6 * len(names)
    assert len({*names}) == 10


def test_a_round_has_as_many_clients_as_wanted_each_once():
    for names in trained(fleet(), 5, 6):
        assert len(names) == len({*names}) == 6


def test_the_budget_is_kept():
    selector = fleet(budget_joules=200.0)
    rounds = trained(selector, 50, 4)
    assert selector.spent_joules <= 200.0
    assert rounds[-1] == []


def test_a_battery_is_kept_with_its_uncertainty():
    selector = Selector({"phone": Client(10.0, 3.0, battery_joules=32.0), "board": Client(10.0)})
    trained(selector, 20, 2)
    assert selector.spent_by("phone") == 10.0 * 2  # a third round may need 15 J, and 12 J are left
    assert selector.spent_by("board") == 200.0


def test_what_a_client_reports_replaces_what_was_estimated():
    selector = Selector({"phone": Client(10.0)})
    selector.report(1, "phone", joules=40.0)
    assert selector.joules("phone") == 40.0
    assert selector.spent_joules == 40.0


def test_a_client_that_still_learns_is_preferred():
    selector = Selector({"learnt": Client(10.0), "learning": Client(10.0)})
    selector.report(1, "learnt", loss=0.01)
    selector.report(1, "learning", loss=2.0)
    assert selector.select(2, 1) == ["learning"]


def test_only_clients_that_are_there_train():
    assert fleet().select(1, 3, ["costly 1"]) == ["costly 1"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Selector({}),
        lambda: Selector({"a": Client(0.0)}),
        lambda: Selector({"a": Client(1.0)}, budget_joules=0.0),
        lambda: Selector({"a": Client(1.0)}, confidence=1.0),
        lambda: fleet().report(1, "nobody"),
    ],
)
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises(UsageError):
        make()
