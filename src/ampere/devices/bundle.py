"""What travels to a device with nothing installed, as one zip."""

from __future__ import annotations

import io
import zipfile
from functools import lru_cache
from pathlib import Path

PACKAGES = ("core", "meters", "runtimes", "worker", "models")
EMPTY = ("ampere/__init__.py", "ampere/models/__init__.py")  # ours import what stays here
MAIN = "from ampere.worker.__main__ import main\n\nmain()\n"
SOURCE = Path(__file__).parents[1]


@lru_cache(maxsize=1)
def bundle() -> bytes:
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
    """The program that receives it, as text."""
    return (SOURCE / "devices" / "bootstrap.py").read_text()
