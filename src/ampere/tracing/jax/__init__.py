"""A flax model becomes the Network that the same model in PyTorch would: from the equations of its jaxpr."""
