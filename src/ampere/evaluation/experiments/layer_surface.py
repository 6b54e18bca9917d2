"""The convolutions of the 5-layer CNN over their channels: what was profiled, what is estimated, what tests show.

All joules are of the layer itself:

    surface    the estimate of a layer with these channels, by Ampere and by the paper's method
    profiled   a measured variant of at most three layers, less the estimates of its other parts     equation (2)
    test       such a layer with random channels, trained alone, less the fixed cost of a step and of the loss
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from random import Random
from statistics import mean
from typing import Any

import numpy as np

from ampere.core import Layer, Network
from ampere.estimation.estimator import Estimator
from ampere.evaluation.drawing import by, colour_of, shared_legend, unit_for
from ampere.evaluation.jobs import BlocksJob, Job, ProfileJob, Record, baselines_of, of_family
from ampere.evaluation.layers import measured
from ampere.evaluation.plan import PAPERS, Plan, title_of
from ampere.evaluation.session import Session
from ampere.models.loading import find_space
from ampere.profiling.experiment import Experiment, of_layers
from ampere.profiling.sources import SpaceSource
from ampere.pruning.checking import joules_of
from ampere.reporting.plotting import INK, MUTED, label_axes
from ampere.reporting.words import joules_origin, method_name

TITLE = "profiled points, test points and estimated surface of convolutions"
FIGURE = "Fig. 11, 12"

FAMILY, BATCH, GRID = "cnn5", 10, 12
LAYERS_AT_MOST = 3  # of a variant that shows what one of its layers costs


@lru_cache(maxsize=1)
def original() -> tuple[Layer, ...]:
    return SpaceSource(find_space(FAMILY)).original().network.layers


def output() -> Layer:
    return original()[-1]


def surfaces() -> dict[str, Layer]:
    """The original's hidden convolutions, one of each function of the channels: the widest."""
    hidden = [layer for layer in original() if layer.kind == "conv" and layer.channels_in > 1]
    return {f"{layer.config['size_in'][0]} x {layer.config['size_in'][1]}": layer for layer in hidden}


def test_channels(plan: Plan, layer: Layer) -> list[tuple[int, int]]:
    rng = Random(f"{plan.seed} {layer.channels_in} {layer.channels_out}")
    widest = layer.channels_in, layer.channels_out
    return [(rng.randint(1, widest[0]), rng.randint(1, widest[1])) for _ in range(plan.either(8, 40))]


def test_job(plan: Plan, device: str) -> BlocksJob:
    def build() -> list[Experiment]:
        places = [(layer, c) for layer in surfaces().values() for c in test_channels(plan, layer)]
        return [of_layers([layer.with_channels(*c)], BATCH) for layer, c in places]

    return BlocksJob(
        device, "conv-tests", build, 2 * plan.either(8, 40), plan.either(2, 6), 0.08, of_family(plan, device, FAMILY)
    )


def profiles(plan: Plan, device: str) -> tuple[ProfileJob, ...]:
    """Ampere's, and the paper's method's."""
    ours = of_family(plan, device, FAMILY)
    return ours, *baselines_of(plan, ours, (PAPERS,))


def jobs(plan: Plan) -> list[Job[Any]]:
    found: list[Job[Any]] = []
    for device in plan.large_devices:
        found += [*profiles(plan, device), test_job(plan, device)]
    return found


def records(session: Session) -> Iterator[Record]:
    plan = session.plan
    for device in plan.large_devices:
        estimators = {job.method: Estimator(session.get(job)) for job in profiles(plan, device)}
        ours = estimators[of_family(plan, device, FAMILY).method]
        tests = iter(session.get(test_job(plan, device)))
        for name, layer in surfaces().items():
            head = {
                "device": device,
                "device_title": title_of(device),
                "meter": ours.meter.name,
                "joules_are": joules_origin(ours.meter),
                "surface": name,
            }
            for c in test_channels(plan, layer):
                if found := next(tests):
                    alone = of_layers([layer.with_channels(*c)], BATCH).network
                    shown = {**head, **measured(device, found), **_point("test", c)}
                    joules = found.joules - ours.estimate(alone, "tuned").joules + _joules(ours, layer, c)
                    for method, estimator in estimators.items():
                        estimate = _joules(estimator, layer, c)
                        yield {**shown, "method": method, "joules": joules, "estimate": estimate}
            for method, estimator in estimators.items():
                own = {**head, "method": method}
                for c, joules in _profiled(estimator, layer):
                    yield {**own, **_point("profiled", c), "joules": joules, "estimate": _joules(estimator, layer, c)}
                for c in _grid(layer):
                    yield {**own, **_point("surface", c), "estimate": _joules(estimator, layer, c)}


def _point(what: str, channels: tuple[int, int]) -> Record:
    return {"what": what, "channels_in": channels[0], "channels_out": channels[1]}


def _joules(estimator: Estimator, layer: Layer, channels: tuple[int, int]) -> float:
    """Of the layer inside a network: neither the fixed cost of a step nor that of the loss is in it."""
    network = Network((layer.with_channels(*channels), output()), BATCH)
    return estimator.estimate(network, "tuned").layers[0].joules


def _others(estimator: Estimator, network: Network, place: int) -> float:
    """All of a step but one layer."""
    estimate = estimator.estimate(network, "tuned")
    return estimate.joules - estimate.layers[place].joules


