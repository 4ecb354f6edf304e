"""The printed description of a fit: facts by name, library versions, and the call."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from html import escape
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.factors import CURVES
from bayes_lepu.factors import REGISTRY as PROPENSITIES
from bayes_lepu.factors.curves import LOGISTIC_FACTOR
from bayes_lepu.links import Array, RowKind
from bayes_lepu.model import REGISTRY
from bayes_lepu.model.spec import RATE_WORDS, ModelSpec
from bayes_lepu.options import FitOptions
from bayes_lepu.result.numbers_in_words import worse
from bayes_lepu.result.summaries import describe_draws, interval_level

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

SETTLED_BY = {
    "columns": "the columns given to each factor",
    "learned class": "the learned columns: the class may be curved, the annotator may not",
    "annotators": "the agreement of several annotators",
    "audited rows": "the audited rows, under these priors",
    "priors": "the signs that the priors give the slopes",
}


POSITIVE, MARKED = "share positive", "of them marked"
MECHANISMS = {
    "naive": "every positive is marked",
    "scar": "every positive is marked with the same chance",
    "spm": "the chance that a positive is marked follows the columns",
    "psychm": "the chance that a positive is marked follows the columns, with guesses and lapses",
}


def facts_as_text(headline: str, facts: Mapping[str, str]) -> str:
    """The headline and one line per fact."""
    return "\n".join([headline, *(f"  {name:<17}{fact}" for name, fact in facts.items())])


def facts_as_html(headline: str, facts: Mapping[str, str]) -> str:
    """The headline and an HTML table with one row per fact."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(fact)}</td></tr>"
        for name, fact in facts.items()
    )
    return f"<div><b>{escape(headline)}</b><table>{rows}</table></div>"


def facts_of(fit: "Fit") -> dict[str, str]:
    """The printed facts of a fit without its verdict."""
    d = fit.data
    facts = {
        "data": rows_in_words(d),
        "model": model_in_words(fit.spec),
        "class": class_in_words(fit),
        "priors": ", ".join(f"{name} ~ {prior.short()}" for name, prior in fit.priors.items()),
    }
    if encoded := table_in_words(d):
        facts["table"] = encoded
    levels = fit.level_draws
    facts[POSITIVE] = estimate_in_words(levels["pi"])
    if d.n_annotators == 1:
        facts[MARKED] = estimate_in_words(levels["c"])
    else:
        means = zip(d.annotators, fit.c_by_annotator.mean(axis=0), strict=True)
        facts[MARKED] = ", ".join(f"{name} {c:.2f}" for name, c in means)
    if not fit.is_point:
        before = describe_draws(levels["prior of pi"])
        facts[POSITIVE] += f"; before the data {before['lower']:.3f} to {before['upper']:.3f}"
    if d.n_annotators == 1:
        for name, values in fit.draws.rates(fit.spec.shape_rates).items():
            facts[RATE_WORDS[name][:-2]] = estimate_in_words(values)  # without its symbol
    facts["orientation"] = orientation_sentence(fit)
    if fit.quality.words and not fit.is_point:
        facts["approximation"] = fit.quality.words
    return facts


def model_in_words(spec: ModelSpec) -> str:
    """How positives are marked, in words; for a propensity of the user's own, its formula."""
    found = f"{spec.name}: {MECHANISMS.get(spec.name, spec.propensity.formula)}"
    if spec.of_class is not LOGISTIC_FACTOR:
        found += f"; class {spec.of_class.name}"
    return found + ("; a negative can be marked too" if spec.false_marks else "")


def class_in_words(fit: "Fit") -> str:
    """Whether the class is linear in the columns or learned, and how much better this predicts."""
    learned, lead = fit.data.learned, None if fit.choice is None else fit.choice.bend
    if learned is None:
        gain = "" if lead is None else f" (learned ones: {lead:+.0f} nats on held-out labels)"
        return f"straight lines in the columns{gain}"
    by = " and ".join(name.removeprefix("score(").removesuffix(")") for name in learned.names)
    gain = "" if lead is None else f", {lead:+.0f} nats on held-out labels"
    return f"learned from the columns by {by}{gain}"


