"""Which factor is the classifier, by what authority, and which other answers are close."""

import numpy as np

from bayes_lepu.diagnostics import thresholds
from bayes_lepu.diagnostics.records import Check, Status
from bayes_lepu.diagnostics.subject import Peak, Subject
from bayes_lepu.diagnostics.thresholds import grade, in_words
from bayes_lepu.inference.orientation import sigma_norm

SETTLE = (
    "Settle it with a column that enters only one factor (selection_features=, class_features=), "
    "with audited rows (y=), or with priors you can defend."
)


def exchange_gap(subject: Subject) -> float:
    """Nats by which the likelihood prefers this naming of the factors to the other.

    Infinite where no maximum with exchanged factors was found; 0 where the likelihood is symmetric.
    """
    if subject.symmetric:
        return 0.0
    return _gap(subject, "exchanged")


def other_peaks(subject: Subject) -> list[tuple[Peak, float]]:
    """Other answers that are no exchange, with the nats they are worse by."""
    first = subject.peaks[0]
    return [(p, first.logp - p.logp) for p in subject.peaks[1:] if p.name == "other"]


def _gap(subject: Subject, name: str) -> float:
    first = subject.peaks[0]
    gaps = [first.logp - p.logp for p in subject.peaks[1:] if p.name == name]
    return min(gaps, default=np.inf)


def check_orientation(subject: Subject) -> list[Check]:
    """By assumption, by prior, or by the data."""
    fit = subject.fit
    if not fit.spec.has_selection:
        text = "s does not depend on x in this model, so t is the only factor with slopes."
        return [Check("orientation", "not applicable", None, "", text)]
    if subject.symmetric:
        return [_by_assumption(subject), _order(subject)]
    gap = exchange_gap(subject)
    likelihood = grade(gap, thresholds.MODE_GAP)
    probability = fit.orientation.probability
    if probability is None:
        return [_by_gap(gap, likelihood, fit.orientation.settled_by)]
    return [_by_probability(probability, gap, likelihood)]


def _by_assumption(subject: Subject) -> Check:
    fit = subject.fit
    rule = fit.orientation.rule
    how = (
        "the priors (no rule was asked for)"
        if rule == "none"
        else f"the rule that t has the larger {rule}"
    )
    disagree = "" if fit.orientation.rules_agree else " The energy rule says the opposite."
    exchanged = float(subject.point.swap().t(subject.data.X).mean())
    return Check(
        "orientation",
        "failed",
        0.0,
        f"nats of the data for this naming, {in_words(thresholds.MODE_GAP)}",
        "By assumption only: exchanging t and s leaves the likelihood exactly as it is, so the "
        f"data say nothing about which is which; {how} decides. Exchanged, π would be "
        f"{exchanged:.2f}.{disagree}",
        SETTLE,
    )


def _order(subject: Subject) -> Check:
    """How firmly the order of the two norms stands, after relabelling to one side."""
    if subject.fit.is_point:
        if not subject.small:
            return Check("order stability", "not applicable", None, "", "Too many coordinates.")
        figure = _order_probability(subject)
    else:
        draws, X = subject.pivoted.take_flat(), subject.data.X
        larger = sigma_norm(draws.a, X) > sigma_norm(draws.alpha, X)
        figure = float(larger.mean())
    firm = max(figure, 1 - figure)
    return Check(
        "order stability",
        grade(firm, thresholds.ORIENTATION),
        firm,
        in_words(thresholds.ORIENTATION),
        f"t's predictor has the larger sd with probability {figure:.3f}.",
        ""
        if firm >= thresholds.ORIENTATION[1]
        else "The rule itself is undecided: report both namings.",
    )


def _order_probability(subject: Subject) -> float:
    """P(|a| > |α|) under the Gaussian approximation at the estimate."""
    local, blocks = subject.local, subject.fit.density.blocks
    rng = np.random.default_rng(0)
    z = rng.multivariate_normal(local.z, local.covariance, 2000)
    X, data = subject.data.X, subject.data
    a, alpha = np.zeros((2000, data.p)), np.zeros((2000, data.p))
    a[:, data.class_mask], alpha[:, data.selection_mask] = z[:, blocks.a], z[:, blocks.alpha]
    return float(np.mean(sigma_norm(a, X) > sigma_norm(alpha, X)))


def _by_gap(gap: float, status: Status, settled_by: str) -> Check:
    by = {
        "columns": "the columns given to each factor",
        "audited rows": "the audited rows",
        "density": "the likelihood",
    }.get(settled_by, settled_by)
    found = (
        "no maximum with exchanged factors was found"
        if np.isinf(gap)
        else f"the best answer with exchanged factors is {gap:.1f} nats worse"
    )
    return Check(
        "orientation",
        status,
        gap,
        f"nats to the exchanged answer, {in_words(thresholds.MODE_GAP)}",
        f"Settled by {by}: {found}." if status == "passed" else f"Not settled by {by}: {found}.",
        "" if status == "passed" else SETTLE,
    )


def _by_probability(probability: float, gap: float, likelihood: Status) -> Check:
    status = grade(probability, thresholds.ORIENTATION)
    text = (
        f"Posterior probability of this naming {probability:.3f}; the likelihood alone prefers it "
        f"by {gap:.1f} nats."
    )
    if np.isinf(gap):
        text = (
            f"Posterior probability of this naming {probability:.3f}; no maximum of the likelihood "
            "with exchanged factors was found."
        )
    elif status == "passed" and likelihood != "passed":
        status = likelihood
        text += " The priors decide, not the data."
    return Check(
        "orientation",
        status,
        probability,
        f"{in_words(thresholds.ORIENTATION)}, and {thresholds.MODE_GAP[0]:g} nats of it from the "
        "likelihood",
        text,
        "" if status == "passed" else SETTLE,
    )


def check_modes(subject: Subject) -> list[Check]:
    """Other maxima that say something else about t, exchanges set aside."""
    if not subject.fit.spec.has_selection:
        return []
    others = sorted(other_peaks(subject), key=lambda pair: pair[1])
    if not others:
        return [
            Check(
                "modes",
                "passed",
                np.inf,
                f"nats, {in_words(thresholds.MODE_GAP)}",
                "No other maximum says anything different about t, exchanges set aside.",
            )
        ]
    peak, gap = others[0]
    status = grade(gap, thresholds.MODE_GAP)
    X = subject.weak.data.X
    own, pi = (float(p.point.t(X).mean()) for p in (subject.peaks[0], peak))
    return [
        Check(
            "modes",
            status,
            gap,
            f"nats, {in_words(thresholds.MODE_GAP)}",
            f"The next materially different maximum is {gap:.1f} nats worse, with π {pi:.2f} "
            f"instead of {own:.2f}.",
            "" if status == "passed" else "Report both answers (fit.mode_table()), or " + SETTLE,
        )
    ]
