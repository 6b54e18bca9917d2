"""Models with fewer channels, whose training stays inside an energy budget."""
