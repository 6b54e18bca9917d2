"""The kernel's small files, read with care: what cannot be read is an error, never 0."""

import errno
from pathlib import Path
from typing import List, Optional

from .meter import meter_failed


def number_in(path: Path) -> int:
    text = text_in(path)
    try:
        return int(text)
    except ValueError:
        raise meter_failed(f"{path} holds {text[:20]!r} instead of a number: the driver is at fault") from None


def text_in(path: Path) -> str:
    try:
        return path.read_text().strip()
    except PermissionError:
        raise meter_failed(
            f"{path} may be read by the system's owner only: `sudo chmod o+r {path}` until the next start "
            "(docs/METERS.md: for good), or take --meter cpu-time"
        ) from None
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise meter_failed(f"{path} cannot be read ({reason}): the meter is gone, or its driver failed") from None


def text_if_there(path: Path) -> Optional[str]:
    return text_in(path) if path.exists() else None


def has_data(path: Path) -> bool:
    """False of a channel that is switched off; what else is wrong is told by reading it."""
    try:
        path.read_text()
    except OSError as problem:
        return problem.errno != errno.ENODATA
    except UnicodeDecodeError:
        pass
    return True


def folders_in(path: Path) -> List[Path]:
    """In the order of their names; none where the folder itself is missing."""
    try:
        return sorted(path.iterdir())
    except OSError:
        return []
