"""A running job and the joules that it may spend."""

from .budget import Budget

__all__ = ["Budget"]
