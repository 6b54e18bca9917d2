"""From measurements to estimates: normalization, the fitted surrogate, and what it says of a network."""
