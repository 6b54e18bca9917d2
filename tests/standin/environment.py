"""The environment in which PyTorch finds the stand-in accelerator: a package of others, by its entry point."""

import json
import os
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
