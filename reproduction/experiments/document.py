"""A page of text and tables, as Markdown and as HTML.

Cells and sentences may hold ``**bold**`` and ``*italic*``; a table's index is its first column.
"""

import html
import re
from dataclasses import dataclass

import pandas as pd

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;"
    "color:#1b1b1b}table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}"
    "th,td{padding:.3rem .7rem;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}"
    "th:first-child,td:first-child{text-align:left}thead th{border-bottom:2px solid #888}"
    "@media(max-width:50rem){table{display:block;overflow-x:auto}}"
)


@dataclass(frozen=True, eq=False)
class Document:
    """A title and blocks: sentences and tables of strings."""

    title: str
    blocks: tuple[str | pd.DataFrame, ...]

    def markdown(self) -> str:
        """The page as GitHub-flavoured Markdown."""
        parts = [f"# {self.title}"]
        parts += [b if isinstance(b, str) else _markdown_table(b) for b in self.blocks]
        return "\n\n".join(parts) + "\n"

    def html(self) -> str:
        """The page as one self-contained HTML file."""
        parts = [
            f"<p>{_inline(b)}</p>" if isinstance(b, str) else _html_table(b) for b in self.blocks
        ]
        title = html.escape(self.title)
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{title}</title><style>{_STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n"
            + "\n".join(parts)
            + "\n</body></html>\n"
        )


def _markdown_table(table: pd.DataFrame) -> str:
    header = [str(table.index.name or ""), *map(str, table.columns)]
    rows = [[str(i), *map(str, row)] for i, row in zip(table.index, table.to_numpy(), strict=True)]
    rule = [":--", *["--:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows))


def _html_table(table: pd.DataFrame) -> str:
    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{_inline(c)}</{tag}>" for c in cells) + "</tr>"

    header = line([str(table.index.name or ""), *map(str, table.columns)], "th")
    rows = [
        line([str(i), *map(str, row)], "td")
        for i, row in zip(table.index, table.to_numpy(), strict=True)
    ]
    return f"<table><thead>{header}</thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody></table>"


def _inline(text: str) -> str:
    """Escaped text with bold and italics."""
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html.escape(text))
    return re.sub(r"\*(.+?)\*", r"<i>\1</i>", text)
