"""`--runtime` from the command line: profiles of two runtimes stay apart, and what cannot be trained is named."""

import pytest

from ampere.worker.runtimes.table import description_of, installed

MODEL, PROFILE = 3, 4


@pytest.fixture(autouse=True)
def jax_is_here():
    if "jax" not in installed():
        pytest.skip(description_of("jax").install)


def test_a_profile_of_jax_is_kept_apart_and_tells_what_was_compiled(ampere, here, refused):
    made = ampere("profile", "lenet5", "--runtime", "jax", "--seconds", 12, "--json").record
    assert made["setup"]["runtime"] == "jax"
    assert 0 < made["compile_seconds"] < made["profiling_seconds"]
    told = here("estimate", "lenet5", "--runtime", "jax", "--no-profiling", "--json").record
    assert told["joules_per_iteration"] > 0
    refused(here("estimate", "lenet5", "--no-profiling"), PROFILE, "no profile of this setup")
    mixed = here("profile", "lenet5", "--out", ampere.profile_path, "--seconds", 5)
    refused(mixed, PROFILE, "made with jax-sgd-float32-1t, not torch-sgd-float32-1t")


def test_layers_that_jax_cannot_build_are_named_before_anything_is_trained(here, refused, subject):
    ran = here("profile", subject("unknown_module"), "--runtime", "jax", "--seconds", 5, "--quiet")
    refused(ran, MODEL, "jax cannot build 1 (known by its own code only)", "such as torch")
