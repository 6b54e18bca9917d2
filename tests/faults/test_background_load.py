"""A busy loop on the worker's own core for half of the run: its blocks are flagged, and the figure hardly moves."""

import os
import subprocess
import sys
from contextlib import contextmanager
from random import Random
from statistics import median

import pytest
from tests.synthetic import chain

from ampere.core.measurement import Window, ratios
from ampere.devices import LocalWorker

pytestmark = pytest.mark.fault(9)

LAYERS = {"layers": chain(3, 8, 8, 8).to_json()}


@contextmanager
def busy_loop(core):
    code = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    loop = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


@pytest.mark.alone
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot keep a process on one core")
def test_blocks_beside_a_busy_loop_are_flagged():
    """Real ones: two processes share a core, so that the wall's time is twice the CPU's."""
    with LocalWorker() as device:
        device.hello()
        core = min(os.sched_getaffinity(0))
        os.sched_setaffinity(device.worker_pid, {core})
        device.block(LAYERS)
        with busy_loop(core):
            loaded = [device.block(LAYERS, iterations=200) for _ in range(3)]
    assert all("loaded" in block.flags for block in loaded)


def test_the_figure_of_a_half_loaded_run_moves_by_at_most_3_percent():
    """Simulated: a neighbour on the core doubles the wall's time and adds a tenth to CPU time, for shared caches."""
    rng, moved = Random(0), []
    for _ in range(200):
        seconds = []
        for number in range(17):
            beside = number >= 8
            cpu = (0.003, 0.004)[number % 2] * (1.1 if beside else 1.0) * rng.lognormvariate(0.0, 0.03)
            seconds.append((cpu * (2 if beside else 1), cpu))
        windows = [Window(1, wall, cpu, 5 * cpu, 0) for wall, cpu in seconds]
        moved.append(median(ratios(windows[1::2], windows[::2])) / (4 / 3) - 1)
    assert sum(abs(m) for m in moved) / len(moved) <= 0.03
