"""The environment in which PyTorch finds the stand-in accelerator: a package of others, by its entry point.

    python -m tests.standin.environment ampere validate cnn5 --on standin --seconds 60
    python -m tests.standin.environment python -m pytest tests/standin/on_the_card.py

Settings of the stand-in come from AMPERE_STANDIN, such as '{"nvml": {}}' for a card with a meter.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def standin_environment(folder, **settings):
    """What a process needs in its environment; `settings` are those of tests/standin/ampere_standin.py."""
    information = folder / "ampere_standin-1.0.dist-info"
    if not information.exists():
        information.mkdir(parents=True)
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: ampere-standin\nVersion: 1.0\n")
        (information / "entry_points.txt").write_text("[torch.backends]\nstandin = ampere_standin:load\n")
    path = [str(folder), str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "AMPERE_STANDIN": json.dumps(settings)}


def main():
    with tempfile.TemporaryDirectory() as folder:
        environment = standin_environment(Path(folder), **json.loads(os.environ.get("AMPERE_STANDIN", "{}")))
        sys.exit(subprocess.run(sys.argv[1:], env=environment).returncode)


if __name__ == "__main__":
    main()
