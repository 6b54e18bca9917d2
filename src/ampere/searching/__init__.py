"""Architectures inside an energy budget: screened by their estimates, the most promising ones trained."""
