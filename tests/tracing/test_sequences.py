"""Sorting, largest values and running sums are known by name and shapes, and are built again."""

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from ampere.core import Layer, Network, TrainingSetup, work  # noqa: E402
from ampere.runtimes import find_runtime  # noqa: E402
from ampere.runtimes.table import OURS  # noqa: E402
from ampere.tracing.recorder import tensors_in  # noqa: E402
from ampere.tracing.standins import stand_in  # noqa: E402
from ampere.tracing.trace import trace  # noqa: E402

KINDS = ("sort", "top_k", "scan")
BATCH, WIDTH = 6, 16


class Between(nn.Module):
    """Two linear layers with an operation between them."""

    def __init__(self, operation, after: int = WIDTH) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.first, self.operation, self.second = nn.Linear(WIDTH, WIDTH), operation, nn.Linear(after, 3)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.second(self.operation(self.first(x)))
        return found


def traced(operation, after: int = WIDTH) -> Network:  # type: ignore[no-untyped-def]
    return trace(Between(operation, after), torch.randn(BATCH, WIDTH))


def between(operation, after: int = WIDTH) -> list[tuple]:  # type: ignore[no-untyped-def, type-arg]
    layers = [layer for layer in traced(operation, after).layers if layer.kind in KINDS]
    return [(x.kind, x.config["outer"], x.channels_in, x.channels_out, x.config["inner"]) for x in layers]


def test_each_is_known_by_its_shapes() -> None:
    assert between(lambda x: x.sort(1).values) == [("sort", BATCH, WIDTH, WIDTH, 1)]
    assert between(lambda x: x.topk(2).values, 2) == [("top_k", BATCH, WIDTH, 2, 1)]
    assert between(lambda x: x.cumsum(0)) == [("scan", 1, BATCH, BATCH, WIDTH)], "along the batch: values lie apart"


def test_gradients_go_through_what_has_one() -> None:
    def ranked(x: Tensor) -> Tensor:
        return x + x.detach().argsort(1)

    assert [x.input_grad for x in traced(ranked).layers if x.kind == "sort"] == [False]
    assert [x.input_grad for x in traced(lambda x: x.sort(1).values).layers if x.kind == "sort"] == [True]


def test_a_few_whole_numbers_are_bookkeeping() -> None:
    def positions(x: Tensor) -> Tensor:
        return x + (x > 0).long().cumsum(1)

    assert between(positions) == []


def test_longer_sequences_are_more_work() -> None:
    for kind in KINDS:
        sizes = [Layer(kind, {"outer": 4, "inner": 1}, n, n) for n in (64, 128)]
        short, long = (work(layer).values for layer in sizes)
        assert long > 2 * short if kind != "scan" else long == 2 * short


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x.sort(1).values,
        lambda x: x.sort(0).values,
        lambda x: x + x.topk(2).values.sum(1, keepdim=True),
        lambda x: x.cumsum(0),
    ],
)
def test_a_described_one_trains(operation) -> None:  # type: ignore[no-untyped-def]
    network = traced(operation)
    training = find_runtime("torch").build({"layers": network.to_json()}, TrainingSetup(optimizer="adam"))
    training.step()
    first = training.last_loss()
    for _ in range(30):
        training.step()
    assert training.last_loss() < first


def test_other_runtimes_refuse_them_by_name() -> None:
    for runtime in ("jax", "mnn"):
        assert OURS[runtime].lacks(Layer("sort", {"outer": 2, "inner": 1}, 4, 4)) == "no sort"


def test_pooling_to_one_place_needs_no_compiler() -> None:
    """The mean that it is has a stand-in: the reference code imports one, which takes longer than all the rest."""
    images = torch.empty(2, 3, 4, 5, device="meta")
    found = stand_in(torch.ops.aten.mean.dim, (images, [-1, -2], True))
    assert found is not None
    assert found.shape == images.mean((-1, -2), keepdim=True).shape


