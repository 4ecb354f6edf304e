r"""Whether the labels agree with the model, with audited classes and with external figures.

Label rates by score check h only. A model that passes can still leave t and s unidentified. A model
that fails has the wrong h, so its t and s cannot be trusted.

An external figure p̂ ± e of π (or c) is one more observation. The contradiction between it and the
labels is measured by the likelihood ratio of the best fit without it to the best fit with it,

.. math:: \Delta = \max_\theta \ell(\theta)
    - \max_\theta \{\ell(\theta) - \tfrac12 (\hat p - \pi(\theta))^2 / e^2\}

under the weak density (for several annotators under the fit's own density, because it has the
pooling). If figure and labels agree, 2Δ follows a χ² with one degree of freedom.
"""

import warnings
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.engines.pooling import known_scales
from bayes_lepu.errors import OWN_CODE, IdentifiabilityWarning
from bayes_lepu.links import Array, RowKind
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.result.numbers_in_words import share
from bayes_lepu.result.summaries import mean_by_row
from bayes_lepu.verdict.records import LIKELIHOOD_DROP, Aspect, Check, graded, passed_if

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit
    from bayes_lepu.verdict.evidence import Evidence

DRAWS = 500  # a posterior mean over so many has a standard error of a twentieth of the sd
MAX_Z = 3.0  # exceeded by the largest of ten bins by chance in one fit of forty


