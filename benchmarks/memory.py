"""Estimated peak memory of training against real peaks, each in a fresh process with default settings.

    python benchmarks/memory.py [MODEL...] [--processes 3]      40 models

Peaks and touches are kept as soon as they are read, and the same command goes on from there. Estimates are made anew
each time: from the trace alone, and with a touch as `ampere estimate` does it, in other processes.

The loop knows nothing of Ampere: a model, an optimizer, forward, backward, step, until its peak is steady; the peak is
the process's own (VmHWM). Beside the estimate: PyTorch's MemTracker under fake tensors, and parameters x (2 + the
optimizer's state); both know nothing of the training library's own memory, so the same runtime is added to them.
"""

import argparse
import json
import subprocess
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from types import ModuleType

sys.path.insert(0, str(Path(__file__).parent))

import memory_further
import memory_models
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker

import ampere
from ampere.api.touching import PROCESSES, USUAL_SECONDS
from ampere.core import Measurement, Meter, Network, TrainingSetup
from ampere.core.allocations import resident_peak
from ampere.core.measurement import PEAK_BYTES, PEAK_STEPS, RESTING_BYTES, windows_from_json
from ampere.core.optimizers import OPTIMIZERS
from ampere.estimation.memory import memory_of, peak_seen
from ampere.profiling.experiment import Experiment
from ampere.profiling.plain_processes import SHOWN, Effort, PlainProcess, in_turn, started_at_once
from ampere.runtimes.torch_model import training_loss
from ampere.storage.profile import Observation
from ampere.tracing.copying import fake_copy
from ampere.tracing.memory import allocations_of

STEPS, MOST_STEPS = 4, 10  # it ends when two steps have added nothing
UNNAMED = Network((), 1)  # touches of different models differ by name here
SETS = {
    "development": memory_models.DEVELOPMENT,
    "unseen": memory_models.UNSEEN,
    "further": memory_further.FURTHER,
}
OPTIMIZER_OF = {name: optimizer for models in SETS.values() for name, optimizer in models.items()}
LOOP = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch
import memory_further, memory_models

def resident(name):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(name))

model, inputs = getattr(memory_further if sys.argv[2] in memory_further.FURTHER else memory_models, sys.argv[2])()
place, arguments = json.loads(sys.argv[3])
module, _, name = place.partition(":")
optimizer = getattr(__import__(module, fromlist=[name]), name)(
    [p for p in model.parameters() if p.requires_grad], **arguments
)
labels, peaks = None, []
fewest, most = int(sys.argv[4]), int(sys.argv[5])
while len(peaks) < fewest or (len(peaks) < most and peaks[-1] > 1.002 * peaks[-3]):
    optimizer.zero_grad()
    output = model(inputs)
    if isinstance(output, dict):
        loss = output["loss"]
    elif output.dim() == 2:
        labels = torch.randint(output.shape[1], (len(output),)) if labels is None else labels
        loss = torch.nn.functional.cross_entropy(output, labels)
    else:
        loss = output.square().mean()
    loss.backward()
    optimizer.step()
    peaks.append(resident("VmHWM"))
