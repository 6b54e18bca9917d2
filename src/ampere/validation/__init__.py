"""Estimates held against real training of unseen networks, beside every baseline."""
