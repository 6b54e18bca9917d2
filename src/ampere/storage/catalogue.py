"""A catalogue: profiles to share, each a file that says whose it is and how it was measured.

    FOLDER/index.json           names and checksums, for a static web address, which lists no files
    FOLDER/pixel-7.json         {"ampere": "catalogue_entry", "sha256": ..., "body": {...}}

An entry names its measurer and its licence. What tells one machine from another (its id, serial numbers, host name)
is left out unless it is wished for. Its home is a folder or a web address.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ampere.core import Meter
from ampere.core.errors import ProfileError, UsageError

from .checks import check_texts, checked
from .files import dumps, loads, read_document, write_document, write_whole
from .places import home
from .profile import Profile

KIND, FORMAT = "catalogue_entry", 1
INDEX = "index.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
LARGEST_DOWNLOAD = 60_000_000
WEB = ("http://", "https://")
SECONDS = 20.0  # to wait for a web address
# What is kept of a device's fingerprint: what it is, not which one.
SHARED = (
    "cpu",
    "cores",
    "machine",
    "system",
    "accelerator",
    "python",
    "torch",
    "runtimes",
    "allocators",
    "vector_width",
    "power_source",
    "worker",
    "memory_bytes",
    "title",
)
TELLING = ("cpu", "cores", "machine", "system")  # what makes two devices alike


@dataclass(frozen=True)
class Entry:
    """A profile of the catalogue, and where it comes from."""

    name: str
    profile: Profile
    measured_by: str
    licence: str
    how: str = ""  # conditions: room, case, charger, what else ran
    date: str = ""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise UsageError(
                f"{self.name!r:.80} cannot name an entry: use letters, digits, dots, hyphens and underscores"
            )
        for what, text in (("who measured it", self.measured_by), ("its licence", self.licence)):
            if not text.strip():
                raise UsageError(f"{self.name} does not say {what}: give --by and --licence")
        with checked(f"the entry {self.name}"):
            check_texts("texts of an entry", (self.measured_by, self.licence, self.how, self.date))

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "measured_by": self.measured_by,
            "licence": self.licence,
            "how": self.how,
            "date": self.date,
            "profile": self.profile.to_json(),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Entry:
        texts = {key: str(record[key]) for key in ("name", "measured_by", "licence", "how", "date")}
        return cls(profile=Profile.from_json(dict(record["profile"])), **texts)

    @property
    def origin(self) -> str:
        """Whose it is, in one line."""
        return f"{self.name}, measured by {self.measured_by} ({self.licence}){f', {self.date}' if self.date else ''}"


def shareable(profile: Profile, name: str, keep_identity: bool = False) -> Profile:
    """The profile without what tells this machine from others of its model, and without recorded runs."""
    device = dict(profile.device)
    if not keep_identity:
        device = {key: value for key, value in device.items() if key in SHARED}
        device["id"] = f"catalogue-{name}"
        observations = tuple(
            replace(o, measurement=replace(o.measurement, meter=_nameless(o.measurement.meter)))
            for o in profile.observations
        )
        profile = replace(profile, meter=_nameless(profile.meter), observations=observations)
    return replace(profile, device=device, runs=(), sources=())


def _nameless(meter: Meter) -> Meter:
    """A phone's meter without its serial number."""
    kind, colon, _ = meter.name.partition(":")
    return replace(meter, name=kind) if colon and kind == "adb" else meter


