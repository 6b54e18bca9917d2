"""A runtime that is not installed: one line that says how to get it, from every command that would train."""

import pytest
from tests.listening import listening

RUNTIME_MISSING = 6
COMMANDS = {
    "estimate cnn5": "jax",
    "profile cnn5": "mnn",
    "measure cnn5": "jax",
    "validate cnn5 --networks 2": "mnn",
    "prune cnn5 --budget 50%": "jax",
    "compare cnn5 lenet5": "mnn",
}


@pytest.fixture
def lean(ampere, python_without_extras):
    ampere.python = (python_without_extras,)
    return ampere


def test_what_needs_a_runtime_says_how_to_get_it(lean, refused):
    (lean.folder / "net.py").write_text("from flax import nnx\n\n\ndef build(): ...\n")
    *wanting, of_flax = lean.each(
        *(f"{words} --runtime {runtime}" for words, runtime in COMMANDS.items()), "estimate net.py:build --runtime jax"
    )
    for ran, runtime in zip(wanting, COMMANDS.values(), strict=True):
        refused(ran, RUNTIME_MISSING, f"{runtime.upper()} is not installed", f"pip install 'ampere-energy[{runtime}]'")
    refused(of_flax, RUNTIME_MISSING, "needs flax", "pip install 'ampere-energy[jax]'")


def test_a_device_elsewhere_is_named(here, refused, python_without_extras):
    with listening(f"{python_without_extras} -m ampere.worker") as address:
        ran = here("profile", "cnn5", "--runtime", "jax", "--device", address, "--quiet")
        refused(ran, RUNTIME_MISSING, f"{address} lacks jax: pip install jax flax optax there")
