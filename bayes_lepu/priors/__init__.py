"""Priors: families, values of them, and those of columns, terms and other libraries."""
