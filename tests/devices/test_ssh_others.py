"""Over ssh as another user, and with other interpreters: real ones, whichever are on this machine."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.described import described
from tests.sshd import left_behind, server, workers

from ampere.core import Layer, Network
from ampere.core.errors import DeviceError, RuntimeMissingError
from ampere.devices.ssh import Address, SshWorker

LAYERS = {"layers": Network((Layer("linear", {"lead": (8,), "bias": True}, 16, 8),), 8).to_json()}
PLACES = [*sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin/python3")), Path("/usr/bin/python3")]
PRINT_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def version(python):
    try:
        printed = subprocess.run([python, "-c", PRINT_VERSION], capture_output=True, text=True).stdout
    except OSError:
        return None
    return tuple(map(int, printed.split("."))) if printed.strip() else None


INTERPRETERS = {python: found for python in PLACES if (found := version(python))}


@pytest.fixture(scope="module")
def there():
    """In a folder that every user can read."""
    folder = Path(tempfile.mkdtemp(prefix="ampere-ssh-"))
    folder.chmod(0o755)
    try:
        with server(folder) as there:
            there.temporary.chmod(0o777)
            yield there
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def spec(there, python, user=""):
    return f"ssh://{user}127.0.0.1:{there.port}?python={python}"


def device(there, python, user=""):
    return SshWorker(Address.parse(spec(there, python, user).partition(":")[2]))


def trained(far):
    try:
        return f"{far.block(LAYERS, iterations=2, warmup=1).parameters} parameters"
    except RuntimeMissingError as problem:
        return str(problem)


def test_an_interpreter_without_torch_is_one_line(there):
    bare = there.folder / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    python = bare / "bin" / "python3"
    assert described(spec(there, python)).runtimes == ()
    with device(there, python) as far, pytest.raises(RuntimeMissingError) as caught:
        far.block(LAYERS, iterations=2, warmup=1)
    assert str(caught.value).startswith(f"PyTorch is not installed for {python} on 127.0.0.1: pip install torch there")
    assert "\n" not in str(caught.value)
    assert left_behind(there) == []


@pytest.mark.parametrize("wanted", [(3, n) for n in range(8, 15)], ids=lambda v: f"3.{v[1]}")
def test_every_python_from_3_8_says_what_it_is(there, wanted):
    found = [python for python, version in INTERPRETERS.items() if version == wanted]
    if not found:
        pytest.skip(f"there is no Python 3.{wanted[1]} on this machine")
    with device(there, found[0]) as far:
        assert far.identity()["python"].startswith(f"3.{wanted[1]}.")
        assert far.hello()["beat_seconds"] == far.beat_seconds
        assert trained(far) == "136 parameters" or "PyTorch is not installed for" in trained(far)
    assert left_behind(there) == []


def test_a_python_that_is_too_old_says_so(there):
    found = [python for python, version in INTERPRETERS.items() if version < (3, 8)]
    if not found:
        pytest.skip("there is no Python before 3.8 on this machine")
    with pytest.raises(DeviceError, match=r"is Python 3\.\d+\.\d+, and 3\.8 is the oldest that will do"):
        described(spec(there, found[0]))
    assert left_behind(there) == []


@pytest.fixture(scope="module")
def other_user():
    if os.getuid() != 0 or not shutil.which("useradd"):
        pytest.skip("only root can make another user (useradd)")
    name = f"ampere{os.getpid()}"
    made = subprocess.run(
        ["useradd", "--no-create-home", "--password", "*", "--shell", "/bin/sh", name], capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"no other user can be made here: {made.stderr.strip()}")
    yield name
    subprocess.run(["userdel", "--force", name], capture_output=True)


def test_another_user(there, other_user):
    ours = Path(there.spec.partition("python=")[2])
    usable = [p for p in (ours, Path("/usr/local/bin/python3"), *INTERPRETERS) if _runs(p, other_user)]
    if not usable:
        pytest.skip("no Python of this machine can be run by another user")
    with device(there, usable[0], f"{other_user}@") as far:
        assert far.hello()["protocol"] == 3
        assert {Path(f"/proc/{pid}").owner() for pid in workers(there)} == {other_user}
        assert {path.owner() for path in there.temporary.iterdir()} == {other_user}
        assert trained(far) == "136 parameters" or f"on {other_user}@127.0.0.1: pip install torch" in trained(far)
    assert left_behind(there) == []


def _runs(python, user):
    try:
        return subprocess.run([python, "-c", PRINT_VERSION], user=user, capture_output=True).returncode == 0
    except OSError:
        return False
