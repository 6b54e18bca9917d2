"""An evaluation that takes seconds: a simulated device, few networks, and every experiment."""

from dataclasses import dataclass

import pytest

from ampere.evaluation import running
from ampere.evaluation.plan import Plan
from ampere.evaluation.running import run
from ampere.evaluation.session import Folder, Session

DEVICE = "simulated:server"  # whose steps are dominated by layers: half of the energy can be pruned


@dataclass(frozen=True)
class Tiny(Plan):
    quick: bool = True
    chosen_devices: tuple[str, ...] = (DEVICE,)

    def families(self, device):
        return ("lenet5", "cnn5")

    def baselines(self, device, family):
        return super().baselines(device, family)[:1]

    def networks(self, family):
        return 4

    def profile_seconds(self, device, family):
        return super().profile_seconds(device, family) / 4

    @property
    def rounds(self):
        return 1

    def either(self, quick, full):
        return min(quick, 3) if quick < 6 else 6


@pytest.fixture
def session(tmp_path):
    with Session(Folder(tmp_path / "out"), Tiny()) as session:
        yield session


@pytest.fixture(scope="session")
def evaluated(tmp_path_factory):
    """The folder and the results of all experiments, run once."""
    with Session(Folder(tmp_path_factory.mktemp("evaluated")), Tiny()) as session:
        return session.folder, {result.experiment: result for result in run(running.in_paper_order(), session)}
