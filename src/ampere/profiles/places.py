"""Where profiles live unless told otherwise."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from platformdirs import user_data_dir

from ..network import TrainingSetup


def home() -> Path:
    return Path(os.environ.get("AMPERE_HOME") or user_data_dir("ampere", appauthor=False))


def default_path(fingerprint: Mapping[str, Any], setup: TrainingSetup) -> Path:
    return home() / "profiles" / f"{_file_name(str(fingerprint['id']))}-{_file_name(setup.name)}.json"


def journal_path(profile_path: Path) -> Path:
    return profile_path.with_name(profile_path.name + ".journal")


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text)[:80].strip("-") or "device"
