"""A client of `ampere serve`: the calls of the local API, answered elsewhere. Needs the standard library only."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from sys import byteorder
from typing import Any
from urllib.parse import urlsplit

from ampere.core import Network, errors
from ampere.core.errors import AmpereError, DeviceError, UsageError

COLUMNS = "application/vnd.ampere.columns"
CODES = {
    error.exit_code: error
    for error in (errors.UsageError, errors.ModelError, errors.ProfileError, errors.BusyError, errors.DeviceError)
}

Record = dict[str, Any]


@dataclass(frozen=True)
class RemoteLayer:
    """A layer's joules in one training step."""

    name: str
    kind: str
    joules: float
    stddev: float


@dataclass(frozen=True)
class RemoteEstimate:
    """The joules of one training iteration, as a server estimated them."""

    network: str
    joules: float
    stddev: float
    interval: tuple[float, float]  # that 90 % of measurements should lie between
    seconds: float
    layers: tuple[RemoteLayer, ...]
    unprofiled: tuple[str, ...]
    extrapolated: tuple[str, ...]
    record: Record  # everything, as `ampere estimate --json` prints it

    @classmethod
    def from_json(cls, record: Record) -> RemoteEstimate:
        low, high = record["joules_interval90"]
        return cls(
            record["network"],
            record["joules_per_iteration"],
            record["joules_stddev"],
            (low, high),
            record["seconds_per_iteration"],
            tuple(RemoteLayer(each["name"], each["kind"], each["joules"], each["stddev"]) for each in record["layers"]),
            tuple(record["unprofiled"]),
            tuple(record["extrapolated"]),
            record,
        )

    def to_json(self) -> Record:
        return self.record


