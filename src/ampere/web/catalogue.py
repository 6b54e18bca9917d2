"""What the server answers from: stored profiles, fitted when first asked for, and networks that may be changed.

Nothing is measured, and no code of a model runs here: networks come from files, from `ampere trace`, or from an upload.
"""

from __future__ import annotations

import gc
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

from ampere.core import Network
from ampere.core.errors import AmpereError, ProfileError
from ampere.estimation.estimator import Estimator
from ampere.estimation.features import clear_caches
from ampere.estimation.fitting import BY_LAYER
from ampere.models.spaces import SPACES
from ampere.storage.checks import check_network, checked
from ampere.storage.files import write_whole
from ampere.storage.places import home
from ampere.storage.profile import Profile

from .open_networks import OpenNetwork

MOST_ESTIMATORS = 16  # fitted profiles that are kept
MOST_UPLOADS, MOST_UPLOADED_LAYERS = 64, 20_000
LAYERS_BEFORE_CLEARING = 1_000  # that were estimated; to let go of many takes long
FAMILIES = Path(__file__).with_name("families.json")

Key = TypeVar("Key")
Value = TypeVar("Value")


class NotFound(AmpereError):
    """A profile or network that the server does not have."""

    exit_code = ProfileError.exit_code


class Recent(Generic[Key, Value]):
    """The most recently used values."""

    def __init__(self, most: int) -> None:
        self._most, self._kept, self._lock = most, OrderedDict[Key, Value](), Lock()

    def get(self, key: Key) -> Value | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: Key, value: Value) -> None:
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def forget_oldest(self) -> None:
        with self._lock:
            self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Key]:
        return iter(list(self._kept))

    def values(self) -> list[Value]:
        return list(self._kept.values())


class Catalogue:
    """Stored profiles and known networks, by their names."""

    def __init__(self, networks: Mapping[str, Network] | None = None, folder: Path | None = None) -> None:
        self.folder = folder or home() / "profiles"
        self._given = {name: OpenNetwork(network) for name, network in (networks or {}).items()}
        self._families = families()
        self._uploads = Recent[str, OpenNetwork](MOST_UPLOADS)
        self._estimators = Recent[tuple[str, bool, int, int], Estimator](MOST_ESTIMATORS)
        self._summaries: dict[str, tuple[tuple[int, int], list[dict[str, Any]]]] = {}
        self._fitting, self._layers = Lock(), 0

    # Networks.

    def network(self, name: str) -> OpenNetwork:
        found = self._given.get(name) or self._uploads.get(name) or self._families.get(name)
        if found is None:
            raise NotFound(f"there is no network {name!r:.60}: choose one of {', '.join(self.names)}, or upload it")
        return found

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys([*self._given, *self._uploads, *self._families]))

    def networks(self) -> list[dict[str, Any]]:
        return [self.record(name) for name in self.names]

    def record(self, name: str) -> dict[str, Any]:
        origin = "given" if name in self._given else "family" if name in self._families else "uploaded"
        return network_record(name, self.network(name), origin)

    def upload(self, record: Any) -> str:
        """The name under which a traced network can be asked for from now on; the oldest are forgotten."""
        with checked("the network"):
            record = record["body"] if isinstance(record, dict) and "ampere" in record else record
            network = Network.from_json(record)
            check_network(network)
        digest = sha256(json.dumps(network.to_json(), sort_keys=True).encode()).hexdigest()[:12]
        name = f"{network.name:.40}-{digest}" if network.name else digest
        self._uploads.put(name, OpenNetwork(network))
        while len(self._uploads) > 1 and self._uploaded_layers() > MOST_UPLOADED_LAYERS:
            self._uploads.forget_oldest()
        return name

    def _uploaded_layers(self) -> int:
        return sum(len(known.network.layers) for known in self._uploads.values())

    def estimated(self, layers: int) -> None:
        """Counts what was estimated, and now and then lets go of what is kept of it."""
        self._layers += layers
        if self._layers > LAYERS_BEFORE_CLEARING:
            self._layers = 0
            clear_caches()

    # Profiles.

    def profiles(self) -> list[dict[str, Any]]:
        """What is stored: a record for each number of threads; a file that cannot be read says why."""
        paths = sorted(self.folder.glob("*.json")) if self.folder.is_dir() else []
        return [record for path in paths for record in self._summary(path)]

    def _summary(self, path: Path) -> list[dict[str, Any]]:
        state = _state(path)
        known = self._summaries.get(path.stem)
        if known is None or known[0] != state:
            try:
                first, *others = Profile.load(path).parts
                records = [profile_record(path.stem, path, first)]
                records += [profile_record(f"{path.stem}@{part.setup.threads}", path, part) for part in others]
            except AmpereError as error:
                records = [{"id": path.stem, "path": str(path), "problem": str(error)}]
            self._summaries[path.stem] = known = (state, records)
        return known[1]

    def estimator(self, profile: str, runs: bool = True) -> Estimator:
        """The fitted profile of this name; without `runs` it has learnt nothing from recorded training runs."""
        path, threads = self._place(profile)
        key = (profile, runs, *_state(path))
        with self._fitting:
            found = self._estimators.get(key)
            if found is None:
                loaded = Profile.load(path)
                part = loaded if threads is None else loaded.on_threads(threads)
                if part is None:
                    raise _no_profile(profile)
                if problem := problem_with(part):
                    raise ProfileError(f"profile {profile:.80} {problem}: choose another, or profile again")
                found = Estimator(part if runs else replace(part, runs=()))
                self._estimators.put(key, found)
                gc.freeze()  # what stays: to look through it again at every collection would hold up answers
        return found

    def _place(self, profile: str) -> tuple[Path, int | None]:
        """The file of a profile, and its number of threads where that is not the file's first: `name@4`."""
        stored = {path.stem for path in self.folder.glob("*.json")} if self.folder.is_dir() else set()
        stem, _, threads = profile.rpartition("@")
        if profile in stored:  # and so never a path to another folder
            return self.folder / f"{profile}.json", None
        if stem in stored and threads.isdecimal() and len(threads) < 5:
            return self.folder / f"{stem}.json", int(threads)
        raise _no_profile(profile)


