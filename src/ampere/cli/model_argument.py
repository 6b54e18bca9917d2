"""What the user asks about: a family, a model of theirs, or a network file."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ampere.core.errors import UsageError

if TYPE_CHECKING:
    from ampere.core import Network
    from ampere.models.loading import LoadedModel


def model_argument(options: Namespace) -> str | LoadedModel | Network:
    """A network file needs no torch; all else is trainable."""
    if not options.model.endswith(".json"):
        return asked_model(options)
    from ampere.storage.networks import load_network

    if options.input or options.batch:
        raise UsageError(f"{options.model} has its input already: trace the model again with another one")
    return load_network(Path(options.model))


def asked_model(options: Namespace) -> str | LoadedModel:
    """A plain family stays a name: it is built later, while workers start. A user's code is run at once."""
    from ampere.models.loading import find_space, load_model, need_a_library, need_torch

    if options.model.endswith(".json"):
        raise UsageError(f"{options.model} is a network file, which cannot be trained: name the model itself")
    if ":" not in options.model:
        find_space(options.model)
        need_torch()
    need_a_library()
    if ":" not in options.model and not options.input and not options.batch:
        return str(options.model)
    changed = {"batch": options.batch} if options.batch else {}
    return load_model(options.model, options.input, **changed)


def name_of(model: str | LoadedModel) -> str:
    return model if isinstance(model, str) else model.name