def scores(draws: Parameters, data: PUData) -> tuple[Array, Array]:
    """Label probability and label of every row; with several annotators, of one of them per row.

    The labels of a row depend on its class, so two of them would not be independent.
    """
    some = draws.take(slice(None, None, max(1, draws.b.size // DRAWS)))
    data = data.as_counted(20_000)  # with more rows even a tiny departure from h is significant
    X, labels, shown = data.X, data.labels, data.shown
    if data.n_annotators == 1:
        return mean_by_row(some, Parameters.h, X), labels[:, 0].astype(float)

    def of(j: int) -> Array:
        return mean_by_row(some, lambda draws, rows: draws.h(rows)[..., j, :], X)

    h, seen = np.column_stack([of(j) for j in range(labels.shape[1])]), shown.any(axis=1)
    chosen = np.argmax(shown * np.random.default_rng(0).random(shown.shape), axis=1)[seen]
    return h[seen, chosen], labels[seen, chosen].astype(float)


def label_rates(h: Array, l: Array) -> pd.DataFrame:
    """Observed and expected label rate by tenths of the score h, with the standard score."""
    bins = min(10, h.size)
    bin_of = np.minimum((np.argsort(np.argsort(h)) * bins) // h.size, bins - 1)
    count = np.bincount(bin_of, minlength=bins)
    expected, observed = (np.bincount(bin_of, v, minlength=bins) / count for v in (h, l))
    sd = np.sqrt(np.bincount(bin_of, h * (1 - h), minlength=bins)) / count
    z = (observed - expected) / np.maximum(sd, 1e-12)
    columns = {"rows": count, "expected": expected, "observed": observed, "z": z}
    return pd.DataFrame(columns).rename_axis("bin")


def check_labels(evidence: "Evidence") -> list[Check]:
    """Check of the label rates by tenths of the score h."""
    draws, data = evidence.fit.draws, evidence.data
    if evidence.fit.is_point and not evidence.several:  # checks the form, not the penalty
        draws, data = evidence.peaks[0].point.take_flat(), evidence.weak.data
    table = label_rates(*scores(draws, data))
    worst = table["z"].abs().idxmax()
    z, observed, expected = (table.loc[worst, name] for name in ("z", "observed", "expected"))
    return [
        Check(
            "label rate by score",
            passed_if(abs(z) <= MAX_Z),
            float(abs(z)),
            f"at most {MAX_Z:.0f} standard errors in each of {len(table)} bins",
            f"Largest deviation in bin {worst}: {share(observed, 3)} observed, "
            f"{share(expected, 3)} expected ({z:+.1f} se).",
            "The form of h is wrong: add transformed columns, or another model.",
            (Aspect.LABELS,),
            "passed",
            "the labels do not follow the fitted h",
        )
    ]


def agreement(fit: "Fit", tails: tuple[float, float]) -> pd.DataFrame:
    """Rows labelled by both of each pair, and by exactly 0, 1, ..., J: observed and expected.

    The expected counts come from labels replicated from the posterior, or many times from a point
    estimate. Rows that nobody saw are left out.
    """
    data = fit.data.as_counted(50_000)  # with more rows even a tiny departure is significant
    shown, J, draws = data.shown, data.n_annotators, fit.draws
    rng = np.random.default_rng([fit.options.random_seed, 7])

    def counts(labels: Array) -> Array:
        both = (labels.T @ labels)[np.triu_indices(J, 1)]
        per_row = labels.sum(axis=1)[shown.any(axis=1)].astype(int)
        return np.concatenate([both, np.bincount(per_row, minlength=J + 1)])

    most = 500  # replicates: a p-value of .05 has a standard error of .01
    count = most if draws.b.size == 1 else min(most, draws.b.size)
    replicated = np.array([
        counts((draws.take(i).simulate(data.X, rng, shown=shown)[1] == 1).astype(float))
        for i in np.linspace(0, draws.b.size - 1, count).astype(int)
    ])  # fmt: skip
    names = [f"{one} and {other}" for one, other in combinations(data.annotators, 2)]
    names += ["nobody"] + [f"exactly {k}" for k in range(1, J + 1)]
    table = pd.DataFrame(index=pd.Index(names, name="rows labelled by"))
    table["observed"] = counts(data.marked.astype(float))
    table["expected"] = replicated.mean(axis=0)
    table["lower"], table["upper"] = np.quantile(replicated, tails, axis=0)
    # A count that never varies is compared in units of one row.
    sd = np.maximum(replicated.std(axis=0, ddof=1), 0.5)
    table["z"] = (table["observed"] - table["expected"]) / sd
    return table.astype({"observed": int})


def check_knowledge(evidence: "Evidence") -> list[Check]:
    """Compare an external figure of π or c with the estimate from the labels alone."""
    data, fit = evidence.data, evidence.fit
    if data.is_closed or not evidence.small:
        return []
    if evidence.several:
        density = LogDensity(fit.spec, fit.data, known_scales(fit.priors))
        tops = [optimise(density, density.pack(fit.draws.take(0))).z]
    else:
        density, tops = evidence.weak, [peak.z for peak in evidence.peaks]
    unknown = replace(density.data, outside=np.full((2, 2), np.nan))
    free = LogDensity(density.spec, unknown, density.priors)
    given = max(tops, key=density.logp)
    alone = max((optimise(free, z) for z in tops), key=lambda o: o.logp)
    with_it, without = (_pi_and_c(free.unpack(z), unknown) for z in (given, alone.z))
    values, errors = data.outside.T
    known = ~np.isnan(values)
    misfit = 0.5 * float(np.sum(((values - with_it) / errors)[known] ** 2))
    gap = float(alone.logp) - float(free.logp(given)) + misfit
    words = " and ".join(
        f"{name} {values[i]:.3g} ± {errors[i]:.2g} from outside, {without[i]:.3g} by the labels"
        for i, name in enumerate(("class prior", "label frequency"))
        if known[i]
    )
    how: dict[str, Any] = {"bears_on": (Aspect.LEVEL,)}
    how["consequence"] = "the labels contradict the external figure"
    text, remedy = (
        f"{words[0].upper()}{words[1:]}.",
        "Check the external figure, or the form of ",
    )
    bounds = (LIKELIHOOD_DROP, 3.32)  # half the 95 and 99 % points of χ² with one degree of freedom
    found = graded("knowledge from outside", gap, bounds, text, remedy + "the model.", **how)
    if found.status != "passed":
        warnings.warn(
            f"The labels contradict the external figure: {words} ({gap:.1f} log-likelihood units "
            "apart). Check the figure, or the model.",
            IdentifiabilityWarning,
            skip_file_prefixes=OWN_CODE,
        )
    return [found]


def _pi_and_c(point: Parameters, data: PUData) -> Array:
    """π and c of a point; with several annotators c is their mean."""
    t, weights = point.t(data.X), data.weight
    pi = float(np.average(t, weights=weights))
    marked = float(np.mean(np.average(point.s(data.X) * t, axis=-1, weights=weights)))
    return np.array([pi, marked / max(pi, 1e-300)])


# Audits ---------------------------------------------------------------------------------------

LARGEST_Z = 2.5  # exceeded by chance in one fit of eighty
UNLIKE_Z = 3.5  # of two means: by chance in one fit of a thousand; audits by choice have 5 to 10
NOT_RANDOM = "random audits"


def check_audits(evidence: "Evidence") -> list[Check]:
    """Compare the audited classes with what the fit expects of them."""
    fit, data = evidence.fit, evidence.data
    known = np.isin(data.kind, (RowKind.MISSED, RowKind.NEGATIVE))
    if not known.any() or fit.spec.certain or evidence.several or data.is_sparse:
        return []
    found, unmarked = int(np.sum(data.kind == RowKind.MISSED)), data.l == 0
    m = mean_by_row(fit.draws, Parameters.missed, data.X[unmarked])
    audited, rest = known[unmarked], data.kind[unmarked] == RowKind.UNLABELLED
    expected, variance = float(m[audited].sum()), float(np.sum((m * (1 - m))[audited]))
    z = (found - expected) / max(np.sqrt(variance), 1e-12)
    checks = [
        Check(
            "audited rows",
            passed_if(abs(z) <= LARGEST_Z),
            z,
            f"within {LARGEST_Z:g} standard deviations",
            f"Of {int(known.sum())} audited unlabelled rows {found} are positive; this fit expects "
            f"{expected:.1f} ({z:+.1f} sd).",
            "The form of the model is wrong where these rows are. Try another one, or count the "
            "positives by rows audited at random: fit.audit_estimate().",
            (Aspect.LEVEL,),
            consequence="the audited rows contradict it",
        )
    ]
    if fit.options.audits == "random" and rest.sum() > 1:
        h = mean_by_row(fit.draws, Parameters.h, data.X[unmarked])
        spread = np.sqrt(1 / audited.sum() + 1 / rest.sum())
        apart = max(
            (float((v[audited].mean() - v[rest].mean()) / max(np.std(v) * spread, 1e-12))
             for v in (m, h)), key=abs
        )  # fmt: skip
        checks.append(
            Check(
                NOT_RANDOM,
                passed_if(abs(apart) <= UNLIKE_Z),
                apart,
                f"within {UNLIKE_Z:g} standard errors",
                "The audited rows are declared a random part of the unlabelled ones. Their mean "
                f"score differs from that of the other unlabelled rows by {apart:+.1f} standard "
                "errors.",
                'Pass audits="chosen" if they were picked for a reason, and audit rows drawn at '
                "random: fit.suggest_audit(50).",
                (Aspect.LEVEL,),
                consequence="the audited rows do not look like a random part of the unlabelled",
            )
        )
    return checks


def audits_alone(fit: "Fit") -> tuple[float, float]:
    r"""π by random audits alone and its standard error, which is infinite without enough audits.

    .. math:: \hat\pi = P(l=1) + P(l=0)\,\hat m, \qquad
        \mathrm{se} = P(l=0) \sqrt{\hat m (1-\hat m) / k}

    for k audited unlabelled rows, a share m of them positive. Where marks may be false, the same
    of the marked rows is added.
    """
    data, pi, squares = fit.data, 0.0, 0.0
    for marked in (0, 1):
        here = data.l == marked
        share = float(np.average(here, weights=data.weight))
        if marked and not fit.spec.false_marks:
            return pi + share, float(np.sqrt(squares))
        one, other = (float((here & (data.y == c)) @ data.weight) for c in (1, 0))
        if not (k := one + other):
            return np.nan, np.inf
        m = (one + 1) / (k + 2)
        pi, squares = pi + share * m, squares + share**2 * m * (1 - m) / k
    return pi, float(np.sqrt(squares))
