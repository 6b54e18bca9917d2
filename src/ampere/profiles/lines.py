"""The lines of a journal: CRC-32 of a JSON text, a space, the text. A line counts if its checksum is right."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from . import strict_json
from .storage import open_to_read

LONGEST = 32_000_000  # bytes


class Line(NamedTuple):
    end: int  # offset of the byte after it
    value: Any  # None if damaged
    terminated: bool


def encoded(value: Any) -> bytes:
    text = strict_json.dumps(value).encode("ascii")
    if len(text) + 10 > LONGEST:
        raise ValueError(f"it is longer than {LONGEST / 1e6:.0f} MB")
    return b"%08x %b\n" % (zlib.crc32(text), text)


def decoded(raw: bytes) -> Any:
    seal, _, text = raw.removesuffix(b"\n").partition(b" ")
    if seal != b"%08x" % zlib.crc32(text):
        return None
    try:
        return strict_json.loads(text.decode("ascii"))
    except ValueError:
        return None


def lines(file: BinaryIO) -> Iterator[Line]:
    end = 0
    while raw := file.readline(LONGEST):
        end += len(raw)
        yield Line(end, decoded(raw), raw.endswith(b"\n"))


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """All records that count. Needs no lock: a line that is being written is not yet whole, and is left out."""
    with open_to_read(Path(path)) as file:
        for line in lines(file):
            if isinstance(line.value, dict):
                yield line.value
