"""Estimates and budgets in other frameworks, one file for each; a file imports its framework."""
