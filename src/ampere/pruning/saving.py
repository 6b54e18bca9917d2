"""A pruned model on disk, in two ways.

`pruned.json`  what changed in each module, beside `pruned.safetensors` with the weights: for the model's own code.
               Read back by `load`, which runs nothing that it reads.
`pruned.pt2`   what torch.export makes: runs without the model's own code. Torch's loader may unpickle, so Ampere only
               writes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.errors import ModelError, ProfileError, UsageError
from ampere.profiles.files import read_document, write_document
from ampere.profiles.storage import storing

from .tensor_file import read_tensors, write_tensors

if TYPE_CHECKING:
    from torch import nn

    from .result import Pruned

KIND, FORMAT = "pruned", 1
ENDINGS = (".pt2", ".json")


def check_place(path: Path) -> None:
    if path.suffix not in ENDINGS:
        raise UsageError(f"{path} has no ending that says how to save: name it pruned.pt2 or pruned.json")


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
    try:
        program = torch.export.export(model, positional, named)
    except Exception as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise ModelError(f"torch cannot export this model ({line}): save it as a .json instead") from error
    with storing(path):
        torch.export.save(program, path)


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
        for name, old in [*model.named_parameters(), *model.named_buffers()]:
            home, _, last = name.rpartition(".")
            new = tensors.get(name, old.detach())
            made = torch.nn.Parameter(new, old.requires_grad) if isinstance(old, torch.nn.Parameter) else new
            setattr(model.get_submodule(home), last, made)
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
