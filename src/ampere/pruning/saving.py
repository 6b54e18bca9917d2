"""A pruned model on disk, in two ways.

`pruned.json`  what changed in each module, beside `pruned.safetensors` with the weights: for the model's own code.
               Read back by `load`, which runs nothing that it reads.
`pruned.pt2`   what torch.export makes: runs without the model's own code. Torch's loader may unpickle, so Ampere only
               writes it.
"""

from __future__ import annotations

import errno
import os
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.core.errors import ModelError, ProfileError, UsageError
from ampere.storage.files import read_document, storing, write_document

from .tensor_file import read_tensors, write_tensors

if TYPE_CHECKING:
    from torch import Tensor, nn

    from .result import Pruned

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
