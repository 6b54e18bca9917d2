"""The zip that is sent to a device on which Ampere is not installed."""

from __future__ import annotations

import io
import zipfile
from functools import lru_cache
from pathlib import Path

PACKAGES = ("core", "meters", "runtimes", "worker", "models")
EMPTY = ("ampere/__init__.py", "ampere/models/__init__.py")  # the real ones import what is not sent
MAIN = "from ampere.worker.__main__ import main\n\nmain()\n"
SOURCE = Path(__file__).parents[1]


@lru_cache(maxsize=1)
def bundle() -> bytes:
    """The worker and all it imports, as a zip that Python can run."""
    files = {"__main__.py": MAIN.encode()}
    for package in PACKAGES:
        for path in sorted((SOURCE / package).rglob("*.py")):
            files[f"ampere/{path.relative_to(SOURCE).as_posix()}"] = path.read_bytes()
    files.update(dict.fromkeys(EMPTY, b""))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def bootstrap_program() -> str:
    """The source of the program that receives the bundle and runs it."""
    return (SOURCE / "devices" / "bootstrap.py").read_text()
