"""What the annotator responds to: propensity along the columns, guesses and lapses."""

from functools import partial

from bayes_lepu.models.spec import RATE_WORDS
from bayes_lepu.plots.annotator import MAX_PANELS, plot_propensity, top_features
from bayes_lepu.plots.answer import plot_prior_posterior
from bayes_lepu.report.figures import Picture, picture
from bayes_lepu.report.html_tables import Table, from_frame
from bayes_lepu.report.page import Page
from bayes_lepu.report.section import Section
from bayes_lepu.result.numbers_in_words import number

RATE_MEANING = {
    "gamma": "How often even the least visible positives are labelled.",
    "lambda": "How often even the most visible positives are missed.",
}


def annotator_section(page: Page) -> Section:
    """Propensity curves (bars for categories and flags), guesses and lapses."""
    fit = page.fit
    lead, reading = f"In this model {fit.spec.mechanism}.", ""
    several = fit.data.n_annotators > 1
    if several:
        lead += " Annotators are partially pooled; the curves are of the average one."
    pictures: list[Picture] = []
    if fit.spec.has_selection:
        if len(fit.data.terms) > MAX_PANELS:
            lead += (
                f" Of {len(fit.data.terms)} columns the {MAX_PANELS} with the largest effects are "
                "shown."
            )
        reading = (
            "Where orange is higher, positives are labelled more readily; blue is the class "
            "probability along the same column."
        )
        for name in top_features(fit):
            plot = partial(plot_propensity, fit, features=[name], show_class=True)
            pictures.append(picture(name, "", plot))
    facts: dict[str, str] = {}
    for name, drawn in fit.draws.rates(fit.spec.shape_rates).items():
        facts[RATE_WORDS[name]] = number(float(drawn.mean()))
        if not fit.is_point:
            plot = partial(plot_prior_posterior, fit, var_names=[name])
            title = RATE_WORDS[name].capitalize()
            pictures.append(picture(title, RATE_MEANING[name], plot))
    if fit.spec.false_marks and not fit.is_point:
        pictures.append(
            picture(
                "Rate of false marks ε",
                "How often a negative is marked: where colour lies on grey, the prior says it, not "
                "the data.",
                partial(plot_prior_posterior, fit, var_names=["epsilon"]),
            )
        )
    tables: tuple[tuple[str, Table], ...] = ()
    if several:
        people = fit.annotators().rename(columns={"differs_in": "differs in"})
        tables = (("Annotators", from_frame(people, index="annotator")),)
    return Section(
        "annotator",
        "The annotators" if several else "The annotator",
        lead,
        tables=tables,
        facts=facts,
        reading=reading,
        pictures=tuple(pictures),
    )