print(json.dumps(peaks))
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=list(OPTIMIZER_OF))
    parser.add_argument("--processes", type=int, default=3, help="of each model (default 3)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "memory.json")
    parser.add_argument("--peaks-only", action="store_true", help="train now, estimate later")
    options = parser.parse_args()
    kept = {row["model"]: row for row in json.loads(options.out.read_text())["rows"]} if options.out.exists() else {}
    for _ in range(options.processes):  # in turn over all models
        for name in options.models:
            row = kept.setdefault(name, {"model": name, "optimizer": OPTIMIZER_OF[name], "peaks": []})
            if len(row["peaks"]) < options.processes:
                row["peaks"].append(real_peaks(name))
                shown = "  ".join(f"{peak / 1e6:.0f}" for peak in row["peaks"][-1])
                print(f"{name:22} peak after each step in MB: {shown}", flush=True)
            if "touches" not in row:
                row["touches"] = touches(name)
                shown = ", ".join(f"{each[PEAK_BYTES] / 1e6:.0f} ({each[PEAK_STEPS]} steps)" for each in row["touches"])
                print(f"{name:22} peak of each process of a touch: {shown}", flush=True)
            keep(options.out, kept)
    if options.peaks_only:
        return
    rows, runtime = [], runtime_bytes()
    print(f"a worker at rest takes {runtime / 1e6:.0f} MB")
    heads = (
        ("measured", 9),
        ("trace", 9),
        ("error", 8),
        ("touch", 9),
        ("error", 8),
        ("MemTracker", 11),
        ("parameters", 11),
    )
    print(f"{'model, in MB':22}" + "".join(f"{name:>{width}}" for name, width in heads))
    for name in options.models:
        kept[name] = compared(kept[name], runtime)
        rows.append(kept[name])
        print(line(rows[-1]), flush=True)
        keep(options.out, kept)
    for which, chosen in SETS.items():
        for column in ("error", "touch_error"):
            errors = [row[column] for row in rows if row["model"] in chosen]
            if errors:
                how = "with a touch" if column == "touch_error" else "trace alone"
                good = sum(-0.05 <= error <= 0.10 for error in errors)
                reach = f"{min(errors):+.1%} to {max(errors):+.1%}"
                print(f"{which}, {how}: {good} of {len(errors)} within -5 % and +10 %; {reach}")


def keep(out: Path, rows: dict[str, dict]) -> None:
    out.write_text(json.dumps({"steps": STEPS, "rows": list(rows.values())}, indent=1) + "\n")


def line(row: dict) -> str:
    names = ("measured", "estimate", "touch_estimate", "mem_tracker", "parameters")
    measured, traced, touched, tracker, parameters = (
        "-" if row[name] is None else f"{row[name] / 1e6:.0f}" for name in names
    )
    inside = [how for how, key in (("trace", "inside"), ("touch", "touch_inside")) if row[key]]
    head = f"{row['model']:22}{measured:>9}{traced:>9}{row['error']:>+8.1%}{touched:>9}{row['touch_error']:>+8.1%}"
    return f"{head}{tracker:>11}{parameters:>11}   inside the interval: {', '.join(inside) or 'none'}"


def compared(row: dict, runtime: float) -> dict:
    name, optimizer = row["model"], row["optimizer"]
    model, inputs = getattr(home_of(name), name)()
    allocations = allocations_of(model, (inputs,), optimizer)
    found = memory_of(allocations, len(inputs), runtime)
    seen = peak_seen([as_observation(answer) for answer in row["touches"]], UNNAMED)
    guided = memory_of(allocations, len(inputs), runtime, seen=seen, seen_step=resident_peak(allocations))
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    counted = 4 * sum(p.numel() for p in model.parameters()) + 4 * trained * (1 + OPTIMIZERS[optimizer].state)
    tracked = mem_tracker(model, inputs, optimizer)
    measured = median(peaks[-1] for peaks in row["peaks"])
    return {
        **row,
        "measured": measured,
        "estimate": found.bytes,
        "error": found.bytes / measured - 1,
        "inside": found.interval[0] <= measured <= found.interval[1],
        "touch_estimate": guided.bytes,
        "touch_error": guided.bytes / measured - 1,
        "touch_inside": guided.interval[0] <= measured <= guided.interval[1],
        "mem_tracker": tracked and tracked + runtime,
        "parameters": counted + runtime,
    }


def runtime_bytes() -> float:
    """What the training library takes by itself, as a worker measures it for every profile."""
    setup = TrainingSetup(threads=torch.get_num_threads())
    workload = {"factory": f"{memory_models.__file__}:small_cnn", "arguments": {}}
    block = ampere.device("local").worker("system").block(workload, setup, iterations=2, isolation="fork")
    return block.conditions[RESTING_BYTES]


def home_of(name: str) -> ModuleType:
    return memory_further if name in memory_further.FURTHER else memory_models


def touches(name: str) -> list[dict]:
    """What the processes say that `ampere estimate` trains the model's own code in."""
    experiment = Experiment(
        UNNAMED, {"factory": f"{home_of(name).__file__}:{name}", "arguments": {}}, "touch", "system"
    )
    setup = TrainingSetup(optimizer=OPTIMIZER_OF[name], threads=torch.get_num_threads())
    effort = Effort(USUAL_SECONDS, fewest=1, most=PROCESSES, ends_sharply=True)
    with ExitStack() as ending:
        waiting = started_at_once(experiment, setup, effort, ending)
        for process in waiting:
            process.wait()
        answers = in_turn(waiting, partial(PlainProcess, experiment, setup, effort, ending), effort)
        return [{field: answer[field] for field in ("windows", *SHOWN)} for answer in answers]


def as_observation(answer: dict) -> Observation:
    conditions = {name: float(answer[name]) for name in SHOWN}
    meter = Meter("none", False)
    seen = Measurement(windows_from_json(answer["windows"]), (), meter, "system", conditions=conditions)
    return Observation(UNNAMED, seen, "touch")


def real_peaks(name: str) -> list[int]:
    """The peak of a new process after each of its steps."""
    made = json.dumps(OPTIMIZERS[OPTIMIZER_OF[name]].made_by["torch"])
    words = [sys.executable, "-c", LOOP, str(Path(__file__).parent), name, made, str(STEPS), str(MOST_STEPS)]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)


def mem_tracker(model: torch.nn.Module, inputs: torch.Tensor, optimizer: str) -> float | None:
    """The peak that PyTorch's own tracker sees; None where it fails."""
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            copied = fake_copy(model, torch.float32)
            given = torch.empty(inputs.shape, dtype=inputs.dtype)
            made = OPTIMIZERS[optimizer].make("torch", [p for p in copied.parameters() if p.requires_grad])
            tracker = MemTracker()
            tracker.track_external(copied, made, given)
            with tracker:
                for _ in range(2):
                    made.zero_grad()
                    training_loss(copied(given)).backward()
                    made.step()
                    tracker.reset_mod_stats()
            peak = tracker.get_tracker_snapshot("peak")
        return float(sum(each["Total"] for each in peak.values()))
    except Exception:
        return None


if __name__ == "__main__":
    main()
