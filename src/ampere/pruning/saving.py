"""A pruned model on disk, in two ways.

`pruned.json`  the sizes that changed in each module; the weights are in `pruned.safetensors`. For the model's own code.
               `load_pruned` reads it back, and runs no code that a file names but the builders of Ampere's own models.
`pruned.pt2`   what torch.export makes: runs without the model's own code. Torch's loader may unpickle, so Ampere only
               writes it.
"""

from __future__ import annotations

import errno
import importlib.util
import os
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.core.errors import AmpereError, ModelError, ProfileError, RuntimeMissingError, UsageError
from ampere.models.loading import LoadedModel, find_space, load_from_space, load_model
from ampere.profiling.experiment import Experiment
from ampere.storage.files import open_to_read, read_document, storing, write_document, write_whole

from .result import Pruned
from .structure import copied, first_line

if TYPE_CHECKING:
    from torch import Tensor, nn

KIND, FORMAT = "pruned", 1
ENDINGS = (".pt2", ".json")
FACTORY = "ampere.pruning.saving:build"  # how a worker builds a saved model


def check_writable(path: Path) -> None:
    """Refuses a path that cannot be written later, before any work is done."""
    if path.suffix not in ENDINGS:
        raise UsageError(f"{path} does not say how to save the model: name it pruned.pt2 or pruned.json")
    if path.suffix == ".json":
        need_safetensors()
    there = next(folder for folder in path.absolute().parents if folder.exists())
    with storing(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "not a folder")
        if not os.access(there, os.W_OK):
            raise PermissionError(errno.EACCES, "permission denied")


def save(pruned: Pruned, path: Path) -> list[Path]:
    """Writes a pruned model as .json or .pt2; the files that were written."""
    check_writable(path)
    if path.suffix == ".pt2":
        _export(pruned.model, pruned.original.inputs, path)
        return [path]
    weights = path.with_suffix(".safetensors")
    body = {
        "modules": _changes(pruned.original.model, pruned.model),
        "weights": weights.name,
        "original": _origin(pruned.original),
        "pruning": pruned.to_json(),
    }
    write_tensors(weights, pruned.model.state_dict())
    write_document(path, KIND, FORMAT, body)
    return [path, weights]


def load_pruned(path: Path | str, model: nn.Module | LoadedModel | str | None = None) -> nn.Module:
    """The pruned model that `path` (.json) describes, as an ordinary module that can be trained.

    `model` is the model it was made from: a module, which is copied and not changed, or `file.py:function`. It may be
    left out for Ampere's own models, such as lenet5: their files say how to build them.

        # after: ampere prune lenet5 --budget 50% --out pruned.json
        import torch
        import ampere

        model = ampere.load_pruned("pruned.json")              # or load_pruned("pruned.json", MyModel())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        images, labels = torch.randn(10, 1, 28, 28), torch.randint(10, (10,))
        for step in range(20):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
    """
    path = Path(path)
    body = read_document(path, KIND, FORMAT)
    return _restored(path, body, _original(path, body, model))


