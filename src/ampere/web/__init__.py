"""The explorer and its HTTP interface: estimates from stored profiles, while a slider moves. Nothing is trained."""
