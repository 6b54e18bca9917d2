"""Text from files, workers, meters and models, as it may be shown: what a terminal would obey is escaped.

A terminal obeys control characters (ESC ] 52 writes to the clipboard), and people read right-to-left overrides in an
order that is not there. Both are shown as Python would spell them: \\x1b, \\u202e.
"""

import re

# C0, DEL and C1; marks, overrides and isolates of direction; separators of lines; halves of characters.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def printable(text: str) -> str:
    """A text in one line, with every character escaped that a terminal would obey."""
    return _OBEYED.sub(lambda found: repr(found[0])[1:-1], text)
