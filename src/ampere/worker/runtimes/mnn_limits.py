"""What MNN's Python interface can train, known without loading it. docs/MNN.md says how each gap shows itself."""

from ...network import Layer

KINDS = frozenset(
    (
        "conv",
        "conv_grouped",
        "conv_transposed",
        "linear",
        "matmul",
        "attention",
        "norm_batch",
        "norm_layer",
        "scale",
        "glue",
    )
)
DTYPES = ("float32",)
OPTIMIZERS = ("sgd", "momentum", "adam")


def mnn_limits(layer: Layer) -> str:
    """What it lacks of the kinds above; "" where nothing."""
    c = layer.config
    if layer.kind == "norm_batch" and not c.get("bias", True):
        return "no batch norm without bias"
    if not layer.kind.startswith("conv"):
        return ""
    if len(c["kernel"]) > 2:
        return "no convolution of 3 dimensions"
    if layer.kind == "conv_transposed":
        return "no output padding, no groups" if any(c["output_padding"]) or c["groups"] != 1 else ""
    depthwise = layer.kind == "conv_grouped" and c["groups"] == 0 and layer.channels_in == layer.channels_out
    return "" if depthwise or c["groups"] == 1 else "no groups but depthwise"
