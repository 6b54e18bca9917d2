"""A device that is not what the profile says: training original and result shows it, and the budget holds."""

from random import Random

import pytest
from tests.pruning.conftest import plain
from tests.synthetic import block, true_seconds

import ampere
from ampere.core import Measurement, Network
from ampere.core.errors import DeviceError, ModelError, UsageError
from ampere.devices import Device
from ampere.models.loading import LoadedModel
from ampere.profiling.experiment import Experiment
from ampere.pruning.checking import CHECKS_AT_MOST, Check, opened_check, why_unchecked
from ampere.pruning.pruning import prune


class Bent:
    """Every network but the original costs `factor` times what the profile learnt; rounds scatter a little."""

    def __init__(self, factor: float, usable: bool = True) -> None:
        self.factor, self.usable, self.rng, self.trained, self.now = factor, usable, Random(0), [], 0.0

    def block(self, workload, setup, **how) -> Measurement:
        network = Network.from_json(workload["layers"])
        self.trained.append(network)
        self.now += 0.2
        bent = 1.0 if (network.layers[0].channels_out, network.layers[1].channels_out) == (24, 40) else self.factor
        seconds = true_seconds(network) * bent * self.rng.gauss(1.0, 0.01)
        return block(seconds, 1e-3, joules=None if self.usable else 0.0)


def check_on(device, image) -> Check:
    def experiment(network):
        return Experiment(network, {"layers": network.to_json()}, "network")

    original = experiment(ampere.trace(plain(), image))
    return Check(device, original, lambda pruned: experiment(pruned.networks[1]), lambda: device.now)


def truly(pruned, factor) -> float:
    before, after = (true_seconds(network) for network in pruned.networks)
    return factor * after / before


@pytest.mark.parametrize("factor", [0.85, 1.0, 1.2])
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_the_budget_holds_on_a_device_that_is_not_as_profiled(model, image, estimator, factor, confidence):
    device = Bent(factor)
    pruned = prune(model, image, 0.5, estimator, confidence=confidence, check=check_on(device, image))
    assert pruned.inside
    assert pruned.measured.share <= 0.5
    assert truly(pruned, factor) == pytest.approx(pruned.measured.share, rel=0.02)
    assert 0.42 < truly(pruned, factor) < 0.505  # as near as whole vectors of two layers allow
    assert pruned.share == pruned.measured.share
    assert pruned.to_json()["measured"]["share"] == pruned.share


def test_what_the_estimate_alone_leaves_misses_it(model, image, estimator):
    assert truly(prune(model, image, 0.5, estimator), 1.2) > 0.55


def test_a_result_that_is_good_at_once_is_checked_once(model, image, estimator):
    device = Bent(1.0)
    prune(model, image, 0.5, estimator, check=check_on(device, image))
    assert len({network.layers for network in device.trained}) == 2


def test_joules_of_an_iteration_are_held_to_what_is_measured(model, image, estimator):
    allowed = 5.0 * 0.6 * true_seconds(ampere.trace(model, image))
    pruned = prune(model, image, f"{allowed}J", estimator, check=check_on(Bent(1.15), image))
    assert pruned.budget_joules == pytest.approx(allowed)
    assert 0.96 * allowed < pruned.measured.joules_after <= allowed


def test_flops_are_measured_and_not_corrected(model, image, estimator):
    device = Bent(1.3)
    pruned = prune(model, image, 0.5, estimator, "flops", check=check_on(device, image))
    assert len({network.layers for network in device.trained}) == 2
    assert not pruned.inside


def test_a_device_beyond_correction_is_reported_as_it_is(model, image, estimator):
    device = Bent(2.4)  # even the narrowest costs more than is allowed
    pruned = prune(model, image, 0.35, estimator, check=check_on(device, image))
    assert not pruned.inside
    assert pruned.measured.share > 0.35
    assert len({network.layers for network in device.trained}) <= 1 + CHECKS_AT_MOST


def test_a_device_on_which_every_result_is_more_expensive_gives_none(model, image, estimator):
    with pytest.raises(ModelError, match=r"more expensive than the original.*measured.*keep the original"):
        prune(model, image, 0.5, estimator, check=check_on(Bent(5.0), image))


def test_rounds_without_a_figure_are_an_error(model, image, estimator):
    with pytest.raises(DeviceError, match="no round gave a usable figure"):
        prune(model, image, 0.5, estimator, check=check_on(Bent(1.0, usable=False), image))


def test_other_devices_than_the_profiles_are_not_measured(profile, image):
    network = ampere.trace(plain(), image)
    assert "another device" in why_unchecked(Device(), profile, network)
    assert "recording" in why_unchecked(Device("replayed:x.json"), profile, network)
    loaded = LoadedModel(plain(), (image,), "plain", "tests.pruning.conftest:plain")
    with (
        pytest.raises(UsageError, match=r"another device.*check=True"),
        opened_check(loaded, Device(), profile, "tuned"),
    ):
        pass
    with pytest.raises(UsageError, match="another device"):
        ampere.prune(loaded, image, "50%", profile, check=True)


def test_a_live_model_is_not_checked_on_another_device_either(model, image, estimator):
    with pytest.raises(UsageError, match="another device"):
        ampere.prune(model, image, "50%", estimator, check=True)


def test_a_simulated_device_is_checked_too(tmp_path):
    made = ampere.profile("cnn5", device="simulated:server", out=tmp_path / "p.json", seconds=20)
    loaded = ampere.load_model("cnn5")
    pruned = ampere.prune(loaded, loaded.inputs, "60%", made.profile, check=True, device="simulated:server")
    assert pruned.measured.rounds >= 4
    assert 0.4 < pruned.measured.share <= 0.6
