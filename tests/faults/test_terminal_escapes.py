"""Names from files, devices and meters reach the terminal, reports and errors with control characters escaped."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ampere.cli.entry import main
from ampere.core import Network
from ampere.core.display import html_table
from ampere.core.errors import DeviceError
from ampere.core.escaping import printable
from ampere.devices.answers import as_error
from ampere.storage import Observation, Profile, save_network

pytestmark = pytest.mark.fault(26)

# Writes to the clipboard (OSC 52), colours (C1), clears the line, begins another, and reverses what follows.
NAME = "name\x1b]52;c;YQ==\x07\x9b31m\r\n\x7f\u202egnp"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
ESCAPED = r"\x1b]52;c;YQ==\x07\x9b31m"
BASE = Profile.load(Path(__file__).parents[1] / "fixtures" / "profile-format-2.json")


def renamed(network: Network) -> Network:
    layers = tuple(replace(layer, name=f"{layer.name}{NAME}") for layer in network.layers)
    return replace(network, name=NAME, notes=(NAME,), layers=layers)


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A folder with a profile and networks whose every name is hostile; the profile is also a device to replay."""
    meter = replace(BASE.meter, scope=NAME)
    seen = [
        Observation(renamed(o.network), replace(o.measurement, meter=meter, flags=(NAME,)), o.purpose)
        for o in BASE.observations
    ]
    device = {**BASE.device, "id": NAME, "cpu": NAME, "system": NAME, "runtimes": {"torch": NAME}}
    profile = replace(BASE, observations=tuple(seen), meter=meter, spaces=(NAME,), device=device)
    for path in ("p.json", "home/profiles/x.json"):
        profile.save(tmp_path / path)
    for index, name in enumerate(("a.json", "b.json")):
        save_network(seen[index].network, tmp_path / name)
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


ON_IT = "--device replayed:p.json"
COMMANDS = {
    f"estimate a.json --profile p.json --allow-other-device {ON_IT}": 0,
    f"estimate a.json --profile p.json --allow-other-device --json {ON_IT}": 0,
    f"estimate a.json --profile p.json {ON_IT}": 4,
    "compare a.json b.json --profile p.json": 0,
    "report a.json --profile p.json --out report.html": 0,
    "trace a.json": 0,
    f"devices {ON_IT}": 0,
    f"measure a.json {ON_IT}": 2,
    f"profile a.json {ON_IT} --out {NAME.split()[0]}.json": 2,
    f"estimate {NAME.split()[0]}": None,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_what_a_terminal_obeys(place, capsys, command):
    code = main(command.split(" "))
    shown = "".join(capsys.readouterr())
    assert code == COMMANDS[command] or COMMANDS[command] is None, shown
    assert code != 70, shown
    assert shown
    assert not OBEYED.search(shown)


def test_a_name_is_shown_and_not_left_out(place, capsys):
    assert main(["trace", "a.json"]) == 0
    assert ESCAPED in capsys.readouterr().out.replace("\n", "").replace(" ", "")


def test_reports_and_notebooks(place):
    assert main(["report", "a.json", "--profile", "p.json", "--out", "report.html"]) == 0
    assert main(["report", "a.json", "--profile", "p.json", "--out", "charts", "--format", "svg"]) in (0, 2)
    for path in (place / "report.html", *place.glob("charts/*.svg")):
        page = path.read_text(encoding="utf-8")
        assert ESCAPED in page or path.suffix == ".svg"
        assert not OBEYED.search(page.replace("\t", ""))
    assert not OBEYED.search(html_table(NAME, [{NAME: NAME}]))


def test_errors_of_the_library_and_of_workers():
    assert str(DeviceError(NAME)) == printable(NAME)
    for kind in ("meter_failed", "busy", "anything"):
        assert not OBEYED.search(str(as_error(kind, NAME)))


def test_what_people_write_is_left_as_it_is():
    assert printable("Müller's 模型 №5 → ok é") == "Müller's 模型 №5 → ok é"
