"""A section of the report."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bayes_lepu.report.figures import Picture
from bayes_lepu.report.html_tables import Table

MAX_COLUMNS = 60  # of the user's, in any table of the page


@dataclass(frozen=True)
class Finding:
    """A sentence with its status, and what would help."""

    status: str
    style: str
    text: str
    remedy: str = ""


@dataclass(frozen=True)
class Group:
    """Findings that bear on one question; ``status`` is that of the worst."""

    question: str
    status: str
    style: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Section:
    """A heading with sentences, facts, pictures and tables below it.

    Attributes
    ----------
    key, title, lead : str
    facts : mapping
    reading : str
        How to read the pictures, said once for all of them.
    pictures : tuple of Picture
    groups : tuple of Group
    code : str
    tables, folded : tuples of (caption, Table)
        Tables to see, and tables to unfold.
    csv, file_name : str
        A file to download.
    """

    key: str
    title: str
    lead: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    reading: str = ""
    pictures: tuple[Picture, ...] = ()
    groups: tuple[Group, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    folded: tuple[tuple[str, Table], ...] = ()
    code: str = ""
    csv: str = ""
    file_name: str = ""
