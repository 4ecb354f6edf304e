"""What the labels of several annotators can and cannot say: checks, level and verdict."""

from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.diagnostics import thresholds
from bayes_lepu.diagnostics.convergence import chains_agree, sampler_went_well
from bayes_lepu.diagnostics.levels import CI_PROB, interval
from bayes_lepu.diagnostics.records import Check, Identifiability
from bayes_lepu.diagnostics.thresholds import grade, graded, in_words
from bayes_lepu.inference.orientation import sigma_norm
from bayes_lepu.links import Array

if TYPE_CHECKING:
    from bayes_lepu.panel.answer import PanelFit

RECAPTURES = (50.0, 10.0)  # rows labelled by two or more: relative error of a count about 1/sqrt
MATERIAL = 0.05  # share of the evidence from which another mode matters
INDEPENDENCE = (0.05, 0.01)  # posterior predictive p
# A failure of any of these leaves the level of t open.
LEVEL_CHECKS = (
    "convergence",
    "overlap",
    "modes",
    "sd of pi",
    "contraction",
    "independence of annotators",
)
INDEPENDENT = "annotators independent given x and y"
SHARED_REMEDY = (
    "Show more rows to two annotators or more, audit some unlabelled rows (y=), or name a column "
    "that enters only one factor."
)
TOO_ALIKE = (
    "Some positives are harder for everybody than x tells, or annotators copied each other: π "
    "comes out too low. Add columns that make rows hard, or audit rows nobody labelled (y=)."
)
TOO_DIFFERENT = (
    "Annotators divide the positives among them, for example by skipping what others labelled: π "
    "comes out too high. Enter NaN for rows an annotator skipped, or audit rows (y=)."
)


def diagnose_panel(fit: "PanelFit") -> Identifiability:
    """Run the checks and form the verdict."""
    checks = [
        *_convergence(fit),
        _overlap(fit),
        _modes(fit),
        _ranking(fit),
        _sd(fit),
        _contraction(fit),
        _independence(fit),
    ]
    level = choose_level(fit, checks)
    return Identifiability(
        level=level,
        verdict=_verdict(fit, checks, level),
        carried_by=_carriers(fit, checks, level),
        checks=tuple(checks),
    )


def _convergence(fit: "PanelFit") -> list[Check]:
    draws = fit.parameters
    values: dict[str, Array] = {
        "pi": fit.pi_draws.reshape(draws.b.shape),
        "b": draws.b,
        "|a|": sigma_norm(draws.a, fit.data.table.X),
    }
    for j, name in enumerate(fit.annotator_names):
        values[f"beta[{name}]"] = draws.beta[..., j]
        if fit.form.has_selection:
            values[f"|alpha[{name}]|"] = sigma_norm(draws.alpha[..., j, :], fit.data.table.X)
    remedy = "The chains disagree. Take more draws (draws=, tune=) or use tighter priors (priors=)."
    return [chains_agree(values, "", remedy), sampler_went_well(fit.stats, draws.b.size)]


def _overlap(fit: "PanelFit") -> Check:
    data = fit.data
    shared = int((data.shown.sum(axis=1) > 1).sum())
    alone = [
        name
        for name, own in zip(data.annotators, data.labelled.T, strict=True)
        if not (own & (data.labelled.sum(axis=1) > 1)).any()
    ]
    status = grade(data.recaptures, RECAPTURES)
    text = (
        f"{shared} of {data.n} rows were shown to two annotators or more, {data.recaptures} were "
        "labelled by two or more."
    )
    if alone:
        text += f" {', '.join(alone)} shared no labelled row with anybody and is known by pooling."
        status = "weak" if status == "passed" else status
    if data.unseen:
        text += f" {data.unseen} rows were shown to nobody and count only where audited."
    return Check(
        "overlap",
        status,
        float(data.recaptures),
        in_words(RECAPTURES) + " rows labelled twice",
        text,
        "" if status == "passed" else SHARED_REMEDY,
    )


def _modes(fit: "PanelFit") -> Check:
    other = 1.0 - float(fit.settings["mode_weights"][0])
    good = other < MATERIAL
    return Check(
        "modes",
        "passed" if good else "failed",
        other,
        f"other modes hold less than {MATERIAL:.0%} of the evidence",
        f"Modes other than the sampled one hold {other:.1%} of the evidence (Gaussian at each).",
        "" if good else SHARED_REMEDY,
    )


