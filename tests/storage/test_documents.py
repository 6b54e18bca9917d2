"""Documents come back as they were written, and say in one line why they do not."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ampere.core.errors import ProfileError
from ampere.storage import Profile, read_document, write_document

leaves = st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False)
values: st.SearchStrategy[Any] = st.recursive(
    leaves | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)


@settings(max_examples=150, deadline=None)
@given(body=values)
def test_round_trip(tmp_path_factory, body):
    path = tmp_path_factory.getbasetemp() / "document.json"
    write_document(path, "note", 1, body)
    assert read_document(path, "note", 1) == body
    first = path.read_bytes()
    write_document(path, "note", 1, read_document(path, "note", 1))
    assert path.read_bytes() == first


@settings(max_examples=100, deadline=None)
@given(raw=st.binary(max_size=300))
def test_arbitrary_bytes_are_refused(tmp_path_factory, raw):
    path = tmp_path_factory.getbasetemp() / "arbitrary.json"
    path.write_bytes(raw)
    with pytest.raises(ProfileError):
        read_document(path, "note", 1)


def test_a_missing_file_suggests_its_neighbours(tmp_path):
    write_document(tmp_path / "laptop-torch.json", "profile", 1, {})
    with pytest.raises(ProfileError, match=r"does not exist: did you mean laptop-torch\.json\?"):
        Profile.load(tmp_path / "laptop-toch.json")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(ProfileError, match=r"there is no folder .*nowhere"):
        Profile.load(tmp_path / "nowhere" / "p.json")


def test_an_older_format_is_read(tmp_path):
    write_document(tmp_path / "n.json", "note", 1, {"a": 1})
    assert read_document(tmp_path / "n.json", "note", 3) == {"a": 1}


@pytest.mark.parametrize("body", [object(), {1, 2}, {(1, 2): 3}, b"x", 10**40, {1: 2, "1": 3}, float("nan")])
def test_what_could_not_be_read_again_is_not_written(tmp_path, body):
    with pytest.raises(ProfileError, match="not written"):
        write_document(tmp_path / "n.json", "note", 1, body)
    assert not list(tmp_path.iterdir())


def test_neither_is_what_is_nested_too_deeply(tmp_path):
    for depth in (40, 100_000):
        body: list[Any] = []
        for _ in range(depth):
            body = [body]
        with pytest.raises(ProfileError, match="not written"):
            write_document(tmp_path / "n.json", "note", 1, body)


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege")
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    write_document(tmp_path / "link.json", "note", 1, 5)
    assert (tmp_path / "link.json").is_symlink()
    assert read_document(tmp_path / "real.json", "note", 1) == 5


def test_readers_never_see_half_a_document(tmp_path):
    path = tmp_path / "n.json"
    bodies = [["x" * 100_000], ["y" * 200_000]]
    write_document(path, "note", 1, bodies[0])
    writer = threading.Thread(target=lambda: [write_document(path, "note", 1, bodies[n % 2]) for n in range(30)])
    writer.start()
    while writer.is_alive():
        assert read_document(path, "note", 1) in bodies
    writer.join()
    assert [p.name for p in tmp_path.iterdir()] == ["n.json"]


def test_folders_are_made(tmp_path: Path):
    write_document(tmp_path / "a" / "b" / "n.json", "note", 1, 1)
    assert read_document(tmp_path / "a" / "b" / "n.json", "note", 1) == 1


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    old, new = tmp_path / ".ampere-0011.tmp", tmp_path / ".ampere-2233.tmp"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    write_document(tmp_path / "d.json", "profile", 1, {})
    assert not old.exists()
    assert new.exists(), "somebody may be writing it"
