"""Documents: JSON files that are either whole or refused, and replaced at once or not at all.

    {"ampere":"profile","format":1,"sha256":"<of all the rest>","body":{...}}

The envelope's spelling is fixed, so the checksum is taken over the bytes as they lie in the file, before
anything is parsed: a flipped bit anywhere is noticed, also where JSON would read the same value.
"""

import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any

from ..errors import ProfileError
from . import strict_json
from .storage import read_at_most, storing, sync_folder

LARGEST = 32_000_000  # bytes; parsed, that stays well below half a gigabyte

_HEAD = re.compile(rb'\{"ampere":"([a-z_]{1,40})","format":([0-9]{1,9}),')
_SEAL = re.compile(rb'"sha256":"([0-9a-f]{64})","body":')
_END = b"}\n"


def write_document(path: Path, kind: str, version: int, body: Any) -> None:
    path = Path(path)
    raw = _sealed(path, kind, version, body)
    with storing(path):
        path = Path(os.path.realpath(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, raw)


def read_document(path: Path, kind: str, newest_version: int) -> Any:
    path = Path(path)
    raw = read_at_most(path, LARGEST)
    head = _checked_head(path, raw, kind, newest_version)
    try:
        return strict_json.loads(_unsealed(path, raw, head).decode("ascii"))
    except ValueError as error:
        raise ProfileError(f"{path} was not written by Ampere: {error}") from None


def is_document(path: Path, kind: str) -> bool:
    """Whether a file says that it is one, as far as its first bytes tell."""
    try:
        with open(path, "rb") as file:
            head = _HEAD.match(file.read(100))
    except OSError:
        return False
    return head is not None and head[1].decode() == kind


def _sealed(path: Path, kind: str, version: int, body: Any) -> bytes:
    try:
        text = strict_json.dumps(body).encode("ascii")
    except ValueError as error:
        raise ProfileError(f"{path} is not written: {error}") from None
    if len(text) > LARGEST - 200:
        raise ProfileError(f"{path} is not written: it would be larger than {LARGEST / 1e6:.0f} MB; divide it")
    head = b'{"ampere":"%b","format":%d,' % (kind.encode(), version)
    return b'%b"sha256":"%b","body":%b}\n' % (head, _seal(head, text), text)


def _seal(head: bytes, body: bytes) -> bytes:
    checksum = sha256(head)
    checksum.update(body)
    return checksum.hexdigest().encode()


def _replace(path: Path, raw: bytes) -> None:
    """The new bytes are on the disk under another name before the old ones give up theirs."""
    fresh = path.with_name(f".ampere-{token_hex(8)}.tmp")
    try:
        with open(fresh, "xb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise
    sync_folder(path.parent)


def _checked_head(path: Path, raw: bytes, kind: str, newest_version: int) -> bytes:
    head = _HEAD.match(raw)
    if not head:
        raise ProfileError(
            f"{path} is not a {kind} of Ampere's, or its beginning is damaged: name another, or make it again"
        )
    found, version = head[1].decode(), int(head[2])
    if found != kind:
        raise ProfileError(f"{path} is a {found}, not a {kind}: name another file")
    if version > newest_version:
        raise ProfileError(
            f"{path} was written by a newer Ampere (format {version}, this one reads up to {newest_version}): "
            "upgrade with pip install -U ampere-energy"
        )
    return head[0]


def _unsealed(path: Path, raw: bytes, head: bytes) -> bytes:
    seal = _SEAL.match(raw, len(head))
    if not seal or not raw.endswith(_END):
        raise ProfileError(f"{path} is cut short or damaged: restore a copy, or make it again")
    body = raw[seal.end() : -len(_END)]
    if _seal(head, body) != seal[1]:
        raise ProfileError(f"{path} is damaged (its checksum is wrong): restore a copy, or make it again")
    return body
