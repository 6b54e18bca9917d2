"""What class an aten operation is of. What no class knows is `UNKNOWN`, and is never passed over.

free      views and bookkeeping: nothing is computed
product   matrix products, convolutions: a layer begins
norm      normalisations: a layer begins
lookup    embeddings: a layer begins if the table is a parameter
the rest  the classes of a layer's tail
"""

from typing import Any

import torch

FREE, PRODUCT, NORM, LOOKUP, UNKNOWN = "free", "product", "norm", "lookup", "unknown"

_NAMES = {
    FREE: """_unsafe_view lift_fresh empty empty_like empty_strided empty_permuted new_empty new_empty_strided
        _local_scalar_dense sym_size sym_stride sym_numel sym_storage_offset is_same_size set resize _assert_async
        _assert_scalar _assert_tensor_metadata _functional_assert_async dim size stride numel is_contiguous is_pinned
        item _has_same_storage_numel _version unsafe_split unsafe_split_with_sizes unsafe_chunk prim::device
        _nested_tensor_from_mask_left_aligned is_complex is_nonzero equal _print""",
    PRODUCT: "convolution mm addmm bmm baddbmm",
    NORM: """native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_functional
        _batch_norm_with_update _batch_norm_no_update native_layer_norm
        native_group_norm _fused_rms_norm""",
    LOOKUP: "embedding",
    "dropout": """native_dropout dropout bernoulli rand rand_like randn randn_like randint randint_like uniform
        normal exponential geometric""",
    "elementwise": """glu hardswish log_sigmoid_forward _prelu_kernel rrelu_with_noise
        rrelu_with_noise_functional abs gelu mish threshold masked_fill eq ne lt le gt ge __and__ __or__ __ior__
        __iand__ floor_divide complex polar _masked_scale heaviside zero fill tril triu lift isin
        _weight_norm_interface _conj_physical addr _conj""",
    "pool": """max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d
        _adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d
        max_unpool2d max_unpool3d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d
        upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d _upsample_nearest_exact1d
        _upsample_nearest_exact2d _upsample_nearest_exact3d _upsample_bilinear2d_aa _upsample_bicubic2d_aa
        grid_sampler_2d grid_sampler_3d mkldnn_max_pool2d mkldnn_adaptive_avg_pool2d""",
    "reduce": """sum mean prod var var_mean std std_mean amax amin aminmax argmax argmin max min any all norm
        linalg_vector_norm logsumexp nansum count_nonzero _softmax _log_softmax _safe_softmax masked_softmax
        nll_loss_forward nll_loss2d_forward mse_loss smooth_l1_loss huber_loss binary_cross_entropy
        binary_cross_entropy_with_logits soft_margin_loss multi_margin_loss multilabel_margin_loss_forward trace mv
        addmv dot vdot""",
    "copy": """cat stack clone copy _to_copy repeat repeat_interleave index index_select gather take index_put
        _unsafe_index _unsafe_index_put index_copy index_fill index_add scatter scatter_add constant_pad_nd
        reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d roll
        flip rot90 pixel_shuffle pixel_unshuffle channel_shuffle im2col col2im ones ones_like zeros zeros_like full
        full_like new_ones new_zeros new_full scalar_tensor arange linspace eye slice_scatter select_scatter
        diagonal_scatter as_strided_scatter diag_embed tril_indices triu_indices block_diag one_hot _chunk_cat
        _reshape_copy view_copy expand_copy permute_copy select_copy slice_copy unfold_copy split_with_sizes_copy
        affine_grid_generator masked_scatter _pin_memory contiguous""",
}
_CLASSES = {name: group for group, names in _NAMES.items() for name in names.split()}
_known: "dict[Any, tuple[str, str]]" = {}


def op_class(func: Any) -> "tuple[str, str]":
    """Class and plain name (`add` for `aten.add_.Tensor`) of an operation."""
    known = _known.get(func)
    if known is None:
        known = _known[func] = _classify(func)
    return known


def _classify(func: Any) -> "tuple[str, str]":
    namespace, _, name = func._schema.name.partition("::")
    if namespace != "aten":
        return (FREE if namespace in ("prim", "profiler") else UNKNOWN), f"{namespace}.{name}"
    plain = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    if plain in _CLASSES:
        return _CLASSES[plain], plain
    if func.is_view:
        return FREE, plain
    if torch.Tag.pointwise in func.tags:
        return "elementwise", plain
    return ("reduce" if torch.Tag.reduction in func.tags else UNKNOWN), plain
