"""Closed outputs, no home, ASCII consoles, a current folder that is gone: success, or one clear line."""

import os
import subprocess
import sys

import pytest

from ampere.cli import main
from ampere.storage.places import home

pytestmark = pytest.mark.fault(35)

POSIX_SHELL = pytest.mark.skipif(os.name != "posix", reason="closes streams and removes folders with a POSIX shell")


def in_shell(line, folder, **environment):
    """(exit code, standard output, standard error) of a line in which `ampere` is a command."""
    program = f'ampere() {{ "{sys.executable}" -m ampere "$@"; }}; {line}'
    environment = {**os.environ, "AMPERE_HOME": str(folder / "home"), **environment}
    ran = subprocess.run(["sh", "-c", program], cwd=folder, env=environment, capture_output=True, text=True)
    return ran.returncode, ran.stdout, ran.stderr


@POSIX_SHELL
def test_closed_streams(tmp_path, record_property):
    assert in_shell("ampere devices --json <&- >&-", tmp_path) == (0, "", "")
    assert in_shell("ampere estimate nonsense 2>&-", tmp_path) == (2, "", "")
    record_property("figure", "closed standard streams: exit codes as with open ones")


@POSIX_SHELL
def test_an_ascii_console(tmp_path):
    odd = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    code, out, err = in_shell("ampere estimate modèle", tmp_path, **odd)
    assert (code, out) == (2, "")
    assert err.startswith("ampere: there is no model 'mod")
    assert err.count("\n") == 1


@POSIX_SHELL
def test_a_current_folder_that_is_gone(tmp_path):
    code, out, err = in_shell("mkdir d; cd d; rmdir ../d; ampere estimate cnn5", tmp_path)
    assert (code, out) == (7, "")
    assert err == "ampere: the current folder was removed: change to another one and run again\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is a folder that not even root can write to")
def test_a_current_folder_that_cannot_be_written_to(monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.chdir("/proc")
    assert main(["trace", "lenet5", "--out", "net.json"]) == 7
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="Windows has no HOME")
def test_no_home(monkeypatch, capsys):
    import pwd

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("AMPERE_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: pwd.getpwnam(f"nobody has number {uid}"))
    assert main(["profile", "cnn5", "--device", "simulated:xavier", "--seconds", "5"]) == 7
    assert capsys.readouterr().err == (
        "ampere: you have no home folder to store profiles in: set AMPERE_HOME to a folder\n"
    )
    monkeypatch.setenv("AMPERE_HOME", "here")
    assert str(home()) == "here"


def test_the_home_of_nobody(capsys):
    assert main(["estimate", "~nobody at all/net.py:build"]) == 3
    assert "write the path without ~" in capsys.readouterr().err
