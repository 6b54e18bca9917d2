"""A profile that is cut short or has one flipped bit is refused, wherever that is, and at once."""

import random
import time
from pathlib import Path

import pytest

from ampere.core.errors import ProfileError
from ampere.storage import Profile, load_network, save_network

pytestmark = pytest.mark.fault(17)

FIXTURE = Path(__file__).parents[1] / "fixtures" / "profile-format-2.json"
ENVELOPE_BYTES = 130


def refused_within_a_second(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    began = time.process_time()  # not the wall's time, which is others' too
    with pytest.raises(ProfileError) as refusal:
        Profile.load(path)
    assert time.process_time() - began < 1
    assert "\n" not in str(refusal.value)


def flipped(raw: bytes, bit: int) -> bytes:
    copy = bytearray(raw)
    copy[bit // 8] ^= 1 << bit % 8
    return bytes(copy)


def test_cut_at_every_length(tmp_path):
    raw = FIXTURE.read_bytes()
    for length in range(len(raw)):
        refused_within_a_second(tmp_path / "p.json", raw[:length])


def test_every_bit_of_the_envelope(tmp_path):
    raw = FIXTURE.read_bytes()
    for bit in range(8 * ENVELOPE_BYTES):
        refused_within_a_second(tmp_path / "p.json", flipped(raw, bit))


def test_two_thousand_bits_anywhere(tmp_path):
    raw, chance = FIXTURE.read_bytes(), random.Random(17)
    for bit in chance.sample(range(8 * len(raw)), 2000):
        refused_within_a_second(tmp_path / "p.json", flipped(raw, bit))


def test_something_added_at_either_end(tmp_path):
    raw = FIXTURE.read_bytes()
    for damaged in (raw + b" ", b" " + raw, raw + raw, b"\xef\xbb\xbf" + raw, raw.replace(b"\n", b"\r\n")):
        refused_within_a_second(tmp_path / "p.json", damaged)


def test_a_number_changed_by_hand(tmp_path):
    path = tmp_path / "p.json"
    path.write_bytes(FIXTURE.read_bytes().replace(b'"cores":2', b'"cores":4'))
    with pytest.raises(ProfileError, match="checksum"):
        Profile.load(path)


def test_a_damaged_network(tmp_path):
    path = tmp_path / "n.json"
    save_network(Profile.load(FIXTURE).observations[0].network, path)
    raw = path.read_bytes()
    for length in range(0, len(raw), 7):
        path.write_bytes(raw[:length])
        with pytest.raises(ProfileError):
            load_network(path)
