"""Nothing of Ampere answers HTTP, and only workers wait for connections: one that is told to, and a test double."""

import ast
from pathlib import Path

import pytest

import ampere

pytestmark = pytest.mark.fault(20)

SOURCE = Path(ampere.__file__).parent
SERVERS = {"http.server", "socketserver", "wsgiref", "xmlrpc.server", "asyncio", "flask", "fastapi", "aiohttp"}
WAITING = {"listen", "create_server", "bind"}


def test_only_workers_listen_and_nothing_serves_http(record_property):
    imported, listening = set(), set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WAITING:
                listening.add(path.relative_to(SOURCE).as_posix())
    assert not imported & SERVERS
    assert listening <= {"worker/listening.py", "devices/conformance/lying.py"}
    record_property("figure", "0 modules serve HTTP, only workers listen")
