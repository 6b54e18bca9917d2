"""FLOPs and a constant, neither of them negative: the honest rival."""

from __future__ import annotations

from .flops import flops
from .line import fit_line
from .method import Method

METHOD = Method("flops_intercept", "FLOPs and a constant", "networks", lambda evidence: fit_line(flops, evidence))
