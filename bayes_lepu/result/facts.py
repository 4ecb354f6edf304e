"""A fit at a glance: named facts in words that need no glossary, as text and as HTML."""

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.links import Array, RowKind
from bayes_lepu.result.numbers_in_words import worse
from bayes_lepu.result.summaries import describe_draws, interval_level

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

SETTLED_BY = {
    "columns": "the columns given to each factor",
    "learned class": "the learned columns: the class may bend, the annotator's s may not",
    "annotators": "what several annotators agree on",
    "audited rows": "the audited rows, under these priors",
    "priors": "the signs that the priors give the slopes",
}


def facts_as_text(headline: str, facts: Mapping[str, str]) -> str:
    """The headline and one line per fact."""
    return "\n".join([headline, *(f"  {name:<17}{fact}" for name, fact in facts.items())])


def facts_as_html(headline: str, facts: Mapping[str, str]) -> str:
    """The same as an HTML table."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(fact)}</td></tr>"
        for name, fact in facts.items()
    )
    return f"<div><b>{escape(headline)}</b><table>{rows}</table></div>"


def facts_of(fit: "Fit") -> dict[str, str]:
    """What a fit says of itself before anybody judges it."""
    d = fit.data
    facts = {
        "data": rows_in_words(d),
        "model": fit.spec.mechanism,
        "class": class_in_words(fit),
        "priors": ", ".join(f"{name} ~ {prior.short()}" for name, prior in fit.priors.items()),
    }
    if encoded := table_in_words(d):
        facts["table"] = encoded
    levels = fit.level_draws
    facts["class prior pi"] = estimate_in_words(levels["pi"])
    if d.n_annotators == 1:
        facts["label freq. c"] = estimate_in_words(levels["c"])
    else:
        means = zip(d.annotators, fit.c_by_annotator.mean(axis=0), strict=True)
        facts["label freq. c"] = ", ".join(f"{name} {c:.2f}" for name, c in means)
    if not fit.is_point:
        before = describe_draws(levels["prior of pi"])
        facts["class prior pi"] += f"; prior {before['lower']:.3f} to {before['upper']:.3f}"
    if d.n_annotators == 1:
        for name, values in fit.draws.rates(fit.spec.shape_rates).items():
            facts[name] = estimate_in_words(values)
    facts["orientation"] = orientation_sentence(fit)
    if fit.quality.words and not fit.is_point:
        facts["approximation"] = fit.quality.words
    return facts


def class_in_words(fit: "Fit") -> str:
    """Whether the class is straight in the columns or learned from them, and who said so."""
    learned, lead = fit.data.learned, None if fit.choice is None else fit.choice.bend
    if learned is None:
        told = "" if lead is None else f" (learned ones: {lead:+.0f} nats on held-out labels)"
        return f"straight lines in the columns{told}"
    by = " and ".join(name.removeprefix("score(").removesuffix(")") for name in learned.names)
    told = "" if lead is None else f", {lead:+.0f} nats on held-out labels"
    return f"learned from the columns by {by}{told}"


def estimate_in_words(draws: Array) -> str:
    """The mean of draws with their interval; of a point estimate the one value."""
    row = describe_draws(draws)
    if "lower" not in row:
        return f"{row['mean']:.3f}"
    interval = f"{interval_level():.0%} interval {row['lower']:.3f} to {row['upper']:.3f}"
    return f"{row['mean']:.3f}  ({interval})"


def table_in_words(data: PUData) -> str:
    """What was done to the table; nothing where it was taken as it is."""
    if not data.is_sparse:
        return data.encoding.summary()
    X: Any = data.X
    filled = f"sparse, {X.nnz / (data.n * data.p):.2g} of the cells filled"
    if (data.scale == 1).all():
        return filled
    return f"{filled}; columns divided by their largest values, not centred"


def orientation_sentence(fit: "Fit") -> str:
    """Which factor is t, and what says so."""
    o = fit.orientation
    chance = "" if o.probability is None else f" (posterior probability {o.probability:.3f})"
    from_priors = "" if o.probability is None else f" (under the priors: {o.probability:.3f})"
    if o.settled_by == "model" and fit.spec.has_selection:
        return "t and s have different forms, and are told apart by them"
    if o.settled_by == "model":
        return "s does not depend on x, so t is the only factor with slopes"
    if o.settled_by in SETTLED_BY:
        return f"named by {SETTLED_BY[o.settled_by]}{chance}"
    if o.settled_by == "rule":
        agree = "" if o.rules_agree else "; the energy rule says the opposite"
        return f"by assumption only: t is the factor with the larger {o.rule}{agree}" + from_priors
    swapped = [m.gap for m in fit.modes[1:] if m.role == "swapped"]
    if chance:
        return f"by the posterior density of the two orientations{chance}"
    gap = (
        f"the swapped mode is {worse(min(swapped), of='log-density units')}"
        if swapped
        else "no swapped mode found"
    )
    return f"by the posterior density: {gap}"


def rows_in_words(d: PUData) -> str:
    """How many rows, columns and labels there are."""
    twice, unseen = int((d.marked.sum(axis=1) > 1).sum()), int((~d.shown.any(axis=1)).sum())
    by = "labelled" if d.n_annotators == 1 else f"labelled by anybody, {twice} by two or more"
    labelled = int(d.kind_counts[RowKind.LABELLED] + d.kind_counts[RowKind.FALSE_MARK])
    text = f"{d.n_all} rows, {len(d.terms)} columns, {labelled} {by}, {d.n_audited} audited"
    text += f", {unseen} shown to nobody" if unseen else ""
    text += ", weighted" if d.weighted else ""
    return text + (f"; {d.n} rows at random in memory" if not d.in_memory else "")
