"""A job is a piece of measuring that is done once, kept in a file, and shared by all experiments that need it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from .lab import Lab

Result = TypeVar("Result", covariant=True)
Report = Callable[[float], None]  # the share that is done


class Job(Protocol[Result]):
    """Frozen, and equal to another that would measure the same."""

    @property
    def device(self) -> str: ...

    @property
    def name(self) -> str:
        """Of its file, and as shown while it runs."""

    @property
    def seconds(self) -> float:
        """About how long it will take."""

    def do(self, lab: Lab, path: Path, report: Report) -> None:
        """Measures, and leaves the file only when all is measured."""

    def load(self, path: Path) -> Result: ...


def file_name(*parts: object) -> str:
    return "-".join(str(part).replace(":", "-").replace("/", "-") for part in parts if part != "")
