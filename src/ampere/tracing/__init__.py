"""A model becomes a Network without training anything: PyTorch models here, flax models in `jax`."""
