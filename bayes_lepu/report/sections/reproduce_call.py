"""How to fit the same rows again: call, seed, priors and versions."""

import platform
from importlib.metadata import PackageNotFoundError, version

from bayes_lepu.report.html_tables import table
from bayes_lepu.report.page import Page
from bayes_lepu.report.section import Section

PACKAGES = ("bayes-lepu", "numpy", "scipy", "numba", "pandas", "nutpie", "pymc", "arviz")


def reproduce_section(page: Page) -> Section:
    """Versions, seed and call."""
    fit = page.fit
    versions = {p: _version(p) for p in PACKAGES} | dict(fit.provenance.versions)
    rows = [[name, v] for name, v in versions.items() if v]
    facts = {"random seed": str(fit.options.random_seed), "Python": platform.python_version()}
    return Section(
        "reproduce",
        "How to reproduce this",
        "The same call with the same seed and versions gives the same draws; priors are on the "
        "scale of standardised columns.",
        facts=facts,
        code=f'{fit.call}fit.report("report.html")',
        folded=(("Versions", table(("package", "version"), rows)),),
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
