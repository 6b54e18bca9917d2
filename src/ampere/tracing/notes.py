"""What people should know of a trace: what no table knew, and what is not trained."""

from __future__ import annotations

from torch import nn

from .ops import UNKNOWN
from .recorder import Recorder


def notes_of(recorder: Recorder, counted: set[nn.Parameter]) -> tuple[str, ...]:
    strangers = dict.fromkeys(
        f"{o.name} in {o.call.path or 'the model itself'} is of no known class"
        for o in recorder.operations
        if o.op_class == UNKNOWN
    )
    lost = sum(cost.flops for cost in recorder.cost_of_node.values())
    if lost:
        strangers[f"{lost} FLOPs of backward belong to no operation that was seen, and are left out"] = None
    idle = [name for p, name in recorder.owned.names.items() if p.requires_grad and p not in counted]
    if not idle:
        return tuple(strangers)
    several = f" and {len(idle) - 1} more" if len(idle) > 1 else ""
    return (*strangers, f"no gradient reaches {idle[0]}{several}: not counted as trained")
