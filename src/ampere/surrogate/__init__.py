"""Learning what layers cost from measurements of networks."""
