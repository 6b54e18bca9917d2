"""How records look on a screen. Nothing is computed here that a program might want: that is in the records."""
