"""Where profiles are stored by default."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from platformdirs import user_data_dir

from ampere.core import TrainingSetup
from ampere.core.errors import StorageError
from ampere.core.setup import CPU, DTYPES, OPTIMIZERS


def home() -> Path:
    """The folder of all that Ampere stores: AMPERE_HOME, or the user's data folder."""
    given = os.environ.get("AMPERE_HOME")
    if given:
        return Path(given)
    with suppress(RuntimeError):  # of newer versions; older ones leave the ~
        folder = Path(user_data_dir("ampere", appauthor=False))
        if folder.is_absolute():
            return folder
    raise StorageError("you have no home folder to store profiles in: set AMPERE_HOME to a folder")


def default_path(
    fingerprint: Mapping[str, Any], setup: TrainingSetup, method: str = "additive", timing: str = "yardstick"
) -> Path:
    """The profile's file: one for each device and setup, and for each method or timing that is not the default.

    All numbers of threads share one.

    A file from before machines of one model were distinguished stays in use while this machine has none of its own.
    """
    how = [setup.family, *(word for word in (method, timing) if word not in ("additive", "yardstick"))]
    paths = [home() / "profiles" / f"{'-'.join(map(_file_name, (name, *how)))}.json" for name in _ids(fingerprint)]
    return next((path for path in paths if path.exists() or journal_path(path).exists()), paths[0])


def journal_path(profile_path: Path) -> Path:
    """The journal that a profile is made from, next to it."""
    return profile_path.with_name(profile_path.name + ".journal")


def calibration_path(fingerprint: Mapping[str, Any]) -> Path:
    """Where the calibrated watts of a device's cores are kept."""
    return home() / "calibrations" / f"{_file_name(str(fingerprint['id']))}.json"


def fits_folder() -> Path:
    """Where fits of profiles are kept, which may be deleted at any time."""
    return home() / "fits"


def id_of_model(device: Mapping[str, Any]) -> str:
    """The id without the machine: that of files from before machines were distinguished."""
    return str(device["id"]).replace(f"_{device.get('machine_id')}", "")


def _ids(fingerprint: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys([str(fingerprint["id"]), id_of_model(fingerprint)]))


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text)[:80].strip("-") or "device"


SETUP_IN_NAME = re.compile(
    r"(?P<runtime>.+?)-(?P<optimizer>\w+)-(?P<dtype>\w+)(-on-(?P<kind>[a-z]+)(_(?P<index>\d+))?)?"
)


def stored_setups(fingerprint: Mapping[str, Any]) -> list[TrainingSetup]:
    """The setups of which a device has a profile in its usual place, as their file names say: without their threads."""
    prefixes = [f"{_file_name(name)}-" for name in _ids(fingerprint)]
    names = [path.stem[len(p) :] for p in prefixes for path in sorted((home() / "profiles").glob(f"{p}*.json"))]
    found = [match.groupdict() for name in names if (match := SETUP_IN_NAME.fullmatch(name))]
    return [
        TrainingSetup(record["runtime"], record["optimizer"], record["dtype"], on=_place(record))
        for record in found
        if record["dtype"] in DTYPES and record["optimizer"] in OPTIMIZERS
    ]


def _place(record: Mapping[str, str | None]) -> str:
    """The processor in a file's name; the CPU where it names none."""
    index = f":{record['index']}" if record["index"] else ""
    return f"{record['kind'] or CPU}{index}"
