"""What the annotator responds to: propensity along the columns, guesses and lapses."""

from functools import partial

from bayes_lepu.plots.annotator import MAX_PANELS, plot_propensity, top_features
from bayes_lepu.plots.answer import plot_prior_posterior
from bayes_lepu.report.figures import Picture
from bayes_lepu.report.html_tables import Table, from_frame, number
from bayes_lepu.report.page import Page
from bayes_lepu.report.section import Section

RATES = {
    "gamma": ("Guess rate γ", "How often even the least visible positives are labelled."),
    "lambda": ("Lapse rate λ", "How often even the most visible positives are missed."),
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
            pictures.append(page.album.picture(name, "", plot))
    facts = {}
    if fit.spec.n_rates == 2:
        facts = {
            "guess rate γ": number(float(fit.draws.gamma.mean())),
            "lapse rate λ": number(float(fit.draws.lam.mean())),
        }
        if not fit.is_point:
            for name, (title, words) in RATES.items():
                plot = partial(plot_prior_posterior, fit, var_names=[name])
                pictures.append(page.album.picture(title, words, plot))
    if fit.spec.false_marks and not fit.is_point:
        pictures.append(
            page.album.picture(
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
