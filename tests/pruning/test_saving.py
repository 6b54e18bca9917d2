import copy
import json
import os

import pytest
import torch
from torch import nn

import ampere
from ampere.core.errors import ModelError, ProfileError, StorageError, UsageError
from ampere.pruning.saving import check_place, load, read_tensors, save, write_tensors
from ampere.pruning.structure import find_groups, without

from .conftest import Tied, plain


@pytest.fixture
def pruned(tied, image, estimator):
    return ampere.prune(tied, image, "70%", estimator)


def test_a_description_makes_the_model_again(pruned, tied, image, tmp_path):
    written = save(pruned, tied, (image,), tmp_path / "small.json")
    assert [p.name for p in written] == ["small.json", "small.safetensors"]
    again = load(tmp_path / "small.json", Tied())
    assert torch.equal(again.eval()(image), pruned.model.eval()(image))
    again.train()(image).square().mean().backward()
    assert all(p.grad is not None for p in again.parameters())


def test_an_exported_program_answers_the_same(pruned, tied, image, tmp_path):
    save(pruned, tied, (image,), tmp_path / "small.pt2")
    again = torch.export.load(tmp_path / "small.pt2").module()
    pruned.model.train()
    assert torch.allclose(again(image), pruned.model(image), atol=1e-5)


def test_another_model_is_refused(pruned, tied, image, tmp_path):
    save(pruned, tied, (image,), tmp_path / "small.json")
    with pytest.raises(ProfileError, match="does not fit Sequential"):
        load(tmp_path / "small.json", plain())


def test_no_attribute_but_a_size_is_ever_set(pruned, tied, image, tmp_path):
    from ampere.storage.files import read_document, write_document

    save(pruned, tied, (image,), tmp_path / "small.json")
    body = read_document(tmp_path / "small.json", "pruned", 1)
    body["modules"]["head"] = {"forward": 3}
    write_document(tmp_path / "small.json", "pruned", 1, body)
    with pytest.raises(ProfileError, match="does not fit"):
        load(tmp_path / "small.json", Tied())


def test_another_ending_is_refused(pruned, tied, image, tmp_path):
    with pytest.raises(UsageError, match=r"pruned\.pt2 or pruned\.json"):
        save(pruned, tied, (image,), tmp_path / "small.pkl")


def test_tensors_of_any_sort_come_back(tmp_path):
    tensors = {
        "a": torch.randn(3, 4),
        "b": torch.tensor(7),
        "c": torch.tensor([True, False]),
        "d": torch.randn(2).bfloat16(),
        "e": torch.empty(0, 3),
        "f": torch.randn(2, 3, dtype=torch.complex64),
        "g": torch.tensor([1, 60000], dtype=torch.uint16),
    }
    write_tensors(tmp_path / "t.safetensors", tensors)
    back = read_tensors(tmp_path / "t.safetensors")
    assert all(torch.equal(back[k], v) and back[k].dtype == v.dtype for k, v in tensors.items())


def test_others_can_read_the_tensors(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    write_tensors(tmp_path / "t.safetensors", {"a": torch.arange(6.0).reshape(2, 3)})
    assert torch.equal(safetensors.load_file(tmp_path / "t.safetensors")["a"], torch.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("spoil", [lambda raw: raw[:-3], lambda raw: raw[:5], lambda raw: b"\xff" * len(raw)])
def test_damage_is_noticed(tmp_path, spoil):
    place = tmp_path / "t.safetensors"
    write_tensors(place, {"a": torch.randn(3, 4)})
    place.write_bytes(spoil(place.read_bytes()))
    with pytest.raises(ProfileError, match="no whole tensors"):
        read_tensors(place)


def test_a_shape_that_lies_is_refused(tmp_path):
    header = json.dumps({"a": {"dtype": "F32", "shape": [100], "data_offsets": [0, 8]}}).encode()
    (tmp_path / "t").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(ProfileError, match="another length"):
        read_tensors(tmp_path / "t")


def test_what_plain_files_do_not_hold_is_said(tmp_path):
    with pytest.raises(ModelError, match=r"phase is complex128.*\.pt2"):
        write_tensors(tmp_path / "t.safetensors", {"phase": torch.zeros(2, dtype=torch.complex128)})


class Words(nn.Module):
    """One table reads and writes words; two layers that are narrowed apart share their weights."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.write = nn.Embedding(30, 16), nn.Linear(16, 30, bias=False)
        self.up, self.down = nn.Linear(16, 2000), nn.Linear(2000, 16)
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)
        self.write.weight, self.second.weight = self.read.weight, self.first.weight

    def forward(self, x):
        h = self.read(x)
        h = h + self.second(self.first(h).relu())
        return self.write(h + self.down(self.up(h).relu()))


def test_weights_that_are_one_stay_one(estimator, tmp_path):
    words, x = Words(), torch.randint(30, (10, 7))
    pruned = ampere.prune(words, x, "95%", estimator)
    small = pruned.model
    assert small.up.out_features < 2000
    assert small.write.weight is small.read.weight
    assert small.second.weight is small.first.weight
    assert (
        "first: its weights are shared, and first.weight and second.weight would no longer be the same" in pruned.fixed
    )
    save(pruned, words, (x,), tmp_path / "words.json")
    again = load(tmp_path / "words.json", Words())
    assert again.write.weight is again.read.weight
    assert again.second.weight is again.first.weight
    assert torch.equal(again(x), small(x))


def test_a_table_that_reads_and_writes_is_narrowed_as_one():
    words, x = Words(), torch.randint(30, (10, 7))
    words.second.weight = nn.Parameter(words.second.weight.detach().clone())
    groups = find_groups(copy.deepcopy(words), (x,))
    [stream] = [g for g in groups if "read" in g.paths]
    small = without(words, [stream], {stream.name: [0, 3]})
    assert small.write.weight is small.read.weight
    assert small.read.weight.shape == (30, 14)
    assert small(x).shape == words(x).shape


@pytest.mark.parametrize("ending", ["pt2", "json"])
def test_folders_are_made(pruned, tied, image, tmp_path, ending):
    [first, *_] = save(pruned, tied, (image,), tmp_path / "new" / "deep" / f"small.{ending}")
    assert first.stat().st_size > 100


@pytest.mark.parametrize("ending", ["pt2", "json"])
def test_what_cannot_be_written_is_said_before_the_work_and_after(pruned, tied, image, tmp_path, ending):
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / f"small.{ending}"
    with pytest.raises(StorageError, match="not a folder"):
        check_place(place)
    with pytest.raises(StorageError, match="not a folder"):
        save(pruned, tied, (image,), place)
    (tmp_path / f"a.{ending}").mkdir()
    with pytest.raises(StorageError, match="it is a folder"):
        check_place(tmp_path / f"a.{ending}")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_said_before_the_work(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="permission denied"):
        check_place(tmp_path / "small.json")
