"""Named tensors in the safetensors format: 8 bytes of length, JSON that names them, then their plain bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.core.errors import ModelError, ProfileError
from ampere.storage.files import open_to_read, storing

if TYPE_CHECKING:
    from torch import Tensor

NAMES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16",
    "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL",
    "uint64": "U64", "uint32": "U32", "uint16": "U16", "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}  # fmt: skip
LONGEST_HEADER = 100_000_000


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    import torch

    header: dict[str, Any] = {}
    parts, place = [], 0
    for name, tensor in tensors.items():
        kind = _kind(name, tensor)
        raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [place, place + len(raw)]}
        parts.append(raw)
        place += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


def _kind(name: str, tensor: Any) -> str:
    sort = str(getattr(tensor, "dtype", type(tensor).__name__)).removeprefix("torch.")
    if sort not in NAMES:
        raise ModelError(f"{name} is {sort}, which plain tensor files do not hold: save the model as a .pt2 instead")
    return NAMES[sort]


def read_tensors(path: Path) -> dict[str, Tensor]:
    with open_to_read(path) as file:
        length = int.from_bytes(file.read(8), "little")
        text = file.read(min(length, LONGEST_HEADER))
        raw = file.read()
    try:
        header = json.loads(text)
        header.pop("__metadata__", None)
        return {name: _tensor(raw, entry) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise ProfileError(f"{path} holds no whole tensors ({error}): save the pruned model again") from None


def _tensor(raw: bytes, entry: dict[str, Any]) -> Tensor:
    import torch

    dtype = getattr(torch, {short: name for name, short in NAMES.items()}[entry["dtype"]])
    begin, end = entry["data_offsets"]
    shape = [int(n) for n in entry["shape"]]
    if not 0 <= begin <= end <= len(raw) or end - begin != prod(shape) * dtype.itemsize:
        raise ValueError("a tensor has another length than its shape")
    if begin == end:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(raw[begin:end]), dtype=dtype).reshape(shape)
