"""The report: one self-contained HTML file about a fit."""
