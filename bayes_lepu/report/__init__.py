"""One self-contained HTML file about a fit, to look at and to send to colleagues."""
