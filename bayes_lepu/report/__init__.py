"""One self-contained HTML file about a fit, to look at and to send to colleagues."""

from bayes_lepu.report.writer import write_report

__all__ = ["write_report"]
