"""One experiment a file. A new file is found by itself."""