def _original(path: Path, body: Any, model: nn.Module | LoadedModel | str | None) -> nn.Module:
    """A model of the caller's own to change: built now, or a copy."""
    if isinstance(model, str):
        built: nn.Module = load_model(model).model
        return built
    if model is not None:
        return copied(model.model if isinstance(model, LoadedModel) else model)
    record = body.get("original") if isinstance(body, dict) else None
    if not isinstance(record, dict) or not isinstance(record.get("space"), str):
        name = f" {record['name']}" if isinstance(record, dict) and record.get("name") else ""
        raise UsageError(f"{path} needs the model{name} that was pruned: ampere.load_pruned({path.name!r}, model)")
    try:
        built = load_from_space(find_space(record["space"]), None, dict(record["arguments"])).model
    except (AmpereError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ProfileError(f"{path} does not describe a {record['space'][:40]} ({first_line(error)})") from error
    return built


def _origin(original: LoadedModel) -> dict[str, Any]:
    """How to build the model again, where that is one of Ampere's own."""
    if original.space is None:
        return {"name": original.name}
    return {"name": original.name, "space": original.space.name, "arguments": dict(original.arguments)}


def _restored(path: Path, body: Any, model: nn.Module) -> nn.Module:
    """The model itself, narrowed in place and with the saved weights."""
    import torch

    try:
        for name, changes in dict(body["modules"]).items():
            _apply(model.get_submodule(name), changes)
        tensors = read_tensors(path.with_name(Path(body["weights"]).name))
        made: dict[int, Tensor] = {}  # what was one tensor under several names stays one
        parameters = model.named_parameters(remove_duplicate=False)
        buffers = model.named_buffers(remove_duplicate=False)
        for name, old in [*parameters, *buffers]:
            home, _, last = name.rpartition(".")
            if id(old) not in made:
                new = tensors.get(name, old.detach())
                trained = isinstance(old, torch.nn.Parameter)
                made[id(old)] = torch.nn.Parameter(new, old.requires_grad) if trained else new
            setattr(model.get_submodule(home), last, made[id(old)])
        model.load_state_dict(tensors)
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ProfileError(
            f"{path} does not fit {type(model).__name__} ({first_line(error)}): give the model it was made from"
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
            raise ValueError(f"{name} is not a size")
        setattr(module, name, new)


def _is_size(value: Any) -> bool:
    values = value if isinstance(value, tuple) else (value,)
    return bool(values) and all(isinstance(v, int) and not isinstance(v, bool) for v in values)


def _export(model: nn.Module, inputs: Any, path: Path) -> None:
    import torch

    positional, named = ((), inputs) if isinstance(inputs, dict) else (tuple(inputs), {})
    raw = BytesIO()
    try:
        torch.export.save(torch.export.export(model, positional, named), raw)
    except Exception as error:
        raise ModelError(f"torch cannot export this model ({first_line(error)}): save it as a .json instead") from error
    write_whole(path, raw.getvalue())


# Tensors by name, in the safetensors format.


def need_safetensors() -> None:
    if importlib.util.find_spec("safetensors") is None:
        raise RuntimeMissingError("safetensors is not installed: pip install 'ampere-energy[prune]'")


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    need_safetensors()
    from safetensors import torch as safetensors

    try:  # copies, since one tensor under several names is refused otherwise
        raw = safetensors.save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()})
    except (AttributeError, KeyError) as error:
        kinds = {name: getattr(tensor, "dtype", None) for name, tensor in tensors.items()}
        name = next(name for name, kind in kinds.items() if kind in (None, *error.args))
        kind = str(kinds[name] or type(tensors[name]).__name__).removeprefix("torch.")
        raise ModelError(
            f"{name} is {kind}, which tensor files cannot hold: save the model as a .pt2 instead"
        ) from error
    write_whole(path, raw)


def read_tensors(path: Path) -> dict[str, Tensor]:
    need_safetensors()
    from safetensors import SafetensorError
    from safetensors import torch as safetensors

    with open_to_read(path) as file:
        raw = file.read()
    try:
        return dict(safetensors.load(raw))
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError, OverflowError) as error:
        raise ProfileError(
            f"{path} is not a whole tensor file ({first_line(error)}): save the pruned model again"
        ) from None


# A saved pruned model as a factory, so that a worker can build and train it.


def build(path: str, factory: str, arguments: dict[str, Any]) -> Any:
    """What the original's factory returns, with the model made into the pruned one that the file describes."""
    from ampere.runtimes.user_code import find_factory

    made = find_factory(factory)(**arguments)
    model, *inputs = made if isinstance(made, tuple) else (made,)
    pruned = _restored(Path(path), read_document(Path(path), KIND, FORMAT), model)
    return (pruned, *inputs) if inputs else pruned


def experiment_of(pruned: Pruned, original: Experiment, path: Path) -> Experiment:
    """The pruned model, saved at `path`, to be trained on the inputs of the original."""
    save(pruned, path)
    source = pruned.original
    arguments = {"path": str(path), "factory": source.factory, "arguments": dict(source.arguments)}
    workload = {**original.workload, "factory": FACTORY, "arguments": arguments}
    return Experiment(pruned.networks[1], workload, "network", original.allocator)
