"""What a user hands in, as numbers with names: frames, arrays, categories, formulas."""
