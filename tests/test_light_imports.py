"""What must start quickly starts without torch, and what travels starts on the oldest Python promised."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.synthetic import observed, random_chains, true_seconds

from ampere.cli import main
from ampere.core import Meter, TrainingSetup
from ampere.storage import Profile
from ampere.storage.networks import save_network

SRC = Path(__file__).resolve().parents[1] / "src"
LIGHT = {
    "ampere": "import ampere",
    "ampere/models": "import ampere.models",
    "ampere/worker": "import ampere.worker",
    "ampere/web": "import ampere.web.answers, ampere.web.server",
    "ampere/cli": "import ampere.cli\ntry: ampere.cli.main(['--help'])\nexcept SystemExit: pass",
}
HEAVY = ("torch", "jax", "MNN", "transformers", "matplotlib")
HOST_ONLY = ("numpy", "scipy", "rich", "ampere.devices", "ampere.profiling", "ampere.models")


def loaded_of(code, heavy):
    """Which of the heavy modules a fresh Python has loaded after running the code."""
    code += f"\nimport sys\nprint('\\n', *[m for m in {heavy!r} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()[-1].split()


@pytest.mark.parametrize("place", [place for place in LIGHT if (SRC / place).is_dir()])
def test_it_starts_without_torch(place):
    assert loaded_of(LIGHT[place], HEAVY) == []


def test_a_device_needs_nothing_of_the_host():
    assert loaded_of("import ampere.worker, ampere.core", HOST_ONLY) == []


def test_a_stored_profile_estimates_a_network_file_without_what_fits_and_trains(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path))
    networks = random_chains(0, 12)
    seen = [observed(network, true_seconds(network)) for network in networks]
    Profile({"id": "x"}, TrainingSetup(), Meter("synthetic", False), 1e-3, tuple(seen)).save(tmp_path / "profile.json")
    save_network(networks[0], tmp_path / "network.json")
    words = f"estimate {tmp_path}/network.json --profile {tmp_path}/profile.json --device simulated:server".split()
    assert main([*words, "--allow-other-device"]) == 0
    code = f"from ampere.cli import main\nmain({[*words, '--allow-other-device']!r})"
    assert loaded_of(code, ("scipy", "ampere.baselines", "urllib.request", *HEAVY)) == []


def test_models_are_traced_and_their_memory_is_followed_without_the_compiler_which_finds_its_place_empty():
    code = """
import sys, torch
from ampere.tracing.memory import allocations_of
from ampere.tracing.trace import trace
class Joined(torch.nn.Sequential):
    def forward(self, x):
        x = torch.cat([x.abs(), super().forward(x)], 1)
        return torch.stack([x, x]).pow(2).mean((1, 3, 4)) * 2
model = Joined(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.GroupNorm(2, 4), torch.nn.ReLU())
trace(model, torch.ones(2, 3, 8, 8))
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.MaxPool2d(2), torch.nn.ReLU())
allocations_of(model, torch.ones(2, 3, 8, 8), "momentum")
plain = torch.optim.Optimizer.add_param_group.__wrapped__
print("torch._dynamo" in sys.modules, "_dynamo" in vars(torch), hasattr(plain, "__dynamo_disable"))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "False"]


def test_a_client_needs_the_standard_library_only():
    assert loaded_of("import ampere; ampere.Client", (*HOST_ONLY, "starlette", "uvicorn", "platformdirs")) == []


def test_a_worker_without_work_imports_neither_torch_nor_the_host():
    code = "import sys, ampere.worker.serving; print([m for m in sys.modules if m.split('.')[0] in ('torch', 'numpy')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def python_3_8():
    candidates = [shutil.which("python3.8"), *sorted(Path.home().glob(".pyenv/versions/3.8*/bin/python"))]
    for candidate in filter(None, candidates):
        if subprocess.run([candidate, "--version"], capture_output=True, check=False).returncode == 0:
            return str(candidate)
    return None


def test_what_travels_starts_on_python_3_8():
    python = python_3_8()
    if python is None:
        pytest.skip("no Python 3.8 on this machine")
    code = f"import sys; sys.path.insert(0, {str(SRC)!r}); import ampere.core, ampere.worker, ampere.worker.serving"
    ran = subprocess.run([python, "-B", "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
