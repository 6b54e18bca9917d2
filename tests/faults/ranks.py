"""Two ranks that train together over gloo on loopback: three jobs, each with one budget for both.

python -m tests.faults.ranks PORT FILE [lightning]     ->  a line of JSON for each job and rank
"""

import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ampere import Budget
from ampere.budget import spending

PORT, COUNTER, LIGHTNING = sys.argv[1], Path(sys.argv[2]), "lightning" in sys.argv
if LIGHTNING:
    import lightning

    from ampere.integrations.lightning import EnergyBudget

RANK = os.fork() and 1  # each library is imported once for both
spending.READINGS_APART = 0


class CountedProcess:
    """A modelled meter: rank 0 spends a joule in each step, rank 1 three."""

    def __init__(self):
        self.spent = self._mark = 0.0

    def describe(self):
        return {"name": "modelled", "measured": False, "scope": "this process"}

    def start(self):
        self._mark = self.spent

    def stop(self):
        return self.spent - self._mark

    def step(self):
        self.spent += 1 + 2 * RANK


class CountedMachine(CountedProcess):
    """A counter of the whole machine, in a file to which both ranks add what they spend."""

    reads = 0

    def describe(self):
        return {"name": "counter", "measured": True, "scope": "the machine"}

    def start(self):
        self._mark = COUNTER.stat().st_size

    def stop(self):
        self.reads += 1
        return COUNTER.stat().st_size - self._mark

    def step(self):
        with COUNTER.open("ab") as file:
            file.write(b"j" * (1 + 2 * RANK))


def say(job, budget, **more):
    said = {"job": job, "rank": RANK, "steps": budget.steps_done, "stopped": budget.stopped, "spent": budget.spent}
    print(json.dumps({**said, "summary": budget.summary(), **more}), flush=True)


def plain_loop():
    """Modelled joules, of which each rank has its own."""
    meter, model = CountedProcess(), DistributedDataParallel(torch.nn.Linear(4, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with Budget(100, meter=meter) as budget:
            for _ in budget.steps(range(1000)):
                time.sleep(0.002 * RANK)  # one rank is slower
                model(torch.randn(3, 4)).sum().backward()
                meter.step()
        say("plain", budget, warned=len(caught))


def lightning_fit():
    """A counter of the machine, which one rank reads; weights are updated after every third batch."""
    meter = CountedMachine()

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(4, 2)

        def training_step(self, batch, index):
            meter.step()
            return self.net(batch).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    budget = Budget(200, meter=meter)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=1,
        accumulate_grad_batches=3,
        callbacks=[EnergyBudget(budget)],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(torch.randn(2000, 4), batch_size=1))
    say("lightning", budget, reads=meter.reads, updates=trainer.global_step)


def a_rank_dies():
    """Rank 0, whose process holds the store, is killed. No update waits for it here, only the budget could."""
    meter = CountedProcess()
    with Budget(300, meter=meter) as budget:
        dist.barrier()
        for step in budget.steps(range(1000)):
            if RANK == 0 and step == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            if RANK == 1 and step == 5:
                time.sleep(1.0)
            meter.step()
    say("death", budget)


if __name__ == "__main__":
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=PORT, LOCAL_RANK=str(RANK), WORLD_SIZE="2")
    dist.init_process_group("gloo", rank=RANK, world_size=2)
    plain_loop()
    if LIGHTNING:
        lightning_fit()
    a_rank_dies()
    os._exit(0)  # without the farewell to a rank that is dead
