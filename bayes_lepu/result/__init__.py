"""What a fit is made of: summaries, tree, file and the options of its call."""
