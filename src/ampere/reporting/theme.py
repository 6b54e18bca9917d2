"""Colours by role. Told apart by colour-blind people and in grey; the ramp (cividis) reads the same in both modes."""

from __future__ import annotations

LIGHT = {
    "paper": "#ffffff",
    "card": "#f6f7f9",
    "ink": "#1b2027",
    "muted": "#59636f",
    "faint": "#dfe3e8",
    "band": "#e9edf2",
    "one": "#1f5fa8",
    "two": "#d06f17",
    "three": "#15806d",
    "four": "#8450a6",
    "five": "#8c6d1f",
    "rest": "#7d8792",
    "doubt": "#b3261e",
}
DARK = {
    "paper": "#14181d",
    "card": "#1c2228",
    "ink": "#e9edf1",
    "muted": "#a3adb8",
    "faint": "#343c45",
    "band": "#262d35",
    "one": "#6cabf2",
    "two": "#f2a356",
    "three": "#4fc4ae",
    "four": "#c297e0",
    "five": "#d6b557",
    "rest": "#8e99a4",
    "doubt": "#ff8a80",
}
SERIES = ("one", "two", "three", "four", "five")
RAMP = (
    "#00224e",
    "#123570",
    "#3b496c",
    "#575d6d",
    "#707173",
    "#8a8678",
    "#a59c74",
    "#c3b369",
    "#e1cc55",
    "#fee838",
)


def on_paper(role: str) -> str:
    """A role as a fixed colour, for pictures that leave the page."""
    return LIGHT.get(role, role)


def on_page(role: str) -> str:
    """A role as what the page's style sheet says it is, which changes with light and dark."""
    return f"var(--{role})" if role in LIGHT else role


def variables(colours: dict[str, str]) -> str:
    return "".join(f"--{role}:{colour};" for role, colour in colours.items())
