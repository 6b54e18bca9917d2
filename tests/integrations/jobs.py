"""A tiny training whose joules are known: each step drains a simulated battery by a joule."""

import runpy
from pathlib import Path

from torch import nn

EXAMPLES = Path(__file__).parents[2] / "examples"


def run_example(name, folder, monkeypatch):
    """Runs a script of examples/ in this process, which has imported the library that the script is about."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("AMPERE_HOME", str(folder / "home"))
    monkeypatch.setattr("sys.argv", [name])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


class SimulatedBattery:
    def __init__(self) -> None:
        self.drained = self._mark = 0.0
        self.ends_at = None
        self.about = {"name": "simulated battery", "measured": False, "simulated": True}

    def describe(self):
        return self.about

    def start(self) -> None:
        self._mark = self.drained

    def stop(self) -> float:
        return self.drained - self._mark


class Draining(nn.Module):
    """A step forward costs a joule, and fails where the battery is empty."""

    def __init__(self, battery: SimulatedBattery) -> None:
        super().__init__()
        self.battery, self.linear = battery, nn.Linear(4, 2)

    def forward(self, x):
        if self.battery.drained == self.battery.ends_at:
            raise ZeroDivisionError
        self.battery.drained += 1.0
        return self.linear(x)


def logged_in(folder, tag="ampere/joules_per_step"):
    """Steps and values that TensorBoard would show."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for file in sorted(folder.rglob("events.out.tfevents.*")):
        events = EventAccumulator(str(file))
        events.Reload()
        tags = [known for known in events.Tags()["scalars"] if known.endswith(tag)]
        if tags:
            return [(event.step, event.value) for event in events.Scalars(tags[0])]
    return []
