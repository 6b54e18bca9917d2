"""Whatever is wrong is one line that says what to do, and an exit code that tells which sort it was."""

import pytest

USAGE, MODEL, PROFILE = 2, 3, 4


def test_a_process_ends_with_the_code_and_the_line(ampere, refused):
    refused(ampere("estimate", "lenet55"), USAGE, "did you mean lenet5")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("estmate lenet5", ["did you mean estimate?"]),
        ("explode", ["there is no command", "validate"]),
        ("--explode", ["unrecognized", "--help"]),
        ("estimate", ["MODEL", "ampere estimate --help"]),
        ("estimate lenet55", ["no model 'lenet55'", "did you mean lenet5"]),
        ("estimate net.py", ["names no function", "net.py:NAME"]),
        ("estimate lenet5 --seconds -3", ["--seconds", "positive number of seconds"]),
        ("profile lenet5 --seconds nan", ["--seconds", "positive"]),
        ("profile lenet5 --seconds 0", ["--seconds", "positive"]),
        ("profile lenet5 --own-end", ["--method additive has no end of its own", "--method sequential"]),
        ("profile lenet5 --own-end --seconds 9 --method sequential", ["leave out --seconds"]),
        ("profile lenet5 --iterations-per-measurement 500", ["leave out --iterations-per-measurement"]),
        ("profile lenet5 --iterations-per-measurement 0", ["whole number from 1"]),
        ("profile lenet5 --target 300%", ["--target", "3% or 0.03"]),
        ("profile lenet5 --target soon", ["--target", "3% or 0.03"]),
        ("profile lenet5 --watts-per-core 0", ["--watts-per-core", "positive number of watts"]),
        ("profile lenet5 --optimizer adagrad", ["--optimizer", "adamw"]),
        ("profile lenet5 --threads 0", ["--threads", "whole number from 1"]),
        ("profile lenet5 --runtime tensorflow", ["no runtime 'tensorflow'", "torch, torch-compile, jax"]),
        ("profile lenet5 --runtime jax --device simulated:xavier", ["trains with torch", "leave out --runtime"]),
        ("measure lenet5 --runtime jax --evaluation", ["--evaluation", "not with jax"]),
        ("profile lenet5 --space cnn", ["both named", "leave out one of them"]),
        ("profile --batch 4", ["belong to a model"]),
        ("profile --space vision", ["--space", "transformers"]),
        ("profile net.json", ["network file", "cannot be trained"]),
        ("estimate lenet5 --memory -3GB", ["--memory", "positive amount of memory", "4GB"]),
        ("estimate lenet5 --memory 3parsecs", ["'3parsecs'", "512MB"]),
        ("search cnn5 --budget 50% --memory 0GB", ["--memory", "positive amount of memory"]),
        ("estimate lenet5 --largest-batch --device simulated:xavier", ["how much memory is free", "--memory"]),
        ("estimate lenet5 --battery big", ["battery 'big'", "15Wh"]),
        ("estimate lenet5 --battery -15Wh", ["battery"]),
        ("estimate lenet5 --iterations 5 --epochs 2", ["--iterations and --epochs"]),
        ("estimate lenet5 --epochs 2", ["--samples"]),
        ("estimate lenet5 --iterations 0", ["--iterations", "whole number from 1"]),
        ("estimate lenet5 --batch 0", ["--batch", "whole number from 1"]),
        ("estimate lenet5 --idle 8W", ["--idle", "--battery 15Wh"]),
        ("estimate lenet5 --battery 15Wh --idle 8Wh", ["--idle", "in watts, such as 8W"]),
        ("estimate lenet5 --battery 5000mAh", ["--battery", "5000mAh@3.85V"]),
        ("estimate lenet5 --battery 15 W", ["--battery", "write 15Wh"]),
        ("estimate lenet5 --dtype float16", ["--dtype", "bfloat16"]),
        ("estimate lenet5 --on gpu!", ["'gpu!'", "cuda"]),
        ("estimate lenet5 --on cuda --device simulated:server", ["processor of its own", "leave out --on"]),
        ("estimate lenet5 --dtype tf32 --device simulated:server", ["NVIDIA", "float32"]),
        ("estimate lenet5 --arg width", ["--arg", "width=32"]),
        ("estimate net.json --arg width=3", ["has its input already"]),
        ("estimate lenet5 --group-by module", ["--group-by", "block"]),
        ("estimate lenet5 --input 0x1x28x28", ["dimension of 0"]),
        ("estimate lenet5 --input wide", ["'wide' is no shape", "10x1x28x28"]),
        ("estimate lenet5 --input 0*10x1x28x28|9x1x28x28", ["no weight above 0", "3*8x32 | 1*8x64"]),
        ("trace lenet5 --out net.txt", [".json"]),
        ("validate lenet5 --networks none", ["--networks", "whole number from 1"]),
        ("validate lenet5 --methods additive,flop", ["no method 'flop'", "did you mean flops"]),
        ("validate lenet5 --methods ,", ["no method", "or all"]),
        ("profile lenet5 --method sequentiel", ["'sequentiel'", "did you mean sequential"]),
        ("profile lenet5 --method best", ["choose one of", "additive"]),
        ("profile lenet5 --timing sundial", ["--timing", "wallclock"]),
        ("profile lenet5 --method stages --timing wallclock", ["stages", "yardstick", "leave out --timing"]),
        ("estimate lenet5 --method networks", ["--method networks", "additive, sequential"]),
    ],
)
def test_what_makes_no_sense_is_refused(here, refused, words, says):
    refused(here(*words.split()), USAGE, *says)


@pytest.mark.parametrize("command", ["estimate", "profile", "measure", "validate", "trace"])
def test_a_factory_that_raises_is_quoted_with_its_line(here, refused, subject, command):
    refused(here(command, subject("raising")), MODEL, "RuntimeError: the weights are on the moon", "subjects.py:")


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("silent", [], ["does not tell its input", "--input"]),
        ("silent", ["--input", "10x17"], ["10x17", "--input"]),
        ("nothing", [], ["returned int, not a model"]),
        ("exiting", [], ["SystemExit"]),
        ("not_stepping", [], ["no whole training step", "updated no weights", "call optimizer.step()"]),
        ("frozen", [], ["cannot train Linear", "requires_grad"]),
        ("absent", [], ["no function 'absent'", "good"]),
    ],
)
def test_a_model_that_cannot_be_estimated_says_why(here, refused, subject, name, options, says):
    refused(here("trace", subject(name), *options), MODEL, *says)


def test_a_shape_that_does_not_fit_is_refused_before_anything_is_measured(here, refused, subject):
    refused(here("estimate", subject("silent"), "--input", "3*10x16 | 1*10x17"), MODEL, "10x17", "--input")


def test_a_file_that_is_not_there(here, refused):
    refused(here("estimate", "nowhere.py:build"), MODEL, "nowhere.py is not there")


def test_a_network_file_that_is_not_there(here, refused):
    refused(here("estimate", "nowhere.json"), PROFILE, "nowhere.json does not exist")


def test_never_profiled_and_not_allowed_to(here, refused):
    refused(here("estimate", "lenet5", "--no-profiling"), PROFILE, "no profile", "ampere profile")


@pytest.mark.parametrize(
    ("loader", "says"),
    [("no_loader", "gives no batches"), ("empty_loader", "no batch at all"), ("absent", "no function")],
)
def test_a_loader_that_loads_nothing(here, refused, subject, loader, says):
    ran = here("measure", subject("good"), "--seconds", 0.1, "--data", subject(loader), "--quiet")
    refused(ran, MODEL, says)
