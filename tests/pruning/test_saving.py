import copy
import json
import os
import textwrap
from pathlib import Path

import pytest
import torch
from torch import nn

import ampere
from ampere.core.errors import ModelError, ProfileError, RuntimeMissingError, StorageError, UsageError
from ampere.pruning.saving import check_writable, load_pruned, read_tensors, write_tensors
from ampere.pruning.structure import find_groups, without
from ampere.storage.files import read_document, write_document

from .conftest import Tied, plain

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture
def pruned(tied, image, estimator):
    return ampere.prune(tied, image, "70%", estimator)


def test_a_description_makes_the_model_again(pruned, image, tmp_path):
    written = pruned.save(tmp_path / "small.json")
    assert [p.name for p in written] == ["small.json", "small.safetensors"]
    again = load_pruned(tmp_path / "small.json", Tied())
    assert torch.equal(again.eval()(image), pruned.model.eval()(image))
    again.train()(image).square().mean().backward()
    assert all(p.grad is not None for p in again.parameters())


def test_an_exported_program_answers_the_same(pruned, image, tmp_path):
    pruned.save(tmp_path / "small.pt2")
    again = torch.export.load(tmp_path / "small.pt2").module()
    pruned.model.train()
    assert torch.allclose(again(image), pruned.model(image), atol=1e-5)


def test_the_model_that_is_given_is_not_changed(pruned, tmp_path):
    pruned.save(tmp_path / "small.json")
    original = Tied()
    before = {name: tensor.clone() for name, tensor in original.state_dict().items()}
    again = load_pruned(tmp_path / "small.json", original)
    assert again is not original
    assert again.stem[0].out_channels < original.stem[0].out_channels == 16
    assert all(torch.equal(tensor, before[name]) for name, tensor in original.state_dict().items())


@pytest.fixture
def lenet5(estimator, tmp_path):
    loaded = ampere.load_model("lenet5")
    pruned = ampere.prune(loaded, loaded.inputs, "90%", estimator)
    pruned.save(tmp_path / "pruned.json")
    return pruned


def test_a_model_of_amperes_own_needs_no_other(lenet5, tmp_path):
    again, [image] = load_pruned(tmp_path / "pruned.json"), lenet5.original.inputs
    assert torch.equal(again.eval()(image), lenet5.model.eval()(image))


def test_a_users_model_is_asked_for(pruned, tmp_path):
    pruned.save(tmp_path / "small.json")
    with pytest.raises(UsageError, match=r"needs the model.*ampere\.load_pruned\('small\.json', model\)"):
        load_pruned(tmp_path / "small.json")


@pytest.mark.parametrize(
    "original", [{"space": "nose", "arguments": {}}, {"space": "lenet5", "arguments": {"fc": "x"}}]
)
def test_an_origin_that_makes_no_sense_is_refused_in_one_line(lenet5, tmp_path, original):
    body = read_document(tmp_path / "pruned.json", "pruned", 1)
    write_document(tmp_path / "pruned.json", "pruned", 1, {**body, "original": original})
    with pytest.raises(ProfileError, match="does not describe a") as caught:
        load_pruned(tmp_path / "pruned.json")
    assert "\n" not in str(caught.value)


def test_the_snippet_of_the_docstring_loads_and_trains_on(lenet5, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ampere, "load_pruned", load_pruned, raising=False)
    snippet = textwrap.dedent(load_pruned.__doc__[load_pruned.__doc__.index("        # after:") :])
    torch.manual_seed(0)
    ran: dict = {}
    exec(snippet, ran)
    trained, saved = ran["model"].state_dict(), lenet5.model.state_dict()
    assert trained.keys() == saved.keys()
    assert not torch.equal(*(state[next(iter(saved))] for state in (trained, saved)))
    assert ran["loss"] < 2.4


def test_a_file_of_the_first_edition_is_loaded():
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()]
    original = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))
    again = load_pruned(FIXTURES / "pruned-format-1.json", original)
    image = torch.randn(10, 3, 14, 14, generator=torch.Generator().manual_seed(0))
    assert again[0].out_channels == 3
    assert again.eval()(image).sum().item() == pytest.approx(5.530261, rel=1e-4)
    with pytest.raises(UsageError, match="needs the model that was pruned"):
        load_pruned(FIXTURES / "pruned-format-1.json")


def test_without_safetensors_it_says_what_to_install(pruned, tmp_path, monkeypatch):
    monkeypatch.setattr("ampere.pruning.saving.importlib.util.find_spec", lambda name: None)
    with pytest.raises(RuntimeMissingError, match=r"ampere-energy\[prune\]"):
        check_writable(tmp_path / "small.json")


def test_another_model_is_refused(pruned, tmp_path):
    pruned.save(tmp_path / "small.json")
    with pytest.raises(ProfileError, match="does not fit Sequential"):
        load_pruned(tmp_path / "small.json", plain())


def test_no_attribute_but_a_size_is_ever_set(pruned, tmp_path):
    pruned.save(tmp_path / "small.json")
    body = read_document(tmp_path / "small.json", "pruned", 1)
    body["modules"]["head"] = {"forward": 3}
    write_document(tmp_path / "small.json", "pruned", 1, body)
    with pytest.raises(ProfileError, match="does not fit"):
        load_pruned(tmp_path / "small.json", Tied())


def test_another_ending_is_refused(pruned, tmp_path):
    with pytest.raises(UsageError, match=r"pruned\.pt2 or pruned\.json"):
        pruned.save(tmp_path / "small.pkl")


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
    from safetensors.torch import load_file

    write_tensors(tmp_path / "t.safetensors", {"a": torch.arange(6.0).reshape(2, 3)})
    assert torch.equal(load_file(tmp_path / "t.safetensors")["a"], torch.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("spoil", [lambda raw: raw[:-3], lambda raw: raw[:5], lambda raw: b"\xff" * len(raw)])
def test_damage_is_noticed(tmp_path, spoil):
    path = tmp_path / "t.safetensors"
    write_tensors(path, {"a": torch.randn(3, 4)})
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(ProfileError, match="not a whole tensor file"):
        read_tensors(path)


def test_a_shape_that_lies_is_refused(tmp_path):
    header = json.dumps({"a": {"dtype": "F32", "shape": [100], "data_offsets": [0, 8]}}).encode()
    (tmp_path / "t").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(ProfileError, match=r"not a whole tensor file .*shape"):
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
    pruned.save(tmp_path / "words.json")
    again = load_pruned(tmp_path / "words.json", Words())
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
def test_folders_are_made(pruned, tmp_path, ending):
    [first, *_] = pruned.save(tmp_path / "new" / "deep" / f"small.{ending}")
    assert first.stat().st_size > 100


@pytest.mark.parametrize("ending", ["pt2", "json"])
def test_what_cannot_be_written_is_said_before_the_work_and_after(pruned, tmp_path, ending):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / f"small.{ending}"
    with pytest.raises(StorageError, match="not a folder"):
        check_writable(path)
    with pytest.raises(StorageError, match="not a folder"):
        pruned.save(path)
    (tmp_path / f"a.{ending}").mkdir()
    with pytest.raises(StorageError, match="it is a folder"):
        check_writable(tmp_path / f"a.{ending}")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_said_before_the_work(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="permission denied"):
        check_writable(tmp_path / "small.json")
