"""What class an equation is of. What no class knows is `UNKNOWN`, and is never passed over.

A function that JAX itself gives a name to (relu, softmax, mean) is one operation, as it is in PyTorch.
"""

FREE, PRODUCT, LOOKUP, LOOP, UNKNOWN = "free", "product", "lookup", "loop", "unknown"

_PRIMITIVES = {
    FREE: """reshape squeeze expand_dims transpose broadcast_in_dim convert_element_type slice split iota copy_p
        stop_gradient sharding_constraint optimization_barrier bitcast_convert_type random_wrap random_unwrap
        random_fold_in random_clone copy dynamic_slice create_token pvary""",
    PRODUCT: "dot_general conv_general_dilated ragged_dot_general",
    LOOKUP: "gather",
    LOOP: "scan while cond",
    "elementwise": """add sub mul div rem neg sign abs max min pow integer_pow exp exp2 log log1p expm1 sqrt rsqrt cbrt
        tanh sin cos tan asin acos atan sinh cosh asinh acosh atanh atan2 erf erfc erf_inv lgamma digamma logistic
        floor ceil round clamp select_n eq ne lt le gt ge and or not xor is_finite square nextafter real imag conj
        complex shift_left shift_right_logical shift_right_arithmetic population_count add_any reduce_precision""",
    "dropout": "random_bits threefry2x32 random_seed rng_bit_generator rng_uniform random_split",
    "pool": "reduce_window reduce_window_max reduce_window_min reduce_window_sum select_and_scatter_add",
    "reduce": """reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or argmax argmin reduce
        cumsum cumprod cummax cummin cumlogsumexp""",
    "copy": "concatenate pad dynamic_update_slice scatter scatter_add rev sort top_k tie_in scatter-add",
}
_FUNCTIONS = {
    LOOKUP: "take",
    "elementwise": """relu relu6 gelu silu swish sigmoid hard_sigmoid hard_tanh hard_silu hard_swish softplus
        soft_sign elu celu selu leaky_relu log_sigmoid mish glu squareplus tanh clip where""",
    "dropout": "bernoulli uniform normal truncated_normal",
    "reduce": "softmax log_softmax logsumexp mean var std standardize",
}
PRIMITIVES = {name: group for group, names in _PRIMITIVES.items() for name in names.split()}
FUNCTIONS = {name: group for group, names in _FUNCTIONS.items() for name in names.split()}


def function_class(name: str) -> "str | None":
    """Of a function that JAX compiles by name; `_mean` is how it calls what users know as `mean`."""
    return FUNCTIONS.get(name.lstrip("_"))
