"""`--runtime` from the command line: profiles of two runtimes stay apart, and what cannot be trained is named."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.plugins import bring_runtime

from ampere.runtimes.table import description_of, installed
from ampere.storage.profile import Profile

USAGE, MODEL, PROFILE, DEVICE, RUNTIME_MISSING = 2, 3, 4, 5, 6
KNOWN = Path(__file__).parents[1] / "fixtures" / "profile-format-2.json"
STUBBORN = """
from ampere.core.errors import WorkerError
from ampere.runtimes import Description
from ampere.runtimes.torch_runtime import TorchRuntime

RUNTIME = Description("stubborn_runtime", ("stubborn",), "pip install stubborn", frozenset({"conv", "linear"}))


class Stubborn(TorchRuntime):
    def build(self, subject, setup):
        raise WorkerError("variant_failed", "the compiler is broken; install another")


create = Stubborn
"""
needs_jax = pytest.mark.skipif("jax" not in installed(), reason=description_of("jax").install)


def test_where_nothing_can_be_trained_the_reason_is_reported_and_not_the_time(here, refused, monkeypatch, tmp_path):
    bring_runtime(monkeypatch, tmp_path / "site", "stubborn", STUBBORN)
    ran = here("profile", "lenet5", "--runtime", "stubborn", "--seconds", 60, "--quiet")  # it ends before
    refused(ran, MODEL, "nothing could be trained", "the compiler is broken; install another")


def test_a_broken_runtime_of_others_is_refused_and_other_commands_go_on(here, refused, monkeypatch, tmp_path):
    bring_runtime(monkeypatch, tmp_path / "site", "broken", "import a_library_that_is_not_there")
    assert here("devices", "--json").code == 0
    ran = here("profile", "lenet5", "--runtime", "broken", "--seconds", 4, "--quiet")
    refused(ran, RUNTIME_MISSING, "the runtime broken", "update or uninstall its package")


@pytest.fixture
def made_with(tmp_path):
    """A profile that says that it was made with this runtime."""

    def write(runtime):
        known = Profile.load(KNOWN)
        replace(known, setup=replace(known.setup, runtime=runtime)).save(tmp_path / f"{runtime}.json")
        return tmp_path / f"{runtime}.json"

    return write


def test_layers_that_the_profiles_runtime_cannot_train_are_named(here, made_with):
    words = ("estimate", "lstm", "--profile", made_with("mnn"), "--allow-other-device")
    said = here(*words).out
    assert "mnn cannot train" in said
    assert "(no lstm)" in said
    assert "for a tighter interval" not in said
    assert all("(no lstm)" in layer for layer in here(*words, "--json").record["unsupported"])
    assert "unsupported" not in here("estimate", "lenet5", *words[2:], "--json").record


def test_advice_to_profile_is_about_the_same_runtime_and_device(here, refused, made_with):
    for runtime, advice in (("jax", "--runtime jax --seconds 240"), ("torch", "--seconds 60")):
        ran = here("estimate", "lstm", "--profile", made_with(runtime), "--allow-other-device")
        assert f"ampere profile lstm {advice}" in " ".join(ran.out.split())
    elsewhere = here("estimate", "lenet5", "--optimizer", "adam", "--device", "simulated:tx2", "--no-profiling")
    refused(elsewhere, PROFILE, "`ampere profile MODEL --optimizer adam --device simulated:tx2`")


@needs_jax
@pytest.mark.parametrize("method", ["stages", "kernels"])
def test_stages_are_refused_at_once_where_a_step_is_one_call(here, refused, method):
    ran = here("profile", "lenet5", "--runtime", "jax", "--method", method, "--seconds", 4, "--quiet")
    refused(ran, USAGE, f"--method {method} needs --runtime torch")


@needs_jax
def test_a_profile_of_jax_is_kept_apart_and_reports_what_was_compiled(ampere, here, refused):
    made = ampere("profile", "lenet5", "--runtime", "jax", "--seconds", 8, "--json").record
    assert made["setup"]["runtime"] == "jax"
    assert 0 < made["compile_seconds"] < made["profiling_seconds"]
    reported = here("estimate", "lenet5", "--runtime", "jax", "--no-profiling", "--json").record
    assert reported["joules_per_iteration"] > 0
    refused(here("estimate", "lenet5", "--no-profiling"), PROFILE, "no profile of this device in torch yet")
    mixed = here("profile", "lenet5", "--out", ampere.profile_path, "--seconds", 5)
    refused(mixed, PROFILE, "made with jax-sgd-float32, not torch-sgd-float32")


@needs_jax
def test_what_compiles_for_longer_than_the_limit_is_reported_and_the_limit_is_an_option(here, refused):
    words = ("--runtime", "jax", "--seconds", 3, "--quiet")
    reported = ("longer than 0.01 s", "give it longer with --compile-limit")
    refused(here("profile", "lenet5", *words, "--compile-limit", 0.01), MODEL, "nothing could be trained", *reported)
    refused(here("measure", "lenet5", *words, "--compile-limit", "0.01s"), DEVICE, *reported)


def test_a_limit_that_is_none_is_refused(here, refused, monkeypatch):
    words = ("measure", "lenet5", "--quiet")
    refused(here(*words, "--compile-limit", "-3"), USAGE, "--compile-limit", "a positive number of seconds")
    monkeypatch.setenv("AMPERE_COMPILE_LIMIT", "ages")
    refused(here(*words), USAGE, "AMPERE_COMPILE_LIMIT=ages is no number of seconds")


@needs_jax
def test_layers_that_jax_cannot_build_are_named_before_anything_is_trained(here, refused, subject):
    ran = here("profile", subject("unknown_module"), "--runtime", "jax", "--seconds", 5, "--quiet")
    refused(ran, MODEL, "jax cannot build 1 (known by its own code only)", "such as torch")