aten, IMAGES = torch.ops.aten, (2, 3, 4, 5)
CONTIGUOUS, PRESERVED = ({"memory_format": order} for order in (torch.contiguous_format, torch.preserve_format))
WITH_STAND_INS = [
    (aten.sum.dim_IntList, [IMAGES, [0, -1], True], {}),
    (aten.sum.dim_IntList, [IMAGES, [1]], {}),
    (aten.add.Tensor, [IMAGES, IMAGES], {}),
    (aten.add.Tensor, [IMAGES, (5,)], {}),
    (aten.mul.Tensor, [IMAGES, (3, 1, 1)], {}),
    (aten.div.Scalar, [IMAGES, 2], {}),
    (aten.empty_like.default, [IMAGES], {"pin_memory": False}),
    (aten.clone.default, [IMAGES], CONTIGUOUS),
    (aten.clone.default, [IMAGES], PRESERVED),
    (aten.select_backward.default, [(3, 4), [2, 3, 4], 0, 1], {}),
    (aten.slice_backward.default, [(2, 3, 2), [2, 3, 4], 2, 0, 2, 1], {}),
    (aten.sigmoid_backward.default, [IMAGES, IMAGES], {}),
    (aten.mul.Tensor, [(5,), IMAGES], {}),
    (aten.mul.Tensor, [IMAGES, ()], {}),
    (aten.pow.Tensor_Scalar, [IMAGES, 3], {}),
    (aten.mean.default, [IMAGES], {}),
    (aten.cat.default, [[IMAGES, (2, 6, 4, 5)], 1], {}),
    (aten.cat.default, [[IMAGES, IMAGES], -1], {}),
    (aten.upsample_bilinear2d.default, [IMAGES, [8, 9], True, None, None], {}),
    (aten.native_group_norm.default, [(2, 6, 4, 5), (6,), (6,), 2, 6, 20, 3, 1e-5], {}),
    (aten.native_group_norm.default, [(2, 6, 4), None, None, 2, 6, 4, 1, 1e-5], {}),
    (
        aten.native_group_norm_backward.default,
        [(2, 6, 4), (2, 6, 4), (2, 3), (2, 3), (6,), 2, 6, 4, 3, [True, True, True]],
        {},
    ),
]
OTHERS = [
    (aten.sum.dim_IntList, [IMAGES, [1]], {"dtype": torch.float64}),
    (aten.sub.Tensor, [(4, 1, 6), (4, 6, 1)], {}),  # the result is larger than both
    (aten.mean.default, [IMAGES], {"dtype": torch.float64}),
    (aten.cat.default, [[(0,), IMAGES], 1], {}),  # what has no values is left out, whatever its shape
    (aten.empty_like.default, [IMAGES], CONTIGUOUS),
    (aten.empty_like.default, [IMAGES], {"dtype": torch.float16}),
]


@pytest.mark.parametrize("order", ["usual", "turned", "repeated", "cut"])
@pytest.mark.parametrize(("operation", "operands", "options"), [*WITH_STAND_INS, *OTHERS], ids=str)
def test_stand_ins_lie_in_memory_as_the_result_would(operation, operands, options, order):  # type: ignore[no-untyped-def]
    """Also where the first operand's dimensions are in another order, or it is one value, repeated, or a part."""
    first = operands[0][0] if isinstance(operands[0], list) else operands[0]
    laid = {
        "usual": torch.empty(first, device="meta"),
        "turned": torch.empty(first[::-1], device="meta").permute(*reversed(range(len(first)))),
        "repeated": torch.empty((), device="meta").expand(first),
        "cut": torch.empty((*first[:-1], 2 * first[-1]), device="meta")[..., : first[-1]],
    }

    def made(operand):  # type: ignore[no-untyped-def]
        if isinstance(operand, list):
            return [made(one) for one in operand]
        return torch.empty(operand, device="meta") if isinstance(operand, tuple) else operand

    given = [made(operand) for operand in operands]
    if isinstance(given[0], list):
        given[0][0] = laid[order]
    else:
        given[0] = laid[order]
    found, real = stand_in(operation, given, options), operation(*given, **options)
    assert found is not None or order != "usual" or (operation, operands, options) in OTHERS
    if found is not None:
        assert [_lies(t) for t in tensors_in([found])] == [_lies(t) for t in tensors_in([real])]


def _lies(tensor: Tensor) -> object:
    steps = [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1]
    return tensor.shape, tensor.dtype, tensor.device, steps


def test_what_is_changed_in_place_stays_where_it_is() -> None:
    whole = torch.empty(4, 6, device="meta")
    assert stand_in(aten.sigmoid_.default, (whole[:, :2],)).stride() == (6, 1)
    assert stand_in(aten.tanh_.default, (whole[:1].expand(4, 6),)) is None


def test_packed_sequences_are_counted_operation_by_operation() -> None:
    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(4, 6, batch_first=True)

        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
            return self.lstm(packed)[0].data

    network = trace(Packed(), (torch.randn(3, 5, 4), torch.tensor([5, 3, 2])))
    kinds = [layer.kind for layer in network.layers if layer.name.startswith("lstm.weight_hh")]
    assert kinds == ["linear"] * 5  # one for each place
    assert sum(work(layer).parameters for layer in network.layers) == 4 * 6 * (4 + 6 + 2)
