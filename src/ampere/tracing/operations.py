"""Aten operations: the class of each, its FLOPs, the parameters it reads, and whether backward reaches it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log2, prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import BackwardCFunction

from ampere.core import KINDS
from ampere.core.kinds.kind import TorchRecogniser

# The class of an aten operation. What no class knows is `UNKNOWN`, and is never passed over.
#
# free      views and bookkeeping: nothing is computed
# layer     a layer begins: an operation that a kind recognises
# the rest  the classes of trailing operations; a layer may begin with one of those, too

FREE, LAYER, UNKNOWN = "free", "layer", "unknown"

RECOGNISERS: dict[str, list[TorchRecogniser]] = {}  # of each operation, those of the kinds that may begin with it
for kind in KINDS.values():
    for name, recogniser in kind.torch.items():
        RECOGNISERS.setdefault(name, []).append(recogniser)

_NAMES = {
    FREE: """_unsafe_view lift_fresh empty empty_like empty_strided empty_permuted new_empty new_empty_strided
        _local_scalar_dense sym_size sym_stride sym_numel sym_storage_offset is_same_size set resize _assert_async
        _assert_scalar _assert_tensor_metadata _functional_assert_async dim size stride numel is_contiguous is_pinned
        item _has_same_storage_numel _version unsafe_split unsafe_split_with_sizes unsafe_chunk prim::device
        _nested_tensor_from_mask_left_aligned is_complex is_nonzero equal _print
        _linalg_check_errors transpose squeeze unsqueeze t _is_all_true _is_any_true""",
    "dropout": """native_dropout dropout bernoulli rand rand_like randn randn_like randint randint_like randperm uniform
        normal exponential geometric""",
    "transcendental": """exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh
        atanh erf erfc erfinv sigmoid logit log_sigmoid_forward softplus gelu silu mish elu glu sinc logaddexp
        logaddexp2 lgamma digamma polar""",
    "elementwise": """hardswish _prelu_kernel rrelu_with_noise
        rrelu_with_noise_functional abs threshold masked_fill eq ne lt le gt ge __and__ __or__ __ior__
        __iand__ floor_divide complex _masked_scale heaviside zero fill tril triu lift isin
        _weight_norm_interface _conj_physical addr _conj""",
    "pool": """max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d
        _adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d
        upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d
        _upsample_nearest_exact2d _upsample_nearest_exact3d
        mkldnn_max_pool2d mkldnn_adaptive_avg_pool2d""",
    "enlarge": "upsample_linear1d upsample_bilinear2d upsample_trilinear3d",
    "reduce": """sum mean prod var var_mean std std_mean amax amin aminmax argmax argmin max min any all norm
        linalg_vector_norm logsumexp nansum count_nonzero _softmax _log_softmax _safe_softmax masked_softmax
        nll_loss_forward nll_loss2d_forward mse_loss smooth_l1_loss huber_loss binary_cross_entropy
        binary_cross_entropy_with_logits soft_margin_loss multi_margin_loss multilabel_margin_loss_forward trace mv
        addmv dot vdot""",
    "copy": """embedding cat stack clone copy _to_copy repeat repeat_interleave index index_select gather take index_put
        _unsafe_index _unsafe_index_put index_copy index_fill index_add scatter scatter_add constant_pad_nd
        reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d roll
        flip rot90 pixel_shuffle pixel_unshuffle channel_shuffle im2col col2im ones ones_like zeros zeros_like full
        full_like new_ones new_zeros new_full scalar_tensor arange linspace eye slice_scatter select_scatter
        diagonal_scatter as_strided_scatter diag_embed tril_indices triu_indices block_diag one_hot _chunk_cat
        _reshape_copy view_copy expand_copy permute_copy select_copy slice_copy unfold_copy split_with_sizes_copy
        masked_scatter _pin_memory contiguous""",
}
_CLASSES = {name: group for group, names in _NAMES.items() for name in names.split()}
_known: dict[Any, tuple[str, str]] = {}


def op_class(func: Any) -> tuple[str, str]:
    """Class and plain name (`add` for `aten.add_.Tensor`) of an operation."""
    known = _known.get(func)
    if known is None:
        known = _known[func] = _classify(func)
    return known


def _classify(func: Any) -> tuple[str, str]:
    namespace, _, name = func._schema.name.partition("::")
    if namespace != "aten":
        return (FREE if namespace in ("prim", "profiler") else UNKNOWN), f"{namespace}.{name}"
    plain = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    if plain.startswith(("_foreach_", "_amp_")):  # one operation on many tensors, as clipping and scalers of losses use
        return ("reduce" if plain == "_foreach_norm" else "elementwise"), plain
    if plain in _CLASSES:
        return _CLASSES[plain], plain
    if plain in RECOGNISERS:
        return LAYER, plain
    forward = plain.replace("_backward_data", "").replace("_backward", "").replace("_jvp", "")
    if forward != plain and (group := _of_backward(forward)):  # itself differentiated, as in a gradient penalty
        return group, plain
    if func.is_view:
        return FREE, plain
    if torch.Tag.pointwise in func.tags:
        return "elementwise", plain
    return ("reduce" if torch.Tag.reduction in func.tags else UNKNOWN), plain


def _of_backward(forward: str) -> str:
    """The class of an operation that is the backward pass of another; "" where it is a stranger."""
    found = getattr(torch.ops.aten, forward, None)
    if found is None:
        return _CLASSES.get(f"{forward}_forward", "")
    group = op_class(getattr(found, found.overloads()[0]))[0]
    return {FREE: "copy", LAYER: "", UNKNOWN: ""}.get(group, group)  # the gradient of a part is written into zeros


aten = torch.ops.aten


def _product(a: Any, b: Any) -> int:
    entries = a.numel() if a.layout == torch.strided else a._nnz()
    return 2 * int(entries) * int(b.shape[-1])


def _grouped_product(a: Any, b: Any) -> int:
    """Each row, or column, is multiplied with the matrix of one group only."""
    return _product(a[0] if a.dim() > b.dim() else a, b)


def _convolution(args: Sequence[Any], out: Any) -> int:
    x, weight, transposed = args[0], args[1], args[6]
    places = prod(x.shape[2:]) if transposed else prod(out.shape[2:])
    return 2 * int(x.shape[0]) * places * int(weight.numel())


def _convolution_backward(args: Sequence[Any], out: Any) -> int:
    grad, x, weight, transposed, mask = args[0], args[1], args[2], args[7], args[10]
    places = prod(x.shape[2:]) if transposed else prod(grad.shape[2:])
    return 2 * int(x.shape[0]) * places * int(weight.numel()) * (int(mask[0]) + int(mask[1]))


# How many of its first operands each of these puts in order before it begins. A gradient comes before the input.
OPERANDS_IN_ORDER = {
    "convolution": 1,
    "convolution_backward": 2,
    "native_layer_norm": 1,
    "native_layer_norm_backward": 2,
}
FLOPS: dict[Any, Callable[[Sequence[Any], Any], int]] = {
    aten.mm.default: lambda args, out: _product(args[0], args[1]),
    aten.bmm.default: lambda args, out: _product(args[0], args[1]),
    aten._sparse_addmm.default: lambda args, out: _product(args[1], args[2]),
    aten.addmm.default: lambda args, out: _product(args[1], args[2]),
    aten.baddbmm.default: lambda args, out: _product(args[1], args[2]),
    aten.addbmm.default: lambda args, out: _product(args[1], args[2]),
    aten._euclidean_dist.default: lambda args, out: _product(args[0], args[1].mT),
    aten.convolution.default: _convolution,
    aten.convolution_backward.default: _convolution_backward,
}
if hasattr(aten, "_grouped_mm"):  # of experts, each with rows of its own
    FLOPS[aten._grouped_mm.default] = lambda args, out: _grouped_product(args[0], args[1])


def flops_of(func: Any, args: Sequence[Any], out: Any) -> int:
    """FLOPs of an operation, from its operands; a multiply-add is two."""
    count = FLOPS.get(func)
    return count(args, out) if count else 0


def copied_first(name: str, args: Sequence[Any]) -> list[Tensor]:
    """The operands that an operation has to copy to put them in order.

    Convolutions of images take channels last as well; those of sequences do not. A copy that keeps the order, as of
    rows with gaps between them, is little work.
    """
    operands = args[: OPERANDS_IN_ORDER[name]]
    source = operands[-1]  # the input, whose order a gradient has to have, too
    channels_last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(source.dim())
    of_images = name.startswith("convolution") and channels_last is not None and not source.is_contiguous()
    if of_images and source.is_contiguous(memory_format=channels_last):
        return [t for t in operands if not t.is_contiguous(memory_format=channels_last)]
    return [t for t in operands if not _in_order(t)]


def _in_order(tensor: Tensor) -> bool:
    steps = [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]
    return all(a >= b for a, b in pairwise(steps))


def visits(name: str, args: Sequence[Any], out: Any) -> float:
    """About how often an operation that no kind knows visits each of its values."""
    first = args[0] if args else None
    if not isinstance(first, Tensor) or first.dim() < 2:
        return 1.0
    if name.startswith("_fft"):
        return max(1.0, log2(prod(first.shape[d] for d in args[1])) / 2)  # each pass joins four values
    if name.startswith(("_linalg", "linalg_", "cholesky")):
        return float(max(1, first.shape[-1]))
    if name == "_cdist_forward":
        return float(max(1, first.shape[-1]))
    return 1.0


class Ownership:
    """Which parameters an operand comes from, through views, `detach` and computations on parameters alone."""

    def __init__(self, model: nn.Module) -> None:
        self.names: dict[nn.Parameter, str] = {}
        self._by_storage: dict[int, nn.Parameter | None] = {}
        self._alive: list[Tensor] = []
        self.counters = {id(b) for n, b in model.named_buffers() if n.endswith("num_batches_tracked")}
        self._buffers = {_storage(b) for b in model.buffers()}
        for name, parameter in model.named_parameters():
            self.names[parameter] = name
            self._by_storage[_storage(parameter)] = parameter

    def owns(self, value: Any) -> bool:
        return isinstance(value, Tensor) and _storage(value) in self._by_storage

    def parameters(self, tensors: Sequence[Tensor]) -> list[nn.Parameter]:
        """The parameters that are operands themselves, each once."""
        found = (self._by_storage.get(_storage(tensor)) for tensor in tensors)
        return list(dict.fromkeys(p for p in found if p is not None))

    def holds_gradient(self, tensors: Sequence[Tensor]) -> bool:
        """Whether an operand is a parameter's gradient, as it is at the moment."""
        storages = set(map(_storage, tensors))
        return any(p.grad is not None and _storage(p.grad) in storages for p in self.names)

    def derive(self, tensors: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        """What is computed from parameters (and buffers) alone is still no activation."""
        storages = set(map(_storage, tensors)) - self._buffers
        if storages and storages <= self._by_storage.keys():
            for output in outputs:
                self._by_storage.setdefault(_storage(output), None)
                self._alive.append(output)


def _storage(tensor: Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return 0


def reached_nodes(loss: Tensor) -> dict[int, bool]:
    """Sequence numbers of the autograd nodes that run in backward; True for those of a torch.autograd.Function."""
    numbers: dict[int, bool] = {}
    seen: set[Any] = set()
    waiting: list[Any] = [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        numbers[node._sequence_nr()] = isinstance(node, BackwardCFunction)
        waiting += [following for following, _ in node.next_functions]
    return numbers
