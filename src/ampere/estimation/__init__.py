"""From measurements to estimates: normalization, the fitted surrogate, and estimates of networks."""
