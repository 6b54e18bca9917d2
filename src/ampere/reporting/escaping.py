"""Words that people, models and files gave us, made harmless: text is never markup, and never breaks a file."""

from __future__ import annotations

import re
from html import escape

# What XML cannot hold: control characters, and halves of characters that UTF-8 has no bytes for.
UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
LONGEST = 2_000  # characters of one piece of text


def text(words: str) -> str:
    cut = words if len(words) <= LONGEST else f"{words[:LONGEST]}…"
    return escape(UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", cut))
