"""What a worker that is not ours says that it can build."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..worker.runtimes import Description
from ..worker.runtimes.description import EVERY_KIND


def abilities_in(hello: Mapping[str, Any]) -> Description | None:
    """None where the worker is ours: its runtimes are in our own table. What is left out is said block by block."""
    if "worker" not in hello:
        return None
    usual = Description("", (), f"{hello['worker']} trains with {', '.join(hello['runtimes'])} only")
    return usual._replace(
        kinds=frozenset(hello.get("kinds", EVERY_KIND)),
        dtypes=tuple(hello.get("dtypes", usual.dtypes)),
        optimizers=tuple(hello.get("optimizers", usual.optimizers)),
        factories=bool(hello.get("factories", False)),
        stages=True,
    )
