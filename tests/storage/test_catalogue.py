"""The catalogue: profiles to share, whole or refused, without what tells one machine from another."""

import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.synthetic import observed, random_chains

from ampere.core import Meter, TrainingSetup
from ampere.core.errors import ProfileError, UsageError
from ampere.storage.catalogue import Catalogue, Entry, alikeness, shareable
from ampere.storage.profile import Profile

DEVICE = {
    "id": "phone_abcd1234",
    "machine_id": "abcd1234",
    "host": "marys-phone",
    "cpu": "Kryo 585",
    "cores": 8,
    "system": "Linux",
    "machine": "aarch64",
}


def profile() -> Profile:
    observations = tuple(observed(network, 0.01) for network in random_chains(1, 3))
    return Profile(DEVICE, TrainingSetup(), Meter("adb:SERIAL42", True), 1e-3, observations)


def entry(name: str = "pixel-7") -> Entry:
    return Entry(name, shareable(profile(), name), "A. Volta", "CC-BY-4.0", "no case", "2026-11-17")


@pytest.fixture
def catalogue(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return Catalogue(tmp_path / "catalogue")


def test_an_entry_comes_back_as_it_was(catalogue):
    catalogue.add(entry())
    assert catalogue.names() == ["pixel-7"]
    assert catalogue.entry("pixel-7") == entry()
    assert catalogue.problems() == {"pixel-7": ""}


def test_what_tells_one_machine_from_another_is_left_out(catalogue):
    text = catalogue.add(entry()).read_text()
    assert not [word for word in ("abcd1234", "marys-phone", "SERIAL42") if word in text]
    assert "Kryo 585" in text
    assert shareable(profile(), "mine", keep_identity=True).device == DEVICE


@pytest.mark.parametrize("name", ["", "../evil", "a b", "x" * 81, ".hidden"])
def test_a_name_that_is_no_file_name_is_refused(name):
    with pytest.raises(UsageError, match="cannot name an entry"):
        entry(name)


@pytest.mark.parametrize("missing", ["measured_by", "licence"])
def test_an_entry_says_whose_it_is(missing):
    with pytest.raises(UsageError, match="does not say"):
        Entry(**{"name": "a", "profile": profile(), "measured_by": "me", "licence": "MIT", missing: " "})


def test_nothing_is_replaced(catalogue):
    catalogue.add(entry())
    with pytest.raises(UsageError, match="is there already"):
        catalogue.add(entry())


def test_a_changed_file_is_refused_and_the_others_stay(catalogue):
    path = catalogue.add(entry())
    catalogue.add(entry("other"))
    path.write_bytes(path.read_bytes().replace(b"A. Volta", b"B. Volta"))
    with pytest.raises(ProfileError):
        catalogue.entry("pixel-7")
    assert catalogue.problems()["pixel-7"]
    assert catalogue.problems()["other"] == ""


def test_a_renamed_file_is_refused(catalogue):
    catalogue.add(entry()).rename(catalogue.place + "/other.json")
    with pytest.raises(ProfileError, match="holds the entry pixel-7"):
        catalogue.entry("other")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served(catalogue):
    """The same folder at a web address of this machine."""
    catalogue.add(entry())
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=catalogue.place))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Catalogue(f"http://127.0.0.1:{server.server_address[1]}")
    server.shutdown()
    server.server_close()


def test_a_web_address_is_a_catalogue_too(served):
    assert served.names() == ["pixel-7"]
    assert served.entry("pixel-7") == entry()
    with pytest.raises(UsageError, match="can only be read"):
        served.add(entry("more"))
    with pytest.raises(UsageError, match="has no entry nothing"):
        served.entry("nothing")


def test_a_download_with_another_checksum_is_refused(served, catalogue):
    path = Path(catalogue.place) / "index.json"
    index = json.loads(path.read_text())
    index["entries"]["pixel-7"] = "0" * 64
    path.write_text(json.dumps(index))
    with pytest.raises(ProfileError, match="another checksum"):
        served.entry("pixel-7")


def test_an_address_that_is_no_catalogue_is_one_line(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(ProfileError, match="cannot be read"):
        Catalogue("http://127.0.0.1:9/none").names()


def test_how_alike_two_devices_are():
    assert alikeness(DEVICE, {**DEVICE, "id": "other"}) == "the same model as this device"
    assert "cpu Kryo 585, here M2" in alikeness(DEVICE, {**DEVICE, "cpu": "M2"})
