import numpy as np
import pytest
from tests.synthetic import chain, measured, random_chains

from ampere.estimation.additive import Additive
from ampere.estimation.learning import learn
from ampere.estimation.lookup_table import LookupTable, Template, template

LARGEST = [16, 48, 64]


@pytest.fixture(scope="module")
def model() -> Additive:
    return learn(measured(random_chains(1, 30)))


@pytest.fixture(scope="module")
def opened() -> Template:
    return template(LARGEST, lambda widths: chain(3, *widths))


def some_widths(count: int) -> np.ndarray:
    rng = np.random.default_rng(4)
    return np.stack([rng.integers(1, largest + 1, count) for largest in LARGEST], axis=1)


def test_a_template_gives_back_the_traced_network(opened: Template) -> None:
    for widths in some_widths(20):
        traced = chain(3, *map(int, widths))
        assert [(x.kind, x.channels_in, x.channels_out) for x in opened.network(widths).layers] == [
            (x.kind, x.channels_in, x.channels_out) for x in traced.layers
        ]


@pytest.mark.parametrize("system", [False, True])
def test_a_lookup_table_agrees_with_single_estimates(model: Additive, opened: Template, system: bool) -> None:
    widths = some_widths(50)
    table = LookupTable(model, opened, system)
    seconds, stddevs = table.seconds_and_stddevs(widths)
    single = [model.answer(opened.network(w), system) for w in widths]
    assert seconds == pytest.approx([a.seconds for a in single], rel=1e-3)
    assert stddevs == pytest.approx([a.stddev for a in single], rel=0.02)
    assert table.seconds(widths) == pytest.approx(seconds)


def test_a_table_of_sums_only_has_the_same_seconds(model: Additive, opened: Template) -> None:
    widths = some_widths(50)
    assert LookupTable(model, opened, stddevs=False).seconds(widths) == pytest.approx(
        LookupTable(model, opened).seconds(widths)
    )


@pytest.mark.parametrize("system", [False, True])
def test_all_networks_of_a_box_cost_what_each_does(model: Additive, opened: Template, system: bool) -> None:
    sums, rng = LookupTable(model, opened, system, stddevs=False).sums, np.random.default_rng(2)
    for _ in range(20):
        box = [tuple(np.sort(rng.integers(1, largest + 1, 2)).tolist()) for largest in LARGEST]
        ranges = [np.arange(low, high + 1) for low, high in box]
        widths = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1)
        found = sums.seconds_in(box)
        assert found.shape == widths.shape[:-1]
        np.testing.assert_allclose(found.ravel(), sums.seconds(widths.reshape(-1, len(box))), rtol=1e-12)
