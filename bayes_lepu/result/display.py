"""A fit at a glance: a headline and named facts, as text and as a table for notebooks."""

from collections.abc import Mapping
from html import escape


def facts_as_text(headline: str, facts: Mapping[str, str]) -> str:
    """The headline and one line per fact."""
    return "\n".join([headline, *(f"  {name:<17}{fact}" for name, fact in facts.items())])


def facts_as_html(headline: str, facts: Mapping[str, str]) -> str:
    """The same as an HTML table."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(fact)}</td></tr>"
        for name, fact in facts.items()
    )
    return f"<div><b>{escape(headline)}</b><table>{rows}</table></div>"
