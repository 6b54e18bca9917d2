"""The command line. Nothing heavy is imported before a command runs."""

from .entry import main

__all__ = ["main"]
