"""Checks of convergence, identifiability and prediction, as plain records."""
