"""What is looked at, one topic a file; each has a table of CHECKS."""