def _profiled(estimator: Estimator, layer: Layer) -> Iterator[tuple[tuple[int, int], float]]:
    """Where this function of the channels was trained alone or in a variant, and what the measurement leaves to it."""
    for cost in estimator.costs:
        place = _only_place(cost.network, layer)
        if place is not None and cost.joules is not None and cost.allocator == "tuned":
            seen = cost.network.layers[place]
            joules = joules_of(estimator, cost)[0] - _others(estimator, cost.network, place)
            yield (seen.channels_in, seen.channels_out), joules


def _only_place(network: Network, layer: Layer) -> int | None:
    """The number of the only layer of this function in a variant."""
    if len(network.layers) > LAYERS_AT_MOST:
        return None
    places = [i for i, x in enumerate(network.layers) if x.kind == layer.kind and x.config == layer.config]
    return places[0] if len(places) == 1 else None


def _grid(layer: Layer) -> list[tuple[int, int]]:
    def along(widest: int) -> list[int]:
        return sorted({round(1 + (widest - 1) * i / (GRID - 1)) for i in range(GRID)})

    return [(i, o) for i in along(layer.channels_in) for o in along(layer.channels_out)]


MARKS = {"profiled": "profiled: measured, less the other parts", "test": "test: trained alone, less the rest of a step"}
FARTHEST = 20  # percent of a test that the colours of differences reach to


def draw(figure: Any, records: Sequence[Record]) -> None:
    """A row for each device and size: surfaces with what was measured, then how far each test is from them."""
    rows = [(d, s, own) for d, all_ in by(records, "device_title").items() for s, own in by(all_, "surface").items()]
    methods = list(by(records, "method"))
    columns = 2 * len(methods)
    figure.set_size_inches(2.75 * columns + 0.6, 2.9 * len(rows) + 0.3)
    grid = figure.add_gridspec(len(rows), columns, width_ratios=[1.25] * len(methods) + [1.0] * len(methods))
    for i, (device, size, own) in enumerate(rows):
        shared = unit_for(r["estimate"] for r in own if r["what"] == "surface")
        top = max(r.get(key, 0.0) for r in own for key in ("estimate", "joules")) / shared[0]
        below = []
        for j, (method, parts) in enumerate(by(own, "method").items()):
            kinds = by(parts, "what")
            above = figure.add_subplot(grid[i, j], projection="3d")
            _surface(above, f"{device}, {size} pixels\n{method_name(method)}", kinds, method, *shared)
            above.set_zlim(0, top)
            below.append(figure.add_subplot(grid[i, len(methods) + j]))
            shown = _differences(below[-1], method, kinds)
        figure.colorbar(shown, ax=below, label="(estimate - test) / test [%]", shrink=0.85, extend="both")
    shared_legend(figure)


def _surface(axes: Any, title: str, kinds: dict[str, list[Record]], method: str, scale: float, unit: str) -> None:
    x, y = (sorted({r[key] for r in kinds["surface"]}) for key in ("channels_in", "channels_out"))
    heights = {(r["channels_in"], r["channels_out"]): r["estimate"] / scale for r in kinds["surface"]}
    z, colour = np.array([[heights[i, o] for i in x] for o in y]), colour_of(method)
    axes.plot_surface(*np.meshgrid(x, y), z, color=colour, alpha=0.22, edgecolor=colour, linewidth=0.3)
    for kind, mark, ink in (("profiled", "o", INK), ("test", "x", "#cc3311")):
        own = kinds.get(kind, [])
        places = [[r[key] for r in own] for key in ("channels_in", "channels_out")]
        heights_of = [r["joules"] / scale for r in own]
        axes.scatter(*places, heights_of, marker=mark, s=16, color=ink, depthshade=False, label=MARKS[kind])
    axes.set_title(f"{title}: energy [{unit}]", loc="left", color=INK, fontsize=9)
    axes.set_xlabel("channels in", fontsize=8.5, labelpad=-4)
    axes.set_ylabel("channels out", fontsize=8.5, labelpad=-2)
    axes.locator_params(nbins=5)
    axes.tick_params(labelsize=8, pad=-2)
    axes.view_init(24, -128)
    axes.set_box_aspect((1, 1, 0.8), zoom=1.0)


def _differences(axes: Any, method: str, kinds: dict[str, list[Record]]) -> Any:
    seen = kinds.get("profiled", [])
    spots = [r["channels_in"] for r in seen], [r["channels_out"] for r in seen]
    axes.scatter(*spots, s=9, color=MUTED, marker="+", lw=0.8, zorder=1, label="channels of profiled points")
    tests = kinds.get("test", [])
    errors = [100 * (r["estimate"] / r["joules"] - 1) for r in tests]
    look = {"cmap": "PuOr", "vmin": -FARTHEST, "vmax": FARTHEST, "edgecolors": INK, "linewidths": 0.6}
    places = [r["channels_in"] for r in tests], [r["channels_out"] for r in tests]
    shown = axes.scatter(*places, c=errors, s=38, zorder=2, **look)
    words = f"{method_name(method)}\ntests {mean(map(abs, errors)):.1f} % off" if errors else method_name(method)
    label_axes(axes, words, "channels in", "channels out")
    axes.title.set_fontsize(9)
    return shown
