"""A user's own model, and every way in which loading one can fail: one line, with a remedy."""

import random
import re
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from ampere.core import TrainingSetup
from ampere.core.errors import AmpereError, ModelError, RuntimeMissingError, UsageError
from ampere.models import load_model, loading
from ampere.models.user_code import find_function
from ampere.profiling.plain_processes import bare_task
from ampere.profiling.sources import trace_loaded
from ampere.runtimes.user_code import find_factory

torch = pytest.importorskip("torch")
plain_script = pytest.importorskip("ampere.runtimes.plain_script")
trace = pytest.importorskip("ampere.tracing.trace").trace

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


def test_the_example_that_a_lightning_module_carries_is_its_input(tmp_path):
    body = "        self.example_input_array = torch.zeros(5, 8)\n"
    code = f"{FILE.replace('beside', 'math').replace('WIDTH', 'pi')}\nclass Lit(Own):\n    def __init__(self):\n"
    (tmp_path / "lit.py").write_text(f"{code}        super().__init__()\n{body}")
    loaded = load_model(f"{tmp_path / 'lit.py'}:Lit")
    assert [tuple(tensor.shape) for tensor in loaded.inputs] == [(5, 8)]
    assert not loaded.own_inputs, "a worker must be given them"


def test_libraries_warn_when_a_model_is_trained_and_not_when_it_is_looked_at(tmp_path, capsys):
    (tmp_path / "warning.py").write_text(
        "import warnings\nimport torch\nfrom torch import nn\n\n\ndef build():\n    warnings.warn('of the user')\n"
        "    nn.Transformer(8, 2, 1, 1, 8)\n    return nn.LSTM(8, 8, proj_size=4), torch.zeros(2, 3, 8)\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_: print(message)
        loaded = load_model(f"{tmp_path / 'warning.py'}:build")
        trace(loaded.model, loaded.inputs)
    assert capsys.readouterr().err == "of the user\n"


def test_another_batch_is_refused_where_it_would_change_the_length():
    class Last(torch.nn.LSTM):
        def forward(self, x):
            return super().forward(x)[0]

    model, x = Last(8, 4), torch.zeros(5, 3, 8)
    assert trace_loaded(load_model(model, x)).batch == 3
    with pytest.raises(UsageError, match="is not its batch, which --batch would change"):
        trace_loaded(load_model(model, x, batch=7))


@pytest.mark.parametrize("with_init", [True, False])
def test_a_file_of_a_package_imports_relatively_here_in_a_worker_and_in_a_bare_script(tmp_path, monkeypatch, with_init):
    nets = tmp_path / f"models_{with_init}" / "nets"
    nets.mkdir(parents=True)
    (nets.parent / "config.py").write_text("WIDTH = 3")
    (nets / "parts.py").write_text("from . import net")
    (nets / "net.py").write_text(
        FILE.replace("from beside import WIDTH", "from ..config import WIDTH\nfrom . import parts")
    )
    for folder in (nets, nets.parent) if with_init else ():
        (folder / "__init__.py").write_text("")
    reference = f"{nets / 'net.py'}:with_tensor"
    assert load_model(reference).model.out_features == 3
    assert find_factory(reference)()[0].out_features == 3
    task = bare_task({"factory": reference}, TrainingSetup())
    assert task is not None
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert plain_script.loaded(task["factory"], task["folder"])()[0].out_features == 3


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
    ("{file}:leaving", ModelError, r"ended the program, SystemExit: 2 \(net.py:39\)"),
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
    (tmp_path / "bad.py").write_text("import no_such_package\n\ndef build(): ...\n")
    with pytest.raises(ModelError, match=r"No module named 'no_such_package' \(bad.py:1\)"):
        load_model(f"{tmp_path / 'bad.py'}:build")


@pytest.mark.parametrize(
    ("line", "extra"), [("from flax import nnx", "jax"), ("import optax", "jax"), ("import torch", "torch")]
)
def test_a_file_that_needs_a_library_of_a_runtime_says_how_to_get_it(tmp_path, monkeypatch, line, extra):
    library = line.split()[1]
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    (tmp_path / "net.py").write_text(f"{line}\n\ndef build(): ...\n")
    said = rf"importing net.py needs {library}, which is not installed: pip install 'ampere-energy\[{extra}\]'"
    with pytest.raises(RuntimeMissingError, match=said):
        load_model(f"{tmp_path / 'net.py'}:build")


def test_a_part_that_an_installed_library_lacks_is_the_files_own_mistake(tmp_path):
    (tmp_path / "net.py").write_text("import torch.no_such_part\n\ndef build(): ...\n")
    with pytest.raises(ModelError, match=r"No module named 'torch\.no_such_part'"):
        load_model(f"{tmp_path / 'net.py'}:build")


def test_without_torch_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr(loading.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeMissingError, match="pip install 'ampere-energy\\[torch\\]'"):
        load_model("cnn5")


def test_arguments_go_to_the_function(file):
    loaded = load_model(f"{file}:with_tensor", arguments={"width": 5})
    assert (loaded.model.out_features, loaded.arguments) == (5, {"width": 5})


def test_an_argument_that_is_missing_is_named_with_the_flag_for_it(file):
    file.write_text("from torch import nn\n\ndef build(width, depth): ...\n")
    said = r"build needs width and depth: give --arg width=VALUE, or .*def build\(\): return build\(\.\.\.\)"
    with pytest.raises(ModelError, match=said):
        load_model(f"{file}:build")


def test_returned_inputs_are_brought_to_another_batch(file):
    for batch in (1, 5):
        assert [x.shape for x in load_model(f"{file}:with_tuple", batch=batch).inputs] == [(batch, 8), (batch, 4)]
    assert load_model(f"{file}:with_dict", batch=7).inputs["input"].shape == (7, 8)


NESTED = """
import torch
from torch import nn

class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 4)

    def forward(self, pair, mask, scale):
        return self.head(pair[0] + pair[1]) * scale

def build():
    return Masked(), ((torch.ones(2, 8), torch.ones(2, 8)), torch.ones(3, 3), torch.tensor(2.0))

def with_batch(batch=2):
    return nn.Linear(8, 4), torch.zeros(batch, 8)
"""


def test_only_tensors_that_share_the_batch_change(tmp_path):
    (tmp_path / "net.py").write_text(NESTED)
    pair, mask, scale = load_model(f"{tmp_path}/net.py:build", batch=6).inputs
    assert [tuple(x.shape) for x in (*pair, mask, scale)] == [(6, 8), (6, 8), (3, 3), ()]


def test_a_batch_goes_to_the_function_that_takes_one(tmp_path):
    (tmp_path / "net.py").write_text(NESTED)
    loaded = load_model(f"{tmp_path}/net.py:with_batch", batch=6)
    assert (loaded.inputs[0].shape, loaded.arguments) == ((6, 8), {"batch": 6})


@pytest.mark.parametrize("batch", [0, -1, 2.5])
def test_no_batch_of_nothing_for_a_users_model(file, batch):
    with pytest.raises(UsageError, match="1 or more"):
        load_model(f"{file}:with_tensor", batch=batch)


def test_a_live_model_has_no_factory():
    model = torch.nn.Linear(8, 4)
    loaded = load_model(model, torch.zeros(2, 8))
    assert loaded.model is model
    assert (loaded.name, loaded.factory, loaded.inputs[0].shape) == ("Linear", None, (2, 8))
    assert load_model(model, "5x8").inputs[0].shape == (5, 8)
    assert load_model(model, torch.zeros(2, 8), batch=3).inputs[0].shape == (3, 8)


def test_an_input_may_have_no_features():
    assert load_model(torch.nn.Flatten(), inputs=(torch.zeros(2, 0), torch.zeros(2, 3))).inputs[0].shape == (2, 0)


def test_a_live_model_needs_its_inputs_and_takes_no_arguments():
    with pytest.raises(ModelError, match="Linear does not tell its input"):
        load_model(torch.nn.Linear(8, 4))
    with pytest.raises(UsageError, match="int is no model"):
        load_model(5, torch.zeros(2, 8))
    with pytest.raises(UsageError, match="takes no width"):
        load_model(torch.nn.Linear(8, 4), torch.zeros(2, 8), width=3)


def test_a_function_is_called_and_found_again(file, monkeypatch):
    monkeypatch.syspath_prepend(file.parent)
    monkeypatch.delitem(sys.modules, "net", raising=False)
    import net

    loaded = load_model(net.with_tensor, width=6)
    assert (loaded.model.out_features, loaded.arguments) == (6, {"width": 6})
    assert (loaded.name, loaded.factory) == ("with_tensor", f"{file}:with_tensor")


def test_a_function_made_on_the_fly_has_no_factory():
    loaded = load_model(lambda: (torch.nn.Linear(8, 4), torch.zeros(2, 8)))
    assert loaded.factory is None
    assert load_model(torch.nn.Flatten, torch.zeros(2, 8)).factory == "torch.nn.modules.flatten:Flatten"


SCRIPT = """
import torch
from torch import nn

def evaluate(model): ...

if __name__ == "__main__":
    build = lambda: nn.Linear(8, 4)
    print("training")
"""
RECIPE = r"add def build\(\): model = Net\(\); batch = .*return model, batch .*under if __name__"


@pytest.mark.parametrize(("spec", "kind"), [("train.py:build", ModelError), ("train.py", UsageError)])
def test_a_training_script_is_answered_with_a_recipe(tmp_path, spec, kind):
    (tmp_path / "train.py").write_text(SCRIPT)
    with pytest.raises(kind, match=rf"NAME one of evaluate; if none of them returns the model, {RECIPE}") as caught:
        load_model(f"{tmp_path}/{spec}")
    assert "\n" not in str(caught.value)


def test_a_script_that_would_train_is_not_run_to_look_for_a_function(tmp_path):
    (tmp_path / "train.py").write_text("raise SystemExit('trained for hours')\n")
    with pytest.raises(ModelError, match=r"no function 'build': .*a function to be added, such as def build"):
        load_model(f"{tmp_path}/train.py:build")


def test_a_script_that_reads_its_arguments_finds_none(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["ampere", "estimate", "net.py:build"])
    reading = "import argparse, torch\nassert not argparse.ArgumentParser().parse_known_args()[1]\n"
    (tmp_path / "net.py").write_text(f"{reading}def build():\n    return torch.nn.Linear(2, 3), torch.ones(1, 2)\n")
    assert load_model(f"{tmp_path}/net.py:build").model.out_features == 3
    assert sys.argv == ["ampere", "estimate", "net.py:build"]


def test_an_array_of_numpy_is_no_input():
    with pytest.raises(ModelError, match=r"an array of NumPy as input: make it a tensor with torch.from_numpy"):
        load_model(torch.nn.Linear(2, 3), torch.ones(1, 2).numpy())


def test_functions_that_come_from_elsewhere_are_found(tmp_path, file):
    (tmp_path / "a.py").write_text("try:\n    from net import with_tensor as build\nfinally:\n    pass\n")
    (tmp_path / "b.py").write_text("from net import *\n")
    assert load_model(f"{tmp_path}/a.py:build").model.out_features == 3
    assert load_model(f"{tmp_path}/b.py:with_tensor").model.out_features == 3


def test_a_model_that_is_made_already_asks_for_a_function(tmp_path):
    (tmp_path / "made.py").write_text("from torch import nn\nmodel = nn.Linear(8, 4)\n")
    with pytest.raises(ModelError, match=r"made\.py:model is a model, not a function .* def build\(\): return model, "):
        load_model(f"{tmp_path}/made.py:model", "2x8")


LIGHTNING = """
import torch
from lightning import LightningModule
from torch import nn

class Classifier(LightningModule):
    def __init__(self, optimizer="AdamW"):
        super().__init__()
        self.net, self.optimizer = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)), optimizer

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        if self.optimizer == "momentum":
            return {"optimizer": torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)}
        if self.optimizer == "schedule":
            return [torch.optim.Adam(self.parameters(), lr=0.1 / self.trainer.max_epochs)], []
        return [getattr(torch.optim, self.optimizer)(self.parameters())], []

def build(optimizer="AdamW"):
    return Classifier(optimizer), (torch.randn(5, 8), torch.tensor([0, 1, 2, 1, 0]))
"""


@pytest.fixture
def lightning(tmp_path):
    pytest.importorskip("lightning", reason="Lightning is not installed")
    (tmp_path / "lit.py").write_text(LIGHTNING)
    return f"{tmp_path}/lit.py:build"


@pytest.mark.filterwarnings("ignore")
def test_the_step_of_a_lightning_module_without_forward_is_its_training_step(lightning):
    from ampere.runtimes import find_runtime
    from ampere.tracing.trace import trace

    loaded = load_model(lightning)
    network = trace(loaded.model, loaded.inputs)
    assert [(layer.kind, layer.name) for layer in network.layers] == [("linear", "net.0"), ("linear", "net.2")]
    assert [op.op for op in network.layers[-1].trailing] == ["reduce", "reduce"]
    training = find_runtime("torch").build({"factory": loaded.factory}, TrainingSetup(optimizer="adam"))
    training.step()
    first = training.last_loss()
    for _ in range(50):
        training.step()
    assert training.last_loss() < first


@pytest.mark.filterwarnings("ignore")
def test_a_lightning_module_is_called_with_its_batch_by_what_takes_it(lightning, tmp_path):
    from ampere.runtimes import find_runtime
    from ampere.tracing.trace import trace

    forward = "    def forward(self, x):\n        return self.net(x).sum(1)\n\n    def training_step"
    (tmp_path / "both.py").write_text(LIGHTNING.replace("    def training_step", forward))
    loaded = load_model(f"{tmp_path}/both.py:build")
    whole, alone = trace(loaded.model, loaded.inputs), trace(loaded.model, loaded.inputs[:1])
    assert [op.op for op in whole.layers[-1].trailing] == ["reduce", "reduce"]  # cross entropy
    assert whole != alone
    find_runtime("torch").build({"factory": loaded.factory}, TrainingSetup()).step()


def test_lazy_layers_get_their_sizes_from_the_inputs(tmp_path):
    from ampere.runtimes import find_runtime
    from ampere.runtimes.plain_script import plain_step
    from ampere.tracing.trace import trace

    (tmp_path / "lazy.py").write_text(
        "import torch\nfrom torch import nn\n"
        "def build(): return nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2)), "
        "torch.randn(2, 3, 8, 8)\n"
    )
    loaded = load_model(f"{tmp_path}/lazy.py:build")
    layers = trace(loaded.model, loaded.inputs).layers
    assert [(layer.kind, layer.channels_in) for layer in layers] == [("conv", 3), ("norm_batch", 4), ("linear", 144)]
    parameters = 3 * 4 * 9 + 4 + 8 + 144 * 2 + 2
    assert find_runtime("torch").build({"factory": loaded.factory}, TrainingSetup()).parameters == parameters
    task = {"arguments": {}, "inputs": None, "optimizer": ["torch.optim:SGD", {"lr": 0.01}]}
    assert plain_step(task, find_function(f"{tmp_path}/lazy.py", "build")).parameters == parameters
    with pytest.raises(ModelError, match=r"the first call of .*lazy\.py:build, which sizes its lazy layers, raised"):
        load_model(f"{tmp_path}/lazy.py:build", "2x3")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("made", "name"),
    [("AdamW", "adamw"), ("SGD", "sgd"), ("momentum", "momentum"), ("Adagrad", None), ("schedule", None)],
)
def test_the_optimizer_of_a_lightning_module_is_read(lightning, made, name):
    assert load_model(lightning, optimizer=made).optimizer == name


def test_threads_load_and_trace_one_model_at_a_time(tmp_path, monkeypatch):
    """As the devices of a fleet do: a model in a package is imported anew each time, and traced with hooks."""
    package = tmp_path / "threaded_nets"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "sizes.py").write_text("import time\ntime.sleep(0.02)\nWIDTH = 4\n")
    lines = [
        "import time",
        "import torch",
        "from .sizes import WIDTH",
        "time.sleep(0.02)",
        "def build(): time.sleep(0.02); print('hello'); return torch.nn.Linear(WIDTH, 2), torch.randn(3, WIDTH)",
    ]
    (package / "net.py").write_text("\n".join(lines))
    monkeypatch.setattr(sys, "argv", ["ampere", "fleet"])
    before = sys.stdout, random.getstate()

    def traced(_):
        return trace_loaded(load_model(f"{package / 'net.py'}:build"))

    with ThreadPoolExecutor(8) as pool:
        networks = list(pool.map(traced, range(16)))
    assert all(network == networks[0] for network in networks)
    assert (sys.stdout, random.getstate(), sys.argv) == (*before, ["ampere", "fleet"])
