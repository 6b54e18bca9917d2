"""A user's own model, and every way in which loading one can fail: one line, with a remedy."""

import re
import sys

import pytest

from ampere.core.errors import AmpereError, ModelError, RuntimeMissingError, UsageError
from ampere.models import load_model, loading

torch = pytest.importorskip("torch")

FILE = """
import torch
from torch import nn
from beside import WIDTH

def with_tensor(width=WIDTH):
    print("building")
    return nn.Linear(8, width), torch.zeros(2, 8)

def with_tuple():
    return nn.Bilinear(8, 4, 2), (torch.zeros(2, 8), torch.zeros(2, 4))

def with_dict():
    return nn.Linear(8, 4), {"input": torch.zeros(2, 8)}

class Own(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(8, 4))

def model_only():
    return nn.Linear(8, 4)

def empty_batch():
    return nn.Linear(8, 4), torch.zeros(0, 8)

def no_tensor():
    return nn.Linear(8, 4), "picture"

def number():
    return 5

def raising():
    raise ValueError("too deep,\\nby far")

def raising_in_torch():
    return nn.Conv2d(3, 4, 3, groups=2)

def leaving():
    raise SystemExit(2)

import functools

def _configured(function):
    @functools.wraps(function)
    def given():
        return function({"width": 3})
    return given

@_configured
def wrapped(config):
    return nn.Linear(8, config["width"]), torch.zeros(2, 8)
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "beside.py").write_text("WIDTH = 3")
    path = tmp_path / "net.py"
    path.write_text(FILE)
    return path


def test_a_function_of_a_file_with_arguments(file, capsys):
    loaded = load_model(f"{file}:with_tensor", width=7)
    assert loaded.model.out_features == 7
    assert [tuple(tensor.shape) for tensor in loaded.inputs] == [(2, 8)]
    assert (loaded.name, loaded.factory) == ("net:with_tensor", f"{file}:with_tensor")
    assert (loaded.arguments, loaded.space) == ({"width": 7}, None)
    assert capsys.readouterr().out == "", "standard output is kept for our own answer"


def test_a_decorator_may_give_the_arguments(file):
    assert load_model(f"{file}:wrapped").model.out_features == 3


def test_a_files_neighbours_can_be_imported(file):
    assert load_model(f"{file}:with_tensor").model.out_features == 3


@pytest.mark.parametrize("name", ["with_tuple", "with_dict"])
def test_several_and_named_inputs(file, name):
    loaded = load_model(f"{file}:{name}")
    inputs = loaded.inputs
    outputs = loaded.model(**inputs) if isinstance(inputs, dict) else loaded.model(*inputs)
    assert len(outputs) == 2


def test_a_function_of_a_module_in_the_working_folder(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    assert load_model("net:with_tensor").name == "net:with_tensor"


def test_a_space_with_changed_arguments():
    loaded = load_model("cnn5", channels=[1, 2, 3, 4])
    assert loaded.arguments == {"channels": [1, 2, 3, 4], "batch": 10}
    assert loaded.space is not None
    assert loaded.factory == "ampere.models.cnn5:build"


def test_an_input_given_as_text(file):
    loaded = load_model(f"{file}:model_only", input="5x8")
    assert loaded.model(*loaded.inputs).shape == (5, 4)


def test_an_input_given_as_text_replaces_the_factorys(file):
    assert load_model(f"{file}:with_tensor", input="5x8").inputs[0].shape == (5, 8)


def test_a_family_with_another_input_is_a_model_of_the_users():
    loaded = load_model("cnn5", input="3x1x28x28")
    assert (loaded.inputs[0].shape[0], loaded.space) == (3, None)


@pytest.mark.parametrize("text", ["5xx8", "", "0x8", "900000000x900000000"])
def test_an_input_that_makes_no_sense_is_one_line(file, text):
    with pytest.raises(UsageError) as caught:
        load_model(f"{file}:model_only", input=text)
    assert "\n" not in str(caught.value)


FAILURES = [
    ("cnn6", UsageError, "did you mean .*cnn5"),
    ("zzz", UsageError, "lenet5, cnn5"),
    ("{file}", UsageError, "names no function"),
    ("{folder}/gone.py:build", ModelError, "is not there"),
    ("{folder}:build", ModelError, "is not there"),
    ("{file}:", ModelError, "NAME one of Own, empty_batch"),
    ("{file}:buidl", ModelError, "no function 'buidl'.*NAME one of Own, empty_batch"),
    ("no_such_package.models:build", ModelError, "no module no_such_package.models"),
    ("json:tool_of_mine", ModelError, "no function 'tool_of_mine'"),
    ("{file}:number", ModelError, "returned int, not a model"),
    ("{file}:raising", ModelError, r"ValueError: too deep, by far \(net.py:33\)"),
    ("{file}:raising_in_torch", ModelError, r"ValueError: .*divisible by groups \(net.py:36\)"),
    ("{file}:leaving", ModelError, r"SystemExit: 2 \(net.py:39\)"),
    ("{file}:model_only", ModelError, "--input"),
    ("{file}:Own", ModelError, "--input"),
    ("{file}:empty_batch", ModelError, "batch must be 1 or more"),
    ("{file}:no_tensor", ModelError, "no tensor"),
]


@pytest.mark.parametrize(("spec", "kind", "expected"), FAILURES, ids=[f[0] for f in FAILURES])
def test_a_failure_is_one_line(file, spec, kind, expected):
    with pytest.raises(AmpereError) as caught:
        load_model(spec.format(file=file, folder=file.parent))
    assert type(caught.value) is kind
    assert re.search(expected, str(caught.value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("batch", [0, -1, "ten"])
def test_a_batch_that_trains_nothing(batch):
    with pytest.raises(UsageError, match="1 or more"):
        load_model("lenet5", batch=batch)


def test_an_argument_that_a_space_does_not_have():
    with pytest.raises(UsageError, match="no argument 'chanels': it has channels, batch"):
        load_model("cnn5", chanels=[1])


def test_an_argument_that_does_not_fit():
    with pytest.raises(ModelError, match=r"cnn5 with .*ValueError: not enough values"):
        load_model("cnn5", channels=[1, 2])


def test_a_file_that_does_not_parse(tmp_path):
    (tmp_path / "bad.py").write_text("def build(:\n")
    with pytest.raises(ModelError, match=r"importing bad.py raised SyntaxError"):
        load_model(f"{tmp_path / 'bad.py'}:build")


def test_a_file_that_imports_what_is_not_installed(tmp_path):
    (tmp_path / "bad.py").write_text("import no_such_package\n")
    with pytest.raises(ModelError, match=r"No module named 'no_such_package' \(bad.py:1\)"):
        load_model(f"{tmp_path / 'bad.py'}:build")


@pytest.mark.parametrize(
    ("line", "extra"), [("from flax import nnx", "jax"), ("import optax", "jax"), ("import torch", "torch")]
)
def test_a_file_that_needs_a_library_of_a_runtime_says_how_to_get_it(tmp_path, monkeypatch, line, extra):
    library = line.split()[1]
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    (tmp_path / "net.py").write_text(f"{line}\n")
    said = rf"importing net.py needs {library}, which is not installed: pip install 'ampere-energy\[{extra}\]'"
    with pytest.raises(RuntimeMissingError, match=said):
        load_model(f"{tmp_path / 'net.py'}:build")


def test_a_part_that_an_installed_library_lacks_is_the_files_own_mistake(tmp_path):
    (tmp_path / "net.py").write_text("import torch.no_such_part\n")
    with pytest.raises(ModelError, match=r"No module named 'torch\.no_such_part'"):
        load_model(f"{tmp_path / 'net.py'}:build")


def test_without_torch_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr(loading.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeMissingError, match="pip install 'ampere-energy\\[torch\\]'"):
        load_model("cnn5")
