"""Convergence, identifiability and predictive checks, as plain records."""
