"""The paper's experiments and ours: measured once, kept as records, and drawn."""