def _ranking(fit: "PanelFit") -> Check:
    X, draws = fit.data.table.X, fit.draws.a
    covariance = np.cov(X, rowvar=False, ddof=0).reshape(X.shape[1], -1)
    center = draws.mean(axis=0)
    sizes = np.einsum("ij,jk,ik->i", draws, covariance, draws) * (center @ covariance @ center)
    figure = float(np.mean(draws @ covariance @ center / np.sqrt(np.maximum(sizes, 1e-300))))
    return graded(
        "ranking by t",
        figure,
        thresholds.RANKING,
        f"Rankings of the rows by t agree with their mean to a correlation of {figure:.3f}.",
        "Bring more rows, or use fewer columns.",
    )


def _sd(fit: "PanelFit") -> Check:
    sd = float(fit.pi_draws.std(ddof=1))
    text = f"π is known to ±{sd:.3f} (posterior)."
    return graded("sd of pi", sd, thresholds.SD_PI, text, SHARED_REMEDY)


def _contraction(fit: "PanelFit") -> Check:
    figure = 1 - float(np.var(fit.pi_draws) / np.var(fit.prior_pi_draws))
    text = f"The data removed {figure:.0%} of the prior variance of π."
    return graded("contraction", figure, thresholds.CONTRACTION, text, SHARED_REMEDY)


def _independence(fit: "PanelFit") -> Check:
    name = "independence of annotators"
    if (fit.data.shown.sum(axis=1) > 1).sum() == 0:
        return Check(name, "not applicable", None, "", "No row was shown to two annotators.")
    agreement = fit.replicated_agreement
    p, worst = agreement.p_value, int(np.abs(agreement.z).argmax())
    status = grade(p, INDEPENDENCE)
    text = (
        f"Largest deviation: rows labelled by {agreement.names[worst]}, "
        f"{agreement.observed[worst]:.0f} observed, {agreement.replicated[:, worst].mean():.0f} "
        f"expected ({agreement.z[worst]:+.1f} sd; p = {p:.3f} over all counts)."
    )
    if len(fit.annotator_names) == 2:
        text += " Two annotators alone can hardly contradict their independence."
    return Check(
        name,
        status,
        p,
        f"p {in_words(INDEPENDENCE)}",
        text,
        "" if status == "passed" else (TOO_ALIKE if agreement.alike else TOO_DIFFERENT),
    )


def choose_level(fit: "PanelFit", checks: list[Check]) -> int:
    """The best level that no check forbids."""
    status = {c.name: c.status for c in checks}
    if status["ranking by t"] == "failed":
        return 4
    exchangeable = fit.form.has_selection and fit.data.table.swap_symmetric
    if exchangeable and (status["overlap"] == "failed" or status["modes"] == "failed"):
        return 3
    return 2 if any(status[name] == "failed" for name in LEVEL_CHECKS) else 1


def _verdict(fit: "PanelFit", checks: list[Check], level: int) -> str:
    by_name = {c.name: c for c in checks}
    low, high = interval(fit.pi_draws)
    prior_low, prior_high = interval(fit.prior_pi_draws)
    pi = (
        f"class prior {fit.pi_draws.mean():.2f} (at {CI_PROB:.0%}: posterior {low:.2f} to "
        f"{high:.2f}, prior {prior_low:.2f} to {prior_high:.2f})"
    )
    if level == 4:
        return "Only the labels are described: not even the ranking by t is determined."
    if level == 3:
        return (
            "Only the unordered pair {t, s} is identified: too few rows were labelled by two "
            f"annotators to tell the class from what annotators have in common; {pi}."
        )
    if level == 2:
        reason = _reason(by_name, alike=fit.replicated_agreement.alike)
        return f"The ranking by t is separable, its level is not: {pi}; {reason}."
    return (
        "t and every annotator's s are separable from these data, if annotators label "
        f"independently given x and the class: {pi}."
    )


def _reason(by_name: dict[str, Check], *, alike: bool) -> str:
    if by_name["independence of annotators"].status == "failed":
        side = (
            "agree more than independent ones would, so it is probably too low (positives that "
            "are hard for everybody)"
            if alike
            else "agree less than independent ones would, so it is probably too high"
        )
        return f"the annotators {side}"
    if by_name["overlap"].status == "failed":
        return "too few rows were labelled by two annotators"
    if by_name["convergence"].status == "failed":
        return "the chains disagree"
    return "the labels leave it too wide"


def _carriers(fit: "PanelFit", checks: list[Check], level: int) -> tuple[str, ...]:
    status = {c.name: c.status for c in checks}
    carriers = ["data"] if level < 4 else []
    carriers += [INDEPENDENT, "parametric form"]
    if status["contraction"] == "failed" or status["overlap"] == "failed" or level > 2:
        carriers.append("prior")
    if fit.form.name == "scar":
        carriers.append("assumption that every s_j is constant")
    return tuple(carriers)
