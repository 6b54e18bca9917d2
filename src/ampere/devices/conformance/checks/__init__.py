"""The checks of a worker, one topic in each file with its table of CHECKS."""
