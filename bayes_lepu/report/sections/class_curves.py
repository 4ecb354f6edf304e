"""Which rows are positive, how many in all, and how many of them carry a label."""

from functools import partial

import pandas as pd

from bayes_lepu.diagnostics.bounds import bound_class_prior
from bayes_lepu.plots.answer import plot_class_probability, plot_prior_posterior
from bayes_lepu.report.figures import picture
from bayes_lepu.report.html_tables import Table, from_frame
from bayes_lepu.report.page import Page
from bayes_lepu.report.section import Section
from bayes_lepu.result.summaries import interval_level

WORDS = {
    "pi": "class prior π = P(y=1), the share of positives",
    "c": "label frequency c = P(l=1 | y=1), the share of positives with a label",
    "prior of pi": "π before the data",
    "prior of c": "c before the data",
}
TITLES = {"pi": "Share of positives π", "c": "Share of them labelled c"}


def class_section(page: Page) -> Section:
    """Class probabilities, class prior and label frequency."""
    fit = page.fit
    frame = fit.class_prior()
    pictures = [
        picture(
            "Class probability of the rows",
            "Rows from least to most probably positive: the area below the blue curve is the share "
            "of positives, the gap down to the green one are positives that went unlabelled.",
            partial(plot_class_probability, fit),
        )
    ]
    reading = ""
    if not fit.is_point:
        reading = (
            "Grey is what was believed before the data, colour what is believed after: the "
            "narrower against grey, the more the data have said."
        )
        for name in frame.index.intersection(list(TITLES)):
            plot = partial(plot_prior_posterior, fit, var_names=[name])
            pictures.append(picture(TITLES[name], "", plot))
    lead = "How many rows are positive, which ones, and how many of the positives carry a label."
    level = f"{interval_level():.0%}"
    caption = "Point estimate" if fit.is_point else f"Posterior with {level} intervals"
    tables = ((caption, from_frame(frame.rename(index=WORDS), index="quantity")),)
    return Section(
        "answer",
        "The class",
        lead,
        reading=reading,
        pictures=tuple(pictures),
        tables=tables + weaker_assumptions(page),
    )


def weaker_assumptions(page: Page) -> tuple[tuple[str, Table], ...]:
    """The ends of π when less is assumed: other forms, then bounds that need no form at all."""
    if page.fit.data.n_annotators > 1:
        return ()
    ends = {}
    if page.verdict.pi_range is not None:
        ends["other forms that predict the labels as well"] = page.verdict.pi_range
    bounds = bound_class_prior(page.fit)[["lower", "upper"]]
    ends |= {str(name): tuple(row) for name, row in reversed([*bounds.T.items()])}
    frame = pd.DataFrame.from_dict(ends, orient="index", columns=["π at least", "π at most"])
    return (
        (
            "The share of positives when less is assumed",
            from_frame(frame.rename(index=WORDS), index="assumed"),
        ),
    )
