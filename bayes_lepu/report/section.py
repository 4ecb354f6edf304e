"""A section of the report."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bayes_lepu.report.figures import Picture
from bayes_lepu.report.tables import Table


@dataclass(frozen=True)
class Section:
    """A heading with sentences, facts, pictures and tables below it."""

    key: str
    title: str
    lead: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    pictures: tuple[Picture, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    code: str = ""