def estimate_in_words(draws: Array) -> str:
    """The mean of draws with their interval; for a point estimate the value alone."""
    row = describe_draws(draws)
    if "lower" not in row:
        return f"{row['mean']:.3f}"
    interval = f"{interval_level():.0%} interval {row['lower']:.3f} to {row['upper']:.3f}"
    return f"{row['mean']:.3f}  ({interval})"


def table_in_words(data: PUData) -> str:
    """How the table was encoded; empty if it was used unchanged."""
    if not data.is_sparse:
        return data.encoding.summary()
    X: Any = data.X
    filled = f"sparse, {X.nnz / (data.n * data.p):.2g} of the cells filled"
    if (data.scale == 1).all():
        return filled
    return f"{filled}; columns divided by their largest values, mostly empty ones not centred"


def orientation_sentence(fit: "Fit") -> str:
    """What determines which factor is the class t."""
    o = fit.orientation
    chance = "" if o.probability is None else f" (posterior probability {o.probability:.3f})"
    from_priors = "" if o.probability is None else f" (under the priors: {o.probability:.3f})"
    if o.settled_by == "model" and fit.spec.has_selection:
        return "class and annotator have different forms, which distinguishes them"
    if o.settled_by == "model":
        return (
            "the annotator does not follow the columns, so the class is the only factor that does"
        )
    if o.settled_by in SETTLED_BY:
        return f"determined by {SETTLED_BY[o.settled_by]}{chance}"
    if o.settled_by == "rule":
        return f"by assumption only: the class is the factor of larger {o.rule}{from_priors}"
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


# Where a fit comes from ------------------------------------------------------------------------

VERSIONED = ("bayes-lepu", "numpy", "numba", "scipy", "pandas", "pymc", "nutpie")


@dataclass(frozen=True)
class Provenance:
    """Library versions, date, sampler and duration of the computation of a fit."""

    versions: Mapping[str, str]  # of the libraries that affect the numbers
    created_at: str
    made_by: str = "fit"  # or "update", "from_trace"
    sampler: str | None = None  # the library that made the draws, if it was another one
    seconds: float | None = None  # duration of the sampling or search
    other_density: bool = False  # whether the draws come from another density than the model's

    @classmethod
    def now(cls, options: FitOptions, seconds: float | None) -> Self:
        """The provenance of a fit that has just been computed."""
        return cls(
            versions=dict(library_versions()),
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            sampler=None if seconds is None else options.sampler,
            seconds=seconds,
        )


@cache
def library_versions() -> dict[str, str]:
    """Versions of the libraries that affect the numbers (cached: reading them is slow)."""
    return {p: version(p) for p in VERSIONED}


NOT_PRINTED = {"l", "cores", "progressbar"}  # the first by position; the others change no number
OF_A_SAMPLER = {"method", "draws", "tune", "chains", "sampler"}  # a trace has been sampled already


def call_text(fit: "Fit") -> str:
    """Lines of Python that fit the same rows again, with the same seed and options.

    Rows are the variables ``X``, ``l``, ``y``, ``w`` (weights) and ``visits``, or names of columns
    of X. Factors of the user's own are the variables ``model`` and ``class_link``.
    """
    data, options, traced = fit.data, fit.options, fit.provenance.made_by == "from_trace"
    without = NOT_PRINTED | (OF_A_SAMPLER if traced else set())
    words = {k: repr(v) for k, v in options.given.items() if k not in without}
    if options.model not in {**REGISTRY, **PROPENSITIES}:
        words["model"] = "model"
    if options.class_link is not None and options.class_link not in CURVES:
        words["class_link"] = "class_link"
    if options.audits == "planned":  # a plan does not change the posterior
        del words["audits"]
    rows = ["trace"] * traced + ["X", "l" if options.l is None else repr(options.l)]
    if options.y is None and (options.audits or not np.isnan(data.y).all()):
        rows.append("y=y")
    if options.sample_weight is None and data.weighted:
        rows.append("sample_weight=w")
    if data.visit_names and options.visits is None:
        rows.append("visits=visits")
    arguments = ",\n    ".join([", ".join(rows), *(f"{k}={v}" for k, v in words.items())])
    function = "from_trace" if traced else "fit"
    return (
        "import bayes_lepu as lepu\nfrom bayes_lepu import Prior\n\n"
        f"fit = lepu.{function}(\n    {arguments},\n)\n"
    )
