"""Other people's frameworks around estimates and budgets, one file each; a file imports its framework."""
