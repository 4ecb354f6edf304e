"""From a fit to what one does next: how many were missed, which rows to look at, which to audit."""
