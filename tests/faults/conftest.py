"""Real file systems to break, each in a mount namespace that ends with the process that runs in it."""

import shutil
import subprocess
from collections.abc import Callable

import pytest

NAMESPACE = ["unshare", "--mount", "--map-root-user", "sh", "-ec"]


@pytest.fixture(scope="session")
def private_mounts() -> Callable[[str, list[str]], list[str]]:
    """(mount command, command) -> a command that runs in the mounted place."""
    probe = [*NAMESPACE, "mount -t tmpfs -o size=1m tmpfs /tmp"]
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("file systems cannot be mounted here")
    return lambda mount, command: [*NAMESPACE, f'{mount} && exec "$@"', "sh", *command]