class Catalogue:
    """Entries in a folder, or at a web address that serves one."""

    def __init__(self, place: str | Path | None = None) -> None:
        """By default AMPERE_CATALOGUE, or the folder `catalogue` of AMPERE_HOME or of the user's data folder."""
        self.place = str(place or os.environ.get("AMPERE_CATALOGUE") or home() / "catalogue")
        self.is_web = self.place.startswith(WEB)

    def names(self) -> list[str]:
        """The names of all entries."""
        if self.is_web:
            return sorted(self._index())
        return sorted(path.stem for path in Path(self.place).glob("*.json") if path.name != INDEX)

    def entry(self, name: str) -> Entry:
        """An entry, after its checksum and contents are checked."""
        if not NAME.fullmatch(name):
            raise UsageError(f"{name!r:.80} cannot be the name of an entry: `ampere catalogue list` shows them")
        if not self.is_web:
            path = Path(self.place) / f"{name}.json"
            if not path.is_file():
                raise UsageError(f"{self.place} has no entry {name}: `ampere catalogue list` shows what it has")
            return _read(path, name, f"{path}")
        expected = self._index().get(name)
        if expected is None:
            raise UsageError(f"{self.place} has no entry {name}: `ampere catalogue list --home {self.place}` shows all")
        raw = self._download(f"{name}.json")
        if sha256(raw).hexdigest() != expected:
            raise ProfileError(f"{self.place}: {name} has another checksum than the index says: ask whoever keeps it")
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.json"
            write_whole(path, raw, wait=False)
            return _read(path, name, f"{self.place}/{name}.json")

    def profile(self, name: str) -> Profile:
        return self.entry(name).profile

    def add(self, entry: Entry) -> Path:
        """Writes an entry and the index beside it."""
        if self.is_web:
            raise UsageError(f"{self.place} is a web address, which can only be read: add to a folder, and upload that")
        path = Path(self.place) / f"{entry.name}.json"
        if path.exists():
            raise UsageError(f"{path} is there already: choose another name, or remove it")
        write_document(path, KIND, FORMAT, entry.to_json())
        self.write_index()
        return path

    def write_index(self) -> None:
        """The names and checksums of all files of the folder."""
        folder = Path(self.place)
        sums = {name: sha256((folder / f"{name}.json").read_bytes()).hexdigest() for name in self.names()}
        write_whole(folder / INDEX, dumps({"ampere": "catalogue", "entries": sums}) + "\n")

    def problems(self) -> dict[str, str]:
        """By name, what is wrong with an entry; "" where nothing is."""
        found = {}
        for name in self.names():
            try:
                self.entry(name)
                found[name] = "" if self.is_web else self._of_index(name)
            except (ProfileError, UsageError) as problem:
                found[name] = str(problem)
        return found

    def _of_index(self, name: str) -> str:
        index = Path(self.place) / INDEX
        if not index.exists():
            return "" if len(self.names()) == 0 else f"{index} is missing: `ampere catalogue add` writes it"
        raw = (Path(self.place) / f"{name}.json").read_bytes()
        known = _entries_in(index.read_bytes(), str(index)).get(name)
        if known is None:
            return f"{name} is not in {index}: add it again"
        return "" if sha256(raw).hexdigest() == known else f"{name} has another checksum than {index} says"

    def _index(self) -> dict[str, str]:
        return _entries_in(self._download(INDEX), f"{self.place}/{INDEX}")

    def _download(self, file: str) -> bytes:
        from urllib.error import URLError
        from urllib.request import Request, urlopen

        address = f"{self.place.rstrip('/')}/{file}"
        try:
            with urlopen(Request(address, headers={"User-Agent": "ampere"}), timeout=SECONDS) as answer:
                raw = answer.read(LARGEST_DOWNLOAD + 1)
        except (URLError, OSError, ValueError) as problem:
            reason = problem.reason if isinstance(problem, URLError) else problem
            raise ProfileError(f"{address} cannot be read ({reason!s:.100}): check the address") from None
        if len(raw) > LARGEST_DOWNLOAD:
            raise ProfileError(f"{address} has more than {LARGEST_DOWNLOAD:,} bytes: it is no catalogue")
        return bytes(raw)


def _entries_in(raw: bytes, where: str) -> dict[str, str]:
    try:
        record = loads(raw.decode("utf-8"))
        entries = {str(name): str(value) for name, value in record["entries"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, json.JSONDecodeError):
        raise ProfileError(f"{where} is no index of a catalogue: check the address") from None
    return {name: value for name, value in entries.items() if NAME.fullmatch(name)}


def _read(path: Path, name: str, where: str) -> Entry:
    body = read_document(path, KIND, FORMAT)
    with checked(where):
        found = Entry.from_json(body)
    if found.name != name:
        raise ProfileError(f"{where} holds the entry {found.name:.80}: rename the file back")
    return found


def alikeness(entry: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """How alike the device of an entry and another one are, in words."""
    same = [key for key in TELLING if entry.get(key) is not None and entry.get(key) == here.get(key)]
    if same == list(TELLING):
        return "the same model as this device"
    differing = [f"{key} {entry.get(key)!s:.40}, here {here.get(key)!s:.40}" for key in TELLING if key not in same]
    return f"another model than this device ({'; '.join(differing)})"
