"""What is measured on a machine that others use too: again, until it is clear or no more rounds are left."""

import time
from collections.abc import Callable
from statistics import median

import pytest
from _pytest.runner import runtestprotocol

ATTEMPTS, PAUSE_SECONDS = 3, 3.0
MOST_IN_VAIN = 3
AGAIN = "attempts"  # the property of a test that was repeated
_in_vain = []  # tests that failed in all attempts: where that is many, all is broken, and nothing is tried again


def median_off(bar: float, measured: "Callable[[], float]", rounds: int = 7) -> float:
    """The median of all rounds' relative errors, once it is within the bar.

    Neighbours disturb single rounds either way; a measurement that is wrong is wrong in the median of all.
    """
    errors = [measured()]
    while abs(median(errors)) > bar and len(errors) < rounds:
        errors.append(measured())
    return abs(median(errors))


def least(bar: float, measured: "Callable[[], float]", rounds: int = 4) -> float:
    """The least of all rounds, once it is within the bar: neighbours add to a wait, never take from it."""
    found = measured()
    for _ in range(rounds - 1):
        if found < bar:
            break
        found = min(found, measured())
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """A test of a measurement that fails is done again from the start, fixtures too. What is wrong fails each time."""
    if not any(map(item.get_closest_marker, ("alone", "measured"))):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    attempt = 1
    attempts = ATTEMPTS if len(_in_vain) < MOST_IN_VAIN else 1
    while failed(reports := runtestprotocol(item, nextitem=nextitem, log=False)) and attempt < attempts:
        attempt += 1
        item.session._setupstate.teardown_exact(None)
        item.user_properties.clear()
        time.sleep(PAUSE_SECONDS)
    if failed(reports):
        _in_vain.append(item.nodeid)
    for report in reports:
        if attempt > 1:
            report.user_properties.append((AGAIN, attempt))
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def failed(reports):
    return any(report.failed for report in reports)


def pytest_terminal_summary(terminalreporter):
    """Which tests passed only when they were repeated: one that is often here needs more rounds of its own."""
    for report in terminalreporter.stats.get("passed", []):
        if attempts := dict(report.user_properties).get(AGAIN):
            terminalreporter.write_line(f"passed in attempt {attempts}: {report.nodeid}")
