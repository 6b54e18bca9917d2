"""A model with fewer channels whose training costs what the user allows."""
