"""Colours by role, as the page's style sheet has them: pictures that leave the page have its light ones."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "page"  # the scripts and styles of `ampere serve` and of reports


def roles(style: str) -> dict[str, str]:
    return dict(re.findall(r"--(\w+):(#[0-9a-f]{6})", style))


_LIGHT, _DARK = (PAGE / "page.css").read_text(encoding="utf-8").split("@media", 2)[:2]
LIGHT, DARK = roles(_LIGHT), roles(_DARK)
SERIES = ("one", "two", "three", "four", "five", "six")
