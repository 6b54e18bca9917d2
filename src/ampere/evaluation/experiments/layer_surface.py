"""The convolutions of the 5-layer CNN over their channels: what was profiled, what is estimated, what tests show.

A test point is such a layer with random channels, trained alone; the surface is the estimate of exactly that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

from ampere.core import Layer
from ampere.estimation.estimate import Estimator
from ampere.evaluation.drawing import by, unit_for
from ampere.evaluation.jobs import BlocksJob, Job, Record, of_family
from ampere.evaluation.layers import measured
from ampere.evaluation.plan import Plan, title_of
from ampere.evaluation.session import Session
from ampere.models.loading import find_space
from ampere.profiling.experiment import Experiment, of_layers
from ampere.profiling.sources import SpaceSource
from ampere.reporting.plotting import BLUE, FAINT, INK, MUTED, label_axes
from ampere.storage.profile import Profile

TITLE = "profiled points, test points and estimated surface of convolutions"
FIGURE = "Fig. 11, 12"

FAMILY, BATCH, GRID = "cnn5", 10, 12


def surfaces() -> dict[str, Layer]:
    """The original's hidden convolutions, one of each function of the channels: the widest."""
    layers = SpaceSource(find_space(FAMILY)).original().network.layers
    hidden = [layer for layer in layers if layer.kind == "conv" and layer.channels_in > 1]
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


def jobs(plan: Plan) -> list[Job[object]]:
    return [job for device in plan.large_devices for job in (of_family(plan, device, FAMILY), test_job(plan, device))]


def records(session: Session) -> Iterator[Record]:
    plan = session.plan
    for device in plan.large_devices:
        profile = session.get(of_family(plan, device, FAMILY))
        estimator = session.remember(("estimator", device, FAMILY), lambda profile=profile: Estimator(profile))  # type: ignore[misc]
        tests = iter(session.get(test_job(plan, device)))
        for name, layer in surfaces().items():
            head = {"device": device, "device_title": title_of(device), "meter": profile.meter.name, "surface": name}
            for c in test_channels(plan, layer):
                found = next(tests)
                if found:
                    yield {
                        **head,
                        **measured(device, found),
                        **_point("test", c),
                        "estimate": _joules(estimator, layer, c),
                    }
            for c in _profiled(profile, layer):
                yield {**head, **_point("profiled", c), "estimate": _joules(estimator, layer, c)}
            for c in _grid(layer):
                yield {**head, **_point("surface", c), "estimate": _joules(estimator, layer, c)}


def _point(what: str, channels: tuple[int, int]) -> Record:
    return {"what": what, "channels_in": channels[0], "channels_out": channels[1]}


def _joules(estimator: Estimator, layer: Layer, channels: tuple[int, int]) -> float:
    return estimator.estimate(of_layers([layer.with_channels(*channels)], BATCH).network, "tuned").joules


def _profiled(profile: Profile, layer: Layer) -> set[tuple[int, int]]:
    """Where this function of the channels was trained, alone or within a network."""
    config = layer.config
    seen = [x for o in profile.observations for x in o.network.layers if x.kind == layer.kind and x.config == config]
    return {(x.channels_in, x.channels_out) for x in seen}


def _grid(layer: Layer) -> list[tuple[int, int]]:
    def along(widest: int) -> list[int]:
        return sorted({round(1 + (widest - 1) * i / (GRID - 1)) for i in range(GRID)})

    return [(i, o) for i in along(layer.channels_in) for o in along(layer.channels_out)]


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Above: the estimated surface and the test points. Below: how far each test is from it, and what was profiled."""
    columns = [(d, s, rows) for d, own in by(records, "device_title").items() for s, rows in by(own, "surface").items()]
    figure.set_size_inches(3.9 * len(columns) + 0.6, 7.6)
    for i, (device, size, rows) in enumerate(columns):
        kinds = by(rows, "what")
        above = figure.add_subplot(2, len(columns), i + 1, projection="3d")
        _surface(above, f"{device}, {size} pixels", kinds)
        below = figure.add_subplot(2, len(columns), len(columns) + i + 1)
        shown = _differences(below, kinds)
    figure.colorbar(shown, ax=below, label="estimate - test, of the test [%]", shrink=0.8)


def _surface(axes: Any, title: str, kinds: dict[str, list[Record]]) -> None:
    scale, unit = unit_for(r["estimate"] for r in kinds["surface"])
    x, y = (sorted({r[key] for r in kinds["surface"]}) for key in ("channels_in", "channels_out"))
    heights = {(r["channels_in"], r["channels_out"]): r["estimate"] / scale for r in kinds["surface"]}
    z = np.array([[heights[i, o] for i in x] for o in y])
    axes.plot_surface(*np.meshgrid(x, y), z, color=BLUE, alpha=0.25, edgecolor=BLUE, linewidth=0.25)
    for kind, mark, colour in (("profiled", "o", BLUE), ("test", "x", "#c44536")):
        own = kinds.get(kind, [])
        places = [[r["channels_in"] for r in own], [r["channels_out"] for r in own]]
        axes.scatter(
            *places,
            [(r["joules"] if kind == "test" else r["estimate"]) / scale for r in own],
            marker=mark,
            s=14,
            color=colour,
        )
    axes.set_title(title, loc="left", color=INK, fontsize=10)
    axes.set_xlabel("channels in", fontsize=8)
    axes.set_ylabel("channels out", fontsize=8)
    axes.set_zlabel(unit, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.view_init(24, -128)


def _differences(axes: Any, kinds: dict[str, list[Record]]) -> Any:
    seen = kinds.get("profiled", [])
    axes.scatter(
        [r["channels_in"] for r in seen],
        [r["channels_out"] for r in seen],
        s=22,
        color=FAINT,
        label="profiled",
        zorder=1,
    )
    tests = kinds.get("test", [])
    errors = [100 * (r["estimate"] / r["joules"] - 1) for r in tests]
    shown = axes.scatter(
        [r["channels_in"] for r in tests],
        [r["channels_out"] for r in tests],
        c=errors,
        cmap="RdBu_r",
        vmin=-15,
        vmax=15,
        s=34,
        edgecolors=MUTED,
        linewidths=0.5,
        label="test",
        zorder=2,
    )
    mean = sum(map(abs, errors)) / max(1, len(errors))
    label_axes(axes, f"tests (x above) are {mean:.1f} % off; grey: profiled", "channels in", "channels out")
    return shown
