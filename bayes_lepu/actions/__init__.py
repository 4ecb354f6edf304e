"""What to do with a fit: count the missed positives, choose rows to review and rows to audit."""
