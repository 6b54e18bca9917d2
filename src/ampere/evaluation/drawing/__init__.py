"""One picture a file, of the experiment with the same name: records in, a drawn figure out."""