class Client:
    """Asks a server that `ampere serve` started. Neither torch nor a profile is needed here.

    `address` is the one that the server printed, `token` the one that it printed if it listens off its own machine.
    Networks and profiles are named by the ids that `networks()` and `profiles()` list. A server's refusal is raised as
    the same error that the local call would raise.
    """

    def __init__(self, address: str = "http://127.0.0.1:8765", token: str | None = None, timeout: float = 60.0) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{address!r:.80} is no address of a server: write http://127.0.0.1:8765")
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._address, self._token = address, token

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def devices(self) -> list[Record]:
        """Devices of which the server has profiles."""
        return list(self._get("devices")["devices"])

    def profiles(self) -> list[Record]:
        """Stored profiles; `problem` says why one cannot be used."""
        return list(self._get("profiles")["profiles"])

    def networks(self) -> list[Record]:
        """Networks that the server knows, and what may change in each."""
        return list(self._get("networks")["networks"])

    def runs(self) -> list[Record]:
        """Recorded training runs: estimated and spent."""
        return list(self._get("runs")["runs"])

    def upload(self, network: Network | Path | str) -> str:
        """Sends a traced network, or a file of `ampere trace`; returns the id under which it can be estimated."""
        record = network.to_json() if isinstance(network, Network) else json.loads(Path(network).read_text("utf-8"))
        return str(self._post("networks", record)["id"])

    def estimate(
        self,
        network: str,
        *,
        profile: str,
        widths: Mapping[str, int] | None = None,
        repeats: Mapping[str, int] | None = None,
        batch: int | None = None,
        allocator: str = "system",
        iterations: int | None = None,
        battery: str | None = None,
    ) -> RemoteEstimate:
        """What one training iteration will cost, with some of the network's widths, blocks or its batch changed."""
        asked = _changes(network, profile, widths, repeats, batch, allocator)
        asked |= {key: value for key, value in (("iterations", iterations), ("battery", battery)) if value is not None}
        return RemoteEstimate.from_json(self._post("what-if", asked))

    def batch(
        self,
        network: str,
        rows: Iterable[Sequence[int]],
        *,
        profile: str,
        repeats: Mapping[str, int] | None = None,
        batch: int | None = None,
        allocator: str = "system",
    ) -> tuple[list[float], list[float]]:
        """Joules and seconds of an iteration at each row of widths, which are in the order of `networks()`."""
        columns = list(zip(*rows, strict=True))
        if not columns:
            raise UsageError("there are no rows of widths to estimate: give at least one")
        asked = {**_changes(network, profile, None, repeats, batch, allocator), "dtype": "uint16"}
        try:
            body = b"".join(_little(array("H", column)) for column in columns)
        except (OverflowError, TypeError):
            raise UsageError("widths must be whole numbers from 1 to 65,535") from None
        line, _, data = self._ask("POST", "batch", json.dumps(asked).encode() + b"\n" + body, COLUMNS).partition(b"\n")
        values = array("f", data)
        if byteorder == "big":
            values.byteswap()
        count = int(json.loads(line)["rows"])
        return list(values[:count]), list(values[count:])

    def compare(
        self, networks: Sequence[str | Record], *, profiles: Sequence[str], allocator: str = "system"
    ) -> Record:
        """Networks ranked on each profile, with the probability of the order; as `ampere compare --json` prints it."""
        asked = {"networks": list(networks), "profiles": list(profiles), "allocator": allocator}
        return self._post("compare", asked)

    def search(
        self,
        network: str,
        *,
        profile: str,
        candidates: int = 200_000,
        budget_joules: float | None = None,
        least_capacity: float | None = None,
        batch: int | None = None,
    ) -> Record:
        """Random candidates of a network's widths: their density, and the front of those that no other one beats."""
        limits = {"budget_joules": budget_joules, "least_capacity": least_capacity}
        asked = _changes(network, profile, None, None, batch, "system")
        asked |= {"candidates": candidates, **{k: v for k, v in limits.items() if v is not None}}
        return self._post("search", asked)

    def memory(
        self,
        network: str,
        *,
        profile: str,
        widths: Mapping[str, int] | None = None,
        repeats: Mapping[str, int] | None = None,
        batch: int | None = None,
        allocator: str = "system",
    ) -> Record:
        """Peak memory of training; the server needs torch for it."""
        return self._post("memory", _changes(network, profile, widths, repeats, batch, allocator))

    def _get(self, what: str) -> Record:
        return _object(self._ask("GET", what, None, None))

    def _post(self, what: str, asked: Any) -> Record:
        return _object(self._ask("POST", what, json.dumps(asked).encode(), "application/json"))

    def _ask(self, method: str, what: str, body: bytes | None, kind: str | None) -> bytes:
        headers = {"content-type": kind} if kind else {}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        for attempt in range(2):
            try:
                self._connection.request(method, f"/api/v1/{what}", body, headers)
                response = self._connection.getresponse()
                content = response.read()
                break
            except (OSError, HTTPException) as error:
                self._connection.close()  # a connection that was idle for long is opened anew, once
                if attempt:
                    raise DeviceError(
                        f"{self._address} does not answer ({error!s:.100}): start it with `ampere serve`"
                    ) from None
        if response.status != 200:
            raise _refusal(response.status, content)
        return content


def _changes(
    network: str,
    profile: str,
    widths: Mapping[str, int] | None,
    repeats: Mapping[str, int] | None,
    batch: int | None,
    allocator: str,
) -> Record:
    asked = {"network": network, "profile": profile, "allocator": allocator}
    given = {"widths": dict(widths or {}), "repeats": dict(repeats or {}), "batch": batch}
    return {**asked, **{key: value for key, value in given.items() if value}}


def _little(values: array[int]) -> bytes:
    if byteorder == "big":
        values.byteswap()
    return values.tobytes()


def _object(content: bytes) -> Record:
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DeviceError("the server's answer is no JSON object: check that the address is that of `ampere serve`")
    return found


def _refusal(status: int, content: bytes) -> AmpereError:
    """The error that a problem details record speaks of."""
    try:
        problem = json.loads(content)
        words = ": ".join(filter(None, (str(problem["detail"]), str(problem.get("remedy") or ""))))
        return CODES.get(problem.get("exit_code"), DeviceError)(words)
    except (ValueError, KeyError, TypeError, AttributeError):
        return DeviceError(f"the server answered with status {status}: check that it is one of `ampere serve`")