def _no_profile(profile: str) -> NotFound:
    return NotFound(f"there is no profile {profile!r:.80}: /api/v1/profiles lists those that are stored")


def _state(path: Path) -> tuple[int, int]:
    try:
        stat = path.stat()
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


def families() -> dict[str, OpenNetwork]:
    """The built-in models as they were traced, so that the server needs no torch."""
    records = json.loads(FAMILIES.read_text(encoding="utf-8"))
    return {name: OpenNetwork(Network.from_json(record)) for name, record in records.items()}


def network_record(name: str, known: OpenNetwork, origin: str) -> dict[str, Any]:
    network = known.network
    title = SPACES[name].title if origin == "family" else network.name or name
    return {
        "id": name,
        "title": title,
        "origin": origin,
        "batch": network.batch,
        "layers": len(network.layers),
        "notes": list(network.notes),
        "may_change": known.to_json(),
    }


def problem_with(profile: Profile) -> str | None:
    """Why networks cannot be estimated from a profile that was read; None where they can."""
    if not profile.observations:
        return "holds no measurement"
    if profile.method not in BY_LAYER:
        return f"was made with --method {profile.method:.40}, which cannot estimate layer by layer"
    return None


def profile_record(name: str, path: Path, profile: Profile) -> dict[str, Any]:
    return {
        "id": name,
        "path": str(path),
        "problem": problem_with(profile),
        "device": profile.device_name,
        "device_id": profile.device["id"],
        "setup": profile.setup.to_json(),
        "method": profile.method,
        "timing": profile.timing,
        "meter": profile.meter.to_json(),
        "spaces": list(profile.spaces),
        "measurements": len(profile.observations),
        "runs": len(profile.runs),
        "profiling_seconds": profile.profiling_seconds,
        "watts_idle": profile.watts_idle,
    }


def write_families() -> None:
    """Traces the built-in models again, after a change of tracing or of a family; needs torch."""
    from ampere.devices.workloads import traced

    networks = {name: traced(space.factory, space.default).renamed(name) for name, space in SPACES.items()}
    records = {name: network.to_json() for name, network in networks.items()}
    write_whole(FAMILIES, json.dumps(records, separators=(",", ":")))


if __name__ == "__main__":
    write_families()
