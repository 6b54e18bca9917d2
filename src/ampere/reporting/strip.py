"""One bar cut into shares, with every share named below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .drawing import Datum, Drawing, Mark, Rect, Text, room_for

HEIGHT, LINE, WORDS = 34.0, 24.0, 13.0
GAP = 2.0


@dataclass(frozen=True)
class Share:
    name: str
    share: float
    label: str
    tip: str
    colour: str


def draw(shares: Sequence[Share], width: float) -> Drawing:
    marks: list[Mark] = []
    x, chip_x, chip_y = 0.0, 0.0, HEIGHT + 22
    for share in shares:
        length = share.share * width
        words = f"{share.name} {share.label}"
        room = room_for(words, WORDS) + 30
        if chip_x and chip_x + room > width + 12:
            chip_x, chip_y = 0.0, chip_y + LINE
        piece = Rect(x, 0, max(length - GAP, 0.8), HEIGHT, share.colour, radius=2)
        chip = Rect(chip_x, chip_y - 10, 11, 11, share.colour, radius=2)
        marks.append(Datum([piece, chip, Text(chip_x + 17, chip_y, words, WORDS)], share.tip))
        x, chip_x = x + length, chip_x + room
    return Drawing(width, chip_y + 8, marks)
