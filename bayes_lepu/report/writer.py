"""From a fit to one HTML file."""

import base64
import hashlib
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bayes_lepu.report import sections
from bayes_lepu.report.figures import BOTTOM, LEFT, RIGHT, TOP
from bayes_lepu.report.sections import Page, first_rows
from bayes_lepu.result.numbers_in_words import say_count
from bayes_lepu.result.summaries import interval_level
from bayes_lepu.runtime.files import replace_file
from bayes_lepu.runtime.interruption import stops_at_once

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit


@stops_at_once
def write_report(
    fit: "Fit", path: Path, *, title: str | None = None, group_by: tuple[str, ...] = ()
) -> Path:
    """Write the report of a fit (see `Fit.report`)."""
    return replace_file(path, render(Page(fit, group_by), title or _title(fit)).encode())


def render(page: Page, title: str) -> str:
    """The page as text."""
    found = [made for section in sections.SECTIONS if (made := section(page)) is not None]
    environment = Environment(
        loader=PackageLoader("bayes_lepu", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = _file("script.js")
    return environment.get_template("template.html").render(
        title=title,
        page=page,
        first=first_rows(page),
        facts_line=_facts(page.fit),
        ci=f"{interval_level():.0%}",
        frame={"x": LEFT, "y": TOP, "width": RIGHT - LEFT, "height": BOTTOM - TOP},
        sections=found,
        style=Markup(_file("style.css")),
        script=Markup(script),
        script_hash=_hash(script),
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _title(fit: "Fit") -> str:
    """How many rows there are, and the name of the labels where they have one."""
    who = f"“{fit.options.l}”" if isinstance(fit.options.l, str) else "the labels"
    return f"{say_count(fit.data.n)} rows: what {who} missed"


def _facts(fit: "Fit") -> str:
    """The table and the model in a line."""
    d = fit.data
    audited = f", {say_count(d.n_audited)} checked" if d.n_audited else ""
    return (
        f"{say_count(d.n)} rows, {say_count(len(d.terms))} columns, "
        f"{say_count(int(d.l.sum()))} labelled positive{audited}; model {fit.spec.name}, "
        f"method {fit.method}"
    )


def _file(name: str) -> str:
    return files("bayes_lepu.report").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """The script's digest: the page's policy runs this script and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
