"""Choosing what to train, training it on a device, and keeping what was seen."""
