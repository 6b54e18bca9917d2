"""The paper's case study: a classifier of images, pruned to half its energy in two ways, and all three trained."""
