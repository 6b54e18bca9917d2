"""What a meter does."""

from typing import Any, Dict, Protocol


class Meter(Protocol):
    def describe(self) -> Dict[str, Any]:
        """name, whether its joules are measured, and what they cover (scope)."""

    def start(self) -> None: ...

    def stop(self) -> float:
        """Joules since start."""
