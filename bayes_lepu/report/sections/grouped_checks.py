"""The checks, grouped by the question they bear on, and where the naming of the factors is from."""

from functools import partial

from bayes_lepu.diagnostics.records import Aspect, Check
from bayes_lepu.plots.two_namings import plot_modes, plot_orientation, plot_profile
from bayes_lepu.report.figures import Picture, picture
from bayes_lepu.report.html_tables import Cell, Table, from_frame, table
from bayes_lepu.report.page import Page
from bayes_lepu.report.section import Finding, Group, Section
from bayes_lepu.result import FittedModel
from bayes_lepu.result.facts import orientation_sentence

QUESTIONS = {
    Aspect.COMPUTATION: "Did the computation work?",
    Aspect.LABELS: "Does the model reproduce the labels?",
    Aspect.RANKING: "Can the rows be put in order?",
    Aspect.ORIENTATION: "Is the class told apart from the annotator's attention?",
    Aspect.LEVEL: "Is the total known?",
    Aspect.PRIOR: "Do the data speak, or the priors?",
}
STYLES = {"passed": "good", "weak": "fair", "failed": "bad"}
ORDER = ("failed", "weak", "not computed", "passed", "not applicable")


def checks_section(page: Page) -> Section:
    """The verdict in its own words, the checks behind it, and pictures of the naming."""
    fit, verdict = page.fit, page.verdict
    folded = [("All checks", checks_table(verdict.checks))]
    if any(r.helps for r in verdict.remedies):
        folded.append(("What would help, in figures", remedies_table(page)))
    folded.append(("Modes found by the search", modes_table(fit)))
    return Section(
        "checks",
        "What these data can and cannot say",
        f"Level {verdict.level} of 4: {verdict.verdict}",
        facts={
            "carried by": ", ".join(verdict.carried_by),
            "which factor is the class": orientation_sentence(fit),
            "log-likelihood units": "2 make the data 7 times as likely, 5 make them 150 times",
        },
        groups=tuple(grouped(verdict.checks)),
        pictures=tuple(_pictures(page)),
        folded=tuple(folded),
    )


def grouped(checks: tuple[Check, ...]) -> list[Group]:
    """Checks by the first question they bear on, with a sentence for each that is not passed."""
    groups = []
    for aspect, question in QUESTIONS.items():
        here = [c for c in checks if c.bears_on and c.bears_on[0] == aspect]
        asked = [c for c in here if c.status != "not applicable"]
        if not asked:
            continue
        asked.sort(key=lambda c: ORDER.index(c.status))
        worst = asked[0].status
        findings, said = [], set()
        for c in asked:
            if c.status in ("failed", "weak"):
                remedy = "" if c.remedy in said else c.remedy  # the same advice once
                findings.append(Finding(c.status, STYLES.get(c.status, "muted"), c.text, remedy))
                said.add(c.remedy)
        groups.append(Group(question, worst, STYLES.get(worst, "muted"), tuple(findings)))
    return groups


def _pictures(page: Page) -> list[Picture]:
    fit, pictures = page.fit, []
    if fit.spec.has_selection:
        pictures.append(
            picture(
                "Size of the two factors",
                "Dots below the diagonal: t is the steeper factor, as the paper assumes; a cloud "
                "across it leaves the naming open. The large dot is the best mode.",
                partial(plot_orientation, fit),
            )
        )
    if len(fit.modes) > 1:
        pictures.append(
            picture(
                "Modes of the density",
                "Another dot above the dashed line (7 times less likely) with another π is a "
                "second answer.",
                partial(plot_modes, fit),
            )
        )
    if page.verdict.evidence is not None and page.verdict.evidence.profile is not None:
        pictures.append(
            picture(
                "Profile of the class prior",
                "What lies above the dashed line the likelihood alone cannot exclude; a flat top "
                "means that the level of t comes from elsewhere.",
                partial(plot_profile, fit),
            )
        )
    return pictures


def modes_table(fit: FittedModel) -> Table:
    """The distinct modes in words a reader knows."""
    names = {
        "role": "role",
        "gap": "log density below the best",
        "hits": "starts that ended here",
        "pi": "π",
        "c": "c",
        "norm_a": "size of t",
        "norm_alpha": "size of s",
        "rms_t": "difference in t (RMS)",
        "artefact": "artefact",
    }
    return from_frame(fit.mode_table()[list(names)].rename(columns=names), index="mode")


def remedies_table(page: Page) -> Table:
    """What one more piece of information would change, the most helpful first."""
    offers = [r for r in page.verdict.remedies if r.helps]
    rows = [[r.text, r.call, r.sd_before, r.sd_after, r.gap_before, r.gap_after] for r in offers]
    columns = (
        "information",
        "how",
        "sd of π now",
        "sd of π then",
        "log-likelihood units for this naming now",
        "then",
    )
    return table(columns, rows)


def checks_table(checks: tuple[Check, ...]) -> Table:
    """The checks, each with its status, finding and remedy; what needs attention comes first."""
    rows = [
        [
            c.name,
            Cell(c.status, style=STYLES.get(c.status, "muted")),
            c.figure,
            c.threshold,
            c.text,
            c.remedy,
        ]
        for c in sorted(checks, key=lambda c: ORDER.index(c.status))
    ]
    columns = ("check", "status", "figure", "held against", "finding", "what would help")
    return table(columns, rows)
