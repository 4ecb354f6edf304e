"""Output of a fit: summaries, DataTree, file, and printed facts."""
