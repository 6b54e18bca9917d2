import json

import pytest
import torch

import ampere
from ampere.errors import ProfileError, UsageError
from ampere.pruning.saving import load, save
from ampere.pruning.tensor_file import read_tensors, write_tensors

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
    from ampere.profiles.files import read_document, write_document

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
