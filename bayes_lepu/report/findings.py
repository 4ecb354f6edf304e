"""Sections with pictures: the answer, the annotator, the labels, and what is identified."""

from functools import partial

import pandas as pd

from bayes_lepu.diagnostics.records import Identifiability
from bayes_lepu.plots.annotator import MAX_PANELS, plot_propensity, top_features
from bayes_lepu.plots.answer import plot_class_probability, plot_prior_posterior
from bayes_lepu.plots.naming import plot_modes, plot_orientation, plot_profile
from bayes_lepu.plots.reproduction import plot_calibration, plot_label_rate
from bayes_lepu.report.figures import Album, Picture
from bayes_lepu.report.section import Section
from bayes_lepu.report.tables import Cell, Table, from_frame, number, table
from bayes_lepu.result import FittedModel
from bayes_lepu.result.fit import orientation_sentence
from bayes_lepu.result.summaries import CI_PROB

LABEL_RATE_COLUMNS = 3


def answer_section(fit: FittedModel, prior: pd.DataFrame, album: Album) -> Section:
    """Class probabilities, class prior and label frequency (``prior``: of `class_prior`)."""
    words = {
        "pi": "class prior π = P(y=1)",
        "c": "label frequency c = P(l=1 | y=1)",
        "prior of pi": "π before the data",
        "prior of c": "c before the data",
    }
    frame = prior.rename(index=words)
    pictures = [
        album.picture(
            "Class probability of the rows",
            "Rows from least to most probably positive: the area below the blue curve is the class "
            "prior, the gap down to the green one are positives that went unlabelled.",
            partial(plot_class_probability, fit),
        )
    ]
    if not fit.is_point:
        for name, title in (("pi", "Class prior π"), ("c", "Label frequency c")):
            pictures.append(
                album.picture(
                    title,
                    "Grey is the prior, colour the posterior: the narrower against grey, the more "
                    "the data have said.",
                    partial(plot_prior_posterior, fit, var_names=[name]),
                )
            )
    lead = "How many rows are positive, which ones, and how many of the positives carry a label."
    tables = ((f"Posterior with {CI_PROB:.0%} intervals", from_frame(frame, index="quantity")),)
    return Section("answer", "The answer", lead, pictures=tuple(pictures), tables=tables)


def annotator_section(fit: FittedModel, album: Album) -> Section:
    """Propensity curves, guesses and lapses."""
    lead = f"In this model {fit.spec.mechanism}."
    pictures: list[Picture] = []
    if fit.spec.has_selection:
        names = top_features(fit)
        if fit.data.p > MAX_PANELS:
            lead += f" Of {fit.data.p} columns the {MAX_PANELS} with the largest slopes are shown."
        for name in names:
            pictures.append(
                album.picture(
                    name,
                    "Where the orange line rises, positives are labelled more readily; the blue "
                    "dashed line is the class probability.",
                    partial(plot_propensity, fit, features=[name], show_class=True),
                )
            )
    if fit.spec.n_weights == 2 and not fit.is_point:
        readings = {
            "gamma": ("Guess rate γ", "How often even the least visible positives are labelled."),
            "lambda": ("Lapse rate λ", "How often even the most visible positives are missed."),
        }
        for name, (title, reading) in readings.items():
            pictures.append(
                album.picture(title, reading, partial(plot_prior_posterior, fit, var_names=[name]))
            )
    facts = {}
    if fit.spec.n_weights == 2:
        facts = {
            "guess rate γ": number(float(fit.draws.gamma.mean())),
            "lapse rate λ": number(float(fit.draws.lam.mean())),
        }
    return Section("annotator", "The annotator", lead, facts=facts, pictures=tuple(pictures))


def labels_section(fit: FittedModel, album: Album, *, group_by: tuple[str, ...]) -> Section:
    """Does the model reproduce the labels."""
    pictures = [
        album.picture(
            "Label rate by score",
            "Green dots inside the grey bars: groups of rows carry as many labels as predicted.",
            partial(plot_label_rate, fit),
        ),
        album.picture(
            "Calibration of h",
            "Green within the grey band: a predicted label probability can be taken at its word.",
            partial(plot_calibration, fit),
        ),
    ]
    for name in group_by or tuple(top_features(fit, LABEL_RATE_COLUMNS)):
        pictures.append(
            album.picture(
                f"Label rate by {name}",
                "A run of dots on one side of their bars means that this column acts otherwise "
                "than a straight line in the log-odds.",
                partial(plot_label_rate, fit, by=name),
            )
        )
    lead = (
        "Only the labels can be checked against the data; a good fit of h = s·t does not by itself "
        "say that its two factors are right."
    )
    title = "Does the model reproduce the labels?"
    return Section("labels", title, lead, pictures=tuple(pictures))


def identifiability_section(fit: FittedModel, verdict: Identifiability, album: Album) -> Section:
    """The checks with their remedies, and where the naming of the factors comes from."""
    pictures = []
    if fit.spec.has_selection:
        pictures.append(
            album.picture(
                "Size of the two factors",
                "Dots below the diagonal: t is the steeper factor, as the paper assumes; a cloud "
                "across it leaves the naming open. The large dot is the best mode.",
                partial(plot_orientation, fit),
            )
        )
    pictures.append(
        album.picture(
            "Modes of the density",
            "Another dot above the dashed line (7 times less likely) with another π is a second "
            "answer.",
            partial(plot_modes, fit),
        )
    )
    if verdict.evidence is not None and verdict.evidence.profile is not None:
        pictures.append(
            album.picture(
                "Profile of the class prior",
                "What lies above the dashed line the likelihood alone cannot exclude; a flat top "
                "means that the level of t comes from elsewhere.",
                partial(plot_profile, fit),
            )
        )
    tables = [("Checks", checks_table(verdict))]
    if verdict.remedies:
        tables.append(("What would help, in figures", remedies_table(verdict)))
    tables.append(("Modes found by the search", modes_table(fit)))
    lead = (
        f"Which factor is the class: {orientation_sentence(fit)}. Differences of log likelihood "
        "are natural logarithms: 2 units make the data 7 times as likely, 5 units 150 times."
    )
    title = "What these data can and cannot identify"
    return Section("identifiability", title, lead, pictures=tuple(pictures), tables=tuple(tables))


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
    }
    return from_frame(fit.mode_table()[list(names)].rename(columns=names), index="mode")


def remedies_table(verdict: Identifiability) -> Table:
    """What one more piece of information would change, the most helpful first."""
    rows = [[r.text, r.sd_before, r.sd_after, r.gap_before, r.gap_after] for r in verdict.remedies]
    columns = (
        "information",
        "sd of π now",
        "sd of π then",
        "log-likelihood units for this naming now",
        "then",
    )
    return table(columns, rows)


def checks_table(verdict: Identifiability) -> Table:
    """The checks, each with its status, finding and remedy; what needs attention comes first."""
    order = {"failed": 0, "weak": 1, "passed": 2}
    styles = {"passed": "good", "weak": "fair", "failed": "bad"}
    rows = [
        [
            c.name,
            Cell(c.status, style=styles.get(c.status, "muted")),
            c.figure,
            c.threshold,
            c.text,
            c.remedy,
        ]
        for c in sorted(verdict.checks, key=lambda c: order.get(c.status, len(order)))
    ]
    columns = ("check", "status", "figure", "held against", "finding", "what would help")
    return table(columns, rows)
