"""From a fit to one HTML file."""

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bayes_lepu.diagnostics.records import Identifiability
from bayes_lepu.files import replace_file
from bayes_lepu.interruption import stops_at_once
from bayes_lepu.report import content, findings
from bayes_lepu.report.figures import Album
from bayes_lepu.report.health import health_section
from bayes_lepu.report.missed import missed_rows
from bayes_lepu.report.rivals import comparison_section
from bayes_lepu.result import FittedModel


@stops_at_once
def write_report(
    fit: FittedModel,
    path: str | Path,
    *,
    identifiability: Identifiability,
    title: str | None = None,
    group_by: tuple[str, ...] = (),
    compare_with: Mapping[str, FittedModel] | None = None,
) -> Path:
    """Write the report of a fit to ``path``.

    Parameters
    ----------
    fit : Fit
    path : str or Path
        The HTML file to write.
    identifiability : Identifiability
        The verdict and its checks.
    title : str, optional
        Heading of the page.
    group_by : tuple of str
        Columns by which label rates are shown; by default the three that matter most.
    compare_with : mapping of str to Fit, optional
        Fits of the same rows to compare with; by default quick fits of naive and SCAR.

    Returns
    -------
    Path
        The file written.
    """
    path = Path(path)
    text = render(
        fit,
        identifiability=identifiability,
        title=title,
        group_by=group_by,
        compare_with=compare_with,
    )
    return replace_file(path, text.encode())


def render(
    fit: FittedModel,
    *,
    identifiability: Identifiability,
    title: str | None,
    group_by: tuple[str, ...],
    compare_with: Mapping[str, FittedModel] | None,
) -> str:
    """The page as text."""
    album, prior = Album(), fit.class_prior()
    before = [
        content.data_section(fit),
        findings.answer_section(fit, prior, album),
        findings.annotator_section(fit, album),
        findings.labels_section(fit, album, group_by=group_by),
        findings.identifiability_section(fit, identifiability, album),
        comparison_section(fit, identifiability, compare_with=compare_with),
        content.coefficients_section(fit),
    ]
    after = [health_section(fit), content.reproduce_section(fit)]
    environment = Environment(
        loader=PackageLoader("bayes_lepu", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = _file("script.js")
    return environment.get_template("template.html").render(
        title=title or f"What {fit.spec.name} learned from {fit.data.n} rows",
        head=content.headline(fit, identifiability, prior),
        before=before,
        missed=missed_rows(fit),
        after=after,
        style=Markup(_file("style.css")),
        script=Markup(script),
        script_hash=_hash(script),
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _file(name: str) -> str:
    return files("bayes_lepu.report").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """The script's digest: the page's policy runs this script and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
