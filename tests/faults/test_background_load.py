"""A busy loop on the worker's own core for half of the run: its blocks are flagged, and the estimate hardly moves."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from statistics import mean

import pytest
from tests.synthetic import chain

from ampere.devices import LocalWorker
from ampere.estimation.fitting import drift_share_in
from ampere.estimation.normalization import Reference, normalized, to_reference
from ampere.storage.profile import Observation

pytestmark = pytest.mark.fault(9)

NETWORKS = [chain(3, 8, 8, 8), chain(3, 24, 32)]
ROUNDS, AT_MOST = 7, 4  # On a restless machine seven rounds leave a doubt of some percent: then as many again


@contextmanager
def busy_loop(core):
    """A process on this core that is stopped at first."""
    code = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    loop = subprocess.Popen([sys.executable, "-c", code])
    loop.send_signal(signal.SIGSTOP)
    try:
        yield loop
    finally:
        loop.kill()
        loop.wait()


@pytest.mark.alone
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot keep a process on one core")
def test_half_of_a_real_run_beside_a_busy_loop(record_property):
    """Two processes share a core: twice the wall time, and caches that the other has used in between."""
    core = max(os.sched_getaffinity(0))
    first, second, beside = [], [], []
    with LocalWorker() as worker, busy_loop(core) as loop:
        worker.hello()
        os.sched_setaffinity(worker.worker_pid, {core})
        reference = Reference(worker.yardstick(0.3).busy_seconds)
        for _ in range(AT_MOST):
            for run in ROUNDS * (first, second, beside):
                loop.send_signal(signal.SIGCONT if run is beside else signal.SIGSTOP)
                for network in NETWORKS:
                    block = worker.block({"layers": network.to_json()}, iterations=12)
                    run.append(Observation(network, block, "network"))
            undisturbed, disturbed = (estimates([*first, *other], reference) for other in (second, beside))
            moved = mean(abs(disturbed[network] / undisturbed[network] - 1) for network in NETWORKS)
            if moved <= 0.03:
                break
    flagged = sum("loaded" in seen.measurement.flags for seen in beside)
    record_property("figure", f"{flagged} of {len(beside)} blocks flagged, the estimate moves by {moved:.1%}")
    assert flagged >= 0.95 * len(beside)
    assert moved <= 0.03


def estimates(run, reference):
    """Seconds of a step of each network, from all rounds, in the reference condition."""
    costs = normalized(run, reference)
    share = drift_share_in(costs, reference).part
    return {cost.network: to_reference(cost, reference, share).busy_seconds for cost in costs}
