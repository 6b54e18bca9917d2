"""Every family and space: builds, trains, samples the same from the same seed, and stays in its bounds."""

import json
import subprocess
import sys
from random import Random

import pytest

from ampere.models import FAMILIES, SPACES, load_model

torch = pytest.importorskip("torch")
EVERY_SPACE = pytest.mark.parametrize("name", SPACES)


def train_one_step(loaded):
    optimizer = torch.optim.SGD(loaded.model.parameters(), lr=0.01)
    loss = loaded.model(*loaded.inputs).square().mean()
    loss.backward()
    optimizer.step()
    return float(loss.detach())


@EVERY_SPACE
def test_the_original_trains_a_step_and_every_parameter_gets_a_gradient(name):
    loaded = load_model(name)
    assert torch.isfinite(torch.tensor(train_one_step(loaded)))
    assert all(parameter.grad is not None for parameter in loaded.model.parameters())


@EVERY_SPACE
def test_thirty_samples_build_with_the_batch_they_say(name):
    rng = Random(7)
    with torch.no_grad():
        for _ in range(30):
            arguments = SPACES[name].sample(rng)
            loaded = load_model(name, **arguments)
            assert loaded.inputs[0].shape[0] == arguments["batch"]
            assert len(loaded.model(*loaded.inputs)) == arguments["batch"]


@EVERY_SPACE
def test_the_same_seed_samples_the_same_networks(name):
    sample = SPACES[name].sample
    first, again, other = ([sample(rng) for _ in range(5)] for rng in (Random(3), Random(3), Random(4)))
    assert first == again != other


@EVERY_SPACE
def test_arguments_are_plain_json_and_name_what_the_factory_takes(name):
    space, rng = SPACES[name], Random(1)
    for arguments in [space.default, *(space.sample(rng) for _ in range(20))]:
        assert json.loads(json.dumps(arguments)) == arguments
        assert set(arguments) == set(space.default)


def numbers(value):
    return [n for part in value for n in numbers(part)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", ["lenet5", "cnn5", "har"])
def test_a_familys_widths_go_from_one_to_the_originals(name):
    space, rng = SPACES[name], Random(5)
    for arguments in (space.sample(rng) for _ in range(200)):
        for key, original in space.default.items():
            assert all(1 <= n <= o for n, o in zip(numbers(arguments[key]), numbers(original), strict=True))


def test_lstm_and_transformer_samples_stay_in_their_ranges():
    rng = Random(2)
    for lstm, transformer in ((FAMILIES["lstm"].sample(rng), FAMILIES["transformer"].sample(rng)) for _ in range(200)):
        assert 1 <= len(lstm["hidden"]) <= 5
        assert all(1 <= width <= 128 for width in lstm["hidden"])
        assert 1 <= transformer["layers"] <= 6
        assert 16 <= transformer["width"] <= 256
        assert transformer["width"] % transformer["heads"] == 0


def test_general_samples_stay_in_their_ranges():
    rng = Random(2)
    for _ in range(200):
        cnn, transformer, recurrent = (SPACES[n].sample(rng) for n in ("cnn", "transformers", "recurrent"))
        assert 1 <= cnn["batch"] <= 32
        assert 1 <= len(cnn["convs"]) <= 8
        assert all(1 <= conv["channels"] <= 256 for conv in cnn["convs"])
        assert 16 <= transformer["width"] <= 384
        assert transformer["width"] % transformer["heads"] == 0
        assert 8 <= transformer["sequence"] <= 128
        assert all(8 <= width <= 256 for width in recurrent["hidden"])
        assert 4 <= recurrent["sequence"] <= 64


def test_a_bottleneck_resnet_trains_too():
    loaded = load_model("resnet", bottleneck=True, blocks=[1, 2, 1], widths=[4, 8, 16], batch=2)
    assert train_one_step(loaded) >= 0


def test_spaces_are_known_without_torch():
    code = "import sys, ampere.models; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
