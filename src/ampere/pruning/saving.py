"""Named tensors in the safetensors format: 8 bytes of length, JSON that names them, then their plain bytes."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from io import BytesIO
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.core.errors import ModelError, ProfileError, UsageError
from ampere.models.loading import LoadedModel
from ampere.profiling.experiment import Experiment
from ampere.storage.files import open_to_read, read_document, storing, write_document

from .result import Pruned

if TYPE_CHECKING:
    from torch import Tensor, nn

    from .result import Pruned


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


# A pruned model on disk, in two ways.
#
# `pruned.json`  what changed in each module, beside `pruned.safetensors` with the weights: for the model's own code.
#                Read back by `load`, which runs nothing that it reads.
# `pruned.pt2`   what torch.export makes: runs without the model's own code. Torch's loader may unpickle, so Ampere only
#                writes it.

KIND, FORMAT = "pruned", 1
ENDINGS = (".pt2", ".json")


def check_place(path: Path) -> None:
    """Refuses what cannot be written later, before any work is done."""
    if path.suffix not in ENDINGS:
        raise UsageError(f"{path} has no ending that says how to save: name it pruned.pt2 or pruned.json")
    there = next(folder for folder in path.absolute().parents if folder.exists())
    with storing(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "not a folder")
        if not os.access(there, os.W_OK):
            raise PermissionError(errno.EACCES, "permission denied")


def save(pruned: Pruned, original: nn.Module, inputs: Any, path: Path) -> list[Path]:
    """The files that were written."""
    check_place(path)
    if path.suffix == ".pt2":
        _export(pruned.model, inputs, path)
        return [path]
    weights = path.with_suffix(".safetensors")
    body = {"modules": _changes(original, pruned.model), "weights": weights.name, "pruning": pruned.to_json()}
    write_tensors(weights, pruned.model.state_dict())
    write_document(path, KIND, FORMAT, body)
    return [path, weights]


def _export(model: nn.Module, inputs: Any, path: Path) -> None:
    import torch

    positional, named = ((), inputs) if isinstance(inputs, dict) else (tuple(inputs), {})
    raw = BytesIO()
    try:
        torch.export.save(torch.export.export(model, positional, named), raw)
    except Exception as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise ModelError(f"torch cannot export this model ({line}): save it as a .json instead") from error
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw.getvalue())


def load(path: Path | str, model: nn.Module) -> nn.Module:
    """Makes a freshly built original into the pruned model that `path` (.json) describes, in place."""
    import torch

    path = Path(path)
    body = read_document(path, KIND, FORMAT)
    try:
        modules, weights = dict(body["modules"]), path.with_name(Path(body["weights"]).name)
        for place, changes in modules.items():
            _apply(model.get_submodule(place), changes)
        tensors = read_tensors(weights)
        made: dict[int, Tensor] = {}  # what was one tensor under several names stays one
        parameters, buffers = (
            model.named_parameters(remove_duplicate=False),
            model.named_buffers(remove_duplicate=False),
        )
        for name, old in [*parameters, *buffers]:
            home, _, last = name.rpartition(".")
            if id(old) not in made:
                new = tensors.get(name, old.detach())
                trained = isinstance(old, torch.nn.Parameter)
                made[id(old)] = torch.nn.Parameter(new, old.requires_grad) if trained else new
            setattr(model.get_submodule(home), last, made[id(old)])
        model.load_state_dict(tensors)
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        line = (str(error).strip().splitlines() or [""])[0][:150]
        raise ProfileError(
            f"{path} does not fit {type(model).__name__} ({line}): give the model it was made from"
        ) from error
    return model


def _changes(original: nn.Module, pruned: nn.Module) -> dict[str, dict[str, Any]]:
    """By module: the numbers that say its sizes, where they differ."""
    found = {}
    for (path, old), (_, new) in zip(original.named_modules(), pruned.named_modules(), strict=True):
        changes = {k: v for k, v in vars(new).items() if _is_size(v) and vars(old).get(k) != v}
        if changes:
            found[path] = {k: list(v) if isinstance(v, tuple) else v for k, v in changes.items()}
    return found


def _apply(module: nn.Module, changes: dict[str, Any]) -> None:
    for name, value in changes.items():
        new = tuple(value) if isinstance(value, list) else value
        if not _is_size(new) or not _is_size(vars(module)[name]):
            raise ValueError(f"{name} is no size")
        setattr(module, name, new)


def _is_size(value: Any) -> bool:
    values = value if isinstance(value, tuple) else (value,)
    return bool(values) and all(isinstance(v, int) and not isinstance(v, bool) for v in values)


# A saved pruned model as a factory, so that a worker can train it: `ampere.pruning.saving:build`.

FACTORY = "ampere.pruning.saving:build"


def build(path: str, factory: str, arguments: dict[str, Any]) -> Any:
    """What the factory of the original makes, made into the pruned model that the file describes."""
    from ampere.runtimes.user_code import find_factory

    made = find_factory(factory)(**arguments)
    model, *inputs = made if isinstance(made, tuple) else (made,)
    pruned = load(path, model)
    return (pruned, *inputs) if inputs else pruned


def experiment_of(pruned: Pruned, loaded: LoadedModel, original: Experiment, path: Path) -> Experiment:
    """To be measured: saved at `path`, and trained on the inputs of the original."""
    save(pruned, loaded.model, loaded.inputs, path)
    arguments = {"path": str(path), "factory": loaded.factory, "arguments": dict(loaded.arguments)}
    subject = {**original.subject, "factory": FACTORY, "arguments": arguments}
    return Experiment(pruned.networks[1], subject, "network", original.allocator)
