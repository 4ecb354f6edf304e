"""Priors: families and values, also by column and by term."""
