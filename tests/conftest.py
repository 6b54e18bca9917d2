"""What makes a test run the same each time, wherever and after whatever it runs."""

import contextlib
import gc
import os
import random
import subprocess
import sys
import tempfile
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.processes import STARTERS, TRACES, share_traces, start_warm_process, warm_subprocess
from tests.rounds import pytest_runtest_protocol, pytest_terminal_summary  # noqa: F401

# Matrices here are small: more threads only wait for each other. To be said before NumPy and PyTorch are imported.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
# Virtual machines announce AMX and need not run it: PyTorch would end with SIGILL in the first bfloat16 layer.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # compiling is most of what JAX does in a test
with contextlib.suppress(ImportError):  # the way to emit code that takes less long; XLA ends where it knows no flag
    if version("jaxlib").startswith("0.10."):
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")

# What is kept for later, such as fits of profiles, is kept nowhere that outlives the tests.
HOME = tempfile.TemporaryDirectory(prefix="ampere-tests-")
os.environ.setdefault("AMPERE_HOME", HOME.name)
os.environ.setdefault(TRACES, str(Path(HOME.name, "traces")))
share_traces()

# PyTorch's compiler imports setuptools, which fails where anything imported the standard library's distutils before.
with contextlib.suppress(ImportError):
    import setuptools  # noqa: F401

# The same examples each time, however long one takes on a machine that others use too.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


# Where how workers start and end is what is tested.
REAL_WORKERS = (
    "worker",
    "conformance/test_workers.py",
    "devices/test_local.py",
    "faults/test_current_folder.py",
    "faults/test_other_systems.py",
)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Workers and plain loops on this machine start without importing PyTorch each time, those of fixtures too."""
    place = item.path.relative_to(Path(__file__).parent).as_posix()
    warm = os.name == "posix" and not place.startswith(REAL_WORKERS)
    for name in STARTERS:  # imported here: one that a test imports later would start that test's programs cold
        import_module(name).subprocess = warm_subprocess() if warm else subprocess


@pytest.fixture(autouse=True)
def nothing_of_the_test_before():
    """Random numbers begin anew, and the smallest floats, which a runtime that trains here flushes, are not zero."""
    random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)


def pytest_configure(config):
    """Where several processes run tests, they share one warm process; beside collecting it takes no time of its own."""
    if os.name == "posix" and (config.getoption("numprocesses", None) or config.option.markexpr == "alone"):
        start_warm_process()


LONGEST = (
    "conformance/test_runtimes.py",
    "docs/test_examples.py",
    "evaluation/test_experiments.py",
    "cli/test_end_to_end.py",
    "fleet/test_running.py",
    "worker/test_accelerators.py",
    "cli/test_first_hour.py",
    "cli/test_runtimes.py",
    "devices/test_ssh.py",
    "searching/test_searching.py",
    "tracing/jax/test_other_runtimes.py",
    "conformance/test_workers.py",
    "cli/test_interruptions.py",
    "devices/test_tcp.py",
    "runtimes/test_jax.py",
    "runtimes/test_compilers.py",
    "budget/test_recording.py",
    "web/test_in_a_browser.py",
    "profiling/test_slow_meters.py",
    "test_simulated_truth.py",
    "test_device_profile.py",
    "test_touch.py",
    "profiling/test_common_yardstick.py",
    "worker/test_idle.py",
)


def pytest_collection_modifyitems(items):
    """Files that take longest go first: at the end, no process is left alone with one of them."""
    place = {Path(__file__).parent / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path, len(LONGEST)))


def pytest_collection_finish():
    """What was imported until now stays: looking for garbage in it, again and again, took a tenth of a second each."""
    gc.freeze()


def pytest_ignore_collect(collection_path, config):
    """A file is not imported only to find that none of its tests is to be run alone."""
    if config.option.markexpr == "alone" and collection_path.name.startswith("test_"):
        return "mark.alone" not in collection_path.read_text(encoding="utf-8") or None
    return None
