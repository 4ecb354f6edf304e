"""What the labels of several annotators can and cannot say: checks, level and verdict."""

from dataclasses import replace

import numpy as np

from bayes_lepu.diagnostics import thresholds
from bayes_lepu.diagnostics.agreement import Agreement, compare_agreement
from bayes_lepu.diagnostics.convergence import (
    chains_agree,
    check_independent,
    check_optimum,
    sampler_went_well,
)
from bayes_lepu.diagnostics.evidence import Evidence
from bayes_lepu.diagnostics.forms import FormRange
from bayes_lepu.diagnostics.knowledge import check_false_marks, check_knowledge
from bayes_lepu.diagnostics.label_checks import (
    calibrate_labels,
    check_calibration,
    check_rates,
    label_rates,
    scores,
)
from bayes_lepu.diagnostics.levels import CI_PROB, interval
from bayes_lepu.diagnostics.panel_forms import AS_WELL, INDEPENDENT, Panel, panel_forms
from bayes_lepu.diagnostics.records import Aspect, Check, Identifiability
from bayes_lepu.diagnostics.subject import Subject
from bayes_lepu.diagnostics.thresholds import grade, graded, in_words, judged_on
from bayes_lepu.diagnostics.verdict import choose_level, reasons
from bayes_lepu.links import Array
from bayes_lepu.models.factors import sigma_norm
from bayes_lepu.result import FittedModel
from bayes_lepu.result.numbers_in_words import UNITS, share

RECAPTURES = (50.0, 10.0)  # rows labelled by two or more: relative error of a count about 1/sqrt
MATERIAL = 0.05  # share of the evidence from which another mode matters
INDEPENDENCE = (0.05, 0.01)  # posterior predictive p
WIDE = 1.96  # sd of π to either side of every form's own
CARRIER = "annotators independent given x and y"
SHARED_REMEDY = (
    "Show more rows to two annotators or more, audit some unlabelled rows (y=), or name a column "
    "that enters only one factor."
)
TOO_ALIKE = (
    "Some positives are harder for everybody than x tells, or annotators copied each other: π "
    "comes out too low. Add columns that make rows hard, or audit rows nobody labelled (y=)."
)
REMEDY_OF_FORM = {
    "marks at random": "Let marks be false (false_marks=True), or leave that annotator out.",
    "propensities vary with x": "Fit model='spm', whose propensities vary with x.",
}
TOO_DIFFERENT = (
    "Annotators divide the positives among them, for example by skipping what others labelled: π "
    "comes out too high. Enter NaN for rows an annotator skipped, or audit rows (y=)."
)


def gather_several(subject: Subject, forms: FormRange) -> Evidence:
    """What the checks judge, computed once."""
    fit = subject.fit
    drawn = not fit.is_point
    fitted = scores(fit)
    rates, calibration = (
        label_rates(*fitted),
        calibrate_labels(*fitted, fit.settings["random_seed"]),
    )
    return Evidence(
        peaks=(),
        profile=None,
        prior=subject.prior_draws if drawn else None,
        prior_pi=subject.prior_pi_and_c[0] if drawn else None,
        prior_c=subject.prior_pi_and_c[1] if drawn else None,
        rivals=(),
        label_rates=rates,
        calibration=calibration,
        form_rates=rates,
        form_calibration=calibration,
        columns=None,
        forms=forms,
        remedies=(),
    )


def agreement_of(fit: FittedModel) -> Agreement:
    """Counts of agreement, observed and replicated from the posterior."""
    rng = np.random.default_rng([fit.settings["random_seed"], 7])
    return compare_agreement(fit.draws, fit.data, rng)


def diagnose_several(fit: FittedModel) -> Identifiability:
    """Run the checks and form the verdict."""
    subject = Subject(fit)
    forms = panel_range(fit)
    evidence = gather_several(subject, forms)
    agreement = agreement_of(fit)
    checks = [
        *_computation(subject),
        _overlap(fit),
        _modes(fit),
        _ranking(fit),
        *_level(fit, evidence),
        _independence(fit, agreement),
        *_forms(fit, forms),
        *check_rates(subject, evidence),
        *check_calibration(subject, evidence),
        *check_knowledge(subject, evidence),
        *check_false_marks(subject, evidence),
    ]
    level = choose_level(checks)
    return Identifiability(
        level=level,
        verdict=_verdict(fit, evidence, checks, level),
        carried_by=_carriers(fit, checks, level),
        checks=tuple(checks),
        remedies=(),
        exchanged_pi=None,
        pi_range=(forms.low, forms.high),
        evidence=evidence,
    )


def _computation(subject: Subject) -> list[Check]:
    fit = subject.fit
    if fit.is_point:
        return [check_optimum(subject)]
    if not fit.stats:
        return [check_independent(subject)]
    draws = fit.parameters
    values: dict[str, Array] = {
        "pi": fit.pi_draws.reshape(draws.b.shape),
        "b": draws.b,
        "|a|": sigma_norm(draws.a, fit.data.X),
    }
    for j, name in enumerate(fit.data.annotators):
        if fit.spec.has_selection:
            values[f"beta[{name}]"] = draws.beta[..., j]
            values[f"|alpha[{name}]|"] = sigma_norm(draws.alpha[..., j, :], fit.data.X)
        rates = draws.rates(fit.spec.propensity.free[:-1] if fit.spec.n_rates else ())
        values |= {f"{rate}[{name}]": drawn[..., j] for rate, drawn in rates.items()}
    remedy = "The chains disagree. Take more draws (draws=, tune=) or use tighter priors (priors=)."
    return [chains_agree(values, "", remedy), sampler_went_well(fit.stats, draws.b.size)]


def _overlap(fit: FittedModel) -> Check:
    data = fit.data
    shared = int((data.shown.sum(axis=1) > 1).sum())
    alone = [
        name
        for name, own in zip(data.annotators, data.marked.T, strict=True)
        if not (own & (data.marked.sum(axis=1) > 1)).any()
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
    exchangeable = fit.spec.exchangeable and np.array_equal(data.class_mask, data.selection_mask)
    naming = (Aspect.ORIENTATION,) if exchangeable and not data.n_audited else ()
    return Check(
        "overlap",
        status,
        float(data.recaptures),
        in_words(RECAPTURES) + " rows labelled twice",
        text,
        "" if status == "passed" else SHARED_REMEDY,
        bears_on=(Aspect.LEVEL, *naming),
        needs="weak",
        consequence="too few rows were labelled by two annotators",
    )


def _modes(fit: FittedModel) -> Check:
    other = 1.0 - float(fit.quality.figures.get("mode_weights", [1.0])[0])
    good = other < MATERIAL
    return Check(
        "modes",
        "passed" if good else "failed",
        other,
        f"other modes hold less than {MATERIAL:.0%} of the evidence",
        f"Modes other than the sampled one hold {other:.1%} of the evidence (Gaussian at each).",
        "" if good else SHARED_REMEDY,
        bears_on=(Aspect.ORIENTATION, Aspect.LEVEL),
        needs="weak",
        consequence="the posterior has separate modes",
    )


def _ranking(fit: FittedModel) -> Check:
    X, draws = fit.data.X, fit.draws.a
    covariance = np.cov(X, rowvar=False, ddof=0).reshape(X.shape[1], -1)
    center = draws.mean(axis=0)
    sizes = np.einsum("ij,jk,ik->i", draws, covariance, draws) * (center @ covariance @ center)
    figure = float(np.mean(draws @ covariance @ center / np.sqrt(np.maximum(sizes, 1e-300))))
    return replace(
        graded(
            "ranking by t",
            figure,
            thresholds.RANKING,
            f"Rankings of the rows by t agree with their mean to a correlation of {figure:.3f}.",
            "Bring more rows, or use fewer columns.",
        ),
        bears_on=(Aspect.RANKING,),
        needs="weak",
    )


def _level(fit: FittedModel, evidence: Evidence) -> list[Check]:
    """How well π is known, and by how much better than before the data."""
    if evidence.prior_pi is None:
        return [
            Check(
                "sd of pi",
                "not computed",
                None,
                "",
                "A point estimate has no spread.",
                "Use method='laplace' or 'nuts'.",
                bears_on=(Aspect.LEVEL,),
                needs="weak",
                consequence="a point estimate does not say how well it is known",
            )
        ]
    sd = float(fit.pi_draws.std(ddof=1))
    gained = 1 - float(np.var(fit.pi_draws) / np.var(evidence.prior_pi))
    wide = "the labels leave it too wide"
    return [
        replace(
            graded(
                "sd of pi",
                sd,
                thresholds.SD_PI,
                f"π is known to ±{sd:.3f} (posterior).",
                SHARED_REMEDY,
            ),
            bears_on=(Aspect.LEVEL,),
            needs="weak",
            consequence=wide,
        ),
        replace(
            graded(
                "contraction",
                gained,
                thresholds.CONTRACTION,
                f"The data removed {gained:.0%} of the prior variance of π.",
                SHARED_REMEDY,
            ),
            bears_on=(Aspect.LEVEL, Aspect.PRIOR),
            needs="weak",
            consequence=wide,
        ),
    ]


def _independence(fit: FittedModel, agreement: Agreement) -> Check:
    name = "independence of annotators"
    if (fit.data.shown.sum(axis=1) > 1).sum() == 0:
        return Check(name, "not applicable", None, "", "No row was shown to two annotators.")
    p, worst = agreement.p_value, int(np.abs(agreement.z).argmax())
    status = grade(p, INDEPENDENCE)
    text = (
        f"Largest deviation: rows labelled by {agreement.names[worst]}, "
        f"{agreement.observed[worst]:.0f} observed, {agreement.replicated[:, worst].mean():.0f} "
        f"expected ({agreement.z[worst]:+.1f} sd; p = {p:.3f} over all counts)."
    )
    if fit.data.n_annotators == 2:
        text += " Two annotators alone can hardly contradict their independence."
    side = (
        "agree more than independent ones would, so it is probably too low (positives that are "
        "hard for everybody)"
        if agreement.alike
        else "agree less than independent ones would, so it is probably too high"
    )
    return Check(
        name,
        status,
        p,
        f"p {in_words(INDEPENDENCE)}",
        text,
        "" if status == "passed" else (TOO_ALIKE if agreement.alike else TOO_DIFFERENT),
        bears_on=(Aspect.LEVEL,),
        needs="weak",
        consequence=f"the annotators {side}",
    )


def panel_range(fit: FittedModel) -> FormRange:
    """π over all forms of marking that predict the labels as well, and with its own width."""
    data, draws, X = fit.data, fit.draws, fit.data.X
    center, spread = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-300)
    a, alpha = draws.a.mean(axis=0), draws.alpha.mean(axis=0)
    beta = draws.beta.mean(axis=0) + alpha @ center
    rates = np.zeros((data.n_annotators, 2))
    if not fit.spec.has_selection:  # a constant s_j as a logistic one without slopes
        s = np.clip(draws.take(slice(None, None, 50)).s(X[:1])[..., 0].mean(axis=0), 1e-6, 1 - 1e-6)
        beta = np.log(s) - np.log1p(-s)
    elif fit.spec.n_rates:
        rates = np.column_stack([draws.gamma.mean(axis=0), draws.lam.mean(axis=0)])
    entering = data.selection_mask.copy()
    entering[data.visit_places] = True
    panel = Panel(
        (X - center) / spread,
        data.labels,
        data.as_rows.known,
        data.class_mask,
        entering & fit.spec.has_selection,
        rates,
    )
    table = panel_forms(
        panel, a=a * spread, b=float(draws.b.mean() + a @ center), alpha=alpha * spread, beta=beta
    )
    own_gap = float(table["below"].iloc[0])
    table.loc[INDEPENDENT, "kept"] = True
    kept, (low, high) = table[table["kept"]], interval(fit.pi_draws)
    # The refits have a weak ridge instead of the fit's priors: the fit's own answer counts too.
    low = min(low, float((kept["pi"] - WIDE * kept["sd"]).min()))
    high = max(high, float((kept["pi"] + WIDE * kept["sd"]).max()))
    return FormRange(table, max(low, 0.0), min(high, 1.0), own_gap, len(panel.some().X))


def _forms(fit: FittedModel, found: FormRange) -> list[Check]:
    """How far π would move if annotators did not mark independently, or marked at random."""
    bounds = thresholds.relative(thresholds.FORM_WIDTH, float(fit.pi_draws.mean()))
    status = grade(found.high - found.low, bounds)
    told = ", ".join(f"{share(pi)} ({name})" for name, pi in found.kept["pi"].items())
    judged = judged_on(found.rows, fit.data.n)
    best, good = found.table["below"].idxmin(), found.own_gap <= AS_WELL
    return [
        Check(
            "form range",
            status,
            found.high - found.low,
            "width of π " + in_words(bounds),
            f"{len(found.kept)} of {len(found.table)} forms of marking predict the labels as well; "
            f"over them π is {share(found.low)} to {share(found.high)}: {told}.{judged}",
            "" if status == "passed" else TOO_ALIKE,
            bears_on=(Aspect.LEVEL,),
            needs="passed",
            consequence="forms of marking that predict the labels as well disagree about it",
        ),
        Check(
            "form of marking",
            "passed" if good else "failed",
            found.own_gap,
            f"at most {AS_WELL:g} {UNITS} below the best form",
            f"The best form ({best}) is {found.own_gap:.1f} {UNITS} better than the fitted one."
            + judged,
            "" if good else REMEDY_OF_FORM.get(str(best), TOO_ALIKE),
            bears_on=(Aspect.LABELS,),
            needs="passed",
            consequence=f"another form of marking predicts the labels better ({best})",
        ),
    ]


def _verdict(fit: FittedModel, evidence: Evidence, checks: list[Check], level: int) -> str:
    pi = f"class prior {fit.pi_draws.mean():.2f}"
    if evidence.prior_pi is not None:
        low, high = interval(fit.pi_draws)
        prior_low, prior_high = interval(evidence.prior_pi)
        pi += (
            f" (at {CI_PROB:.0%}: posterior {low:.2f} to {high:.2f}, prior {prior_low:.2f} to "
            f"{prior_high:.2f})"
        )
    if (forms := evidence.forms) is not None:
        pi += (
            f"; {share(forms.low)} to {share(forms.high)} under the {len(forms.kept)} forms of "
            "marking that predict the labels as well"
        )
    if level == 4:
        return "Only the labels are described: not even the ranking by t is determined."
    if level == 3:
        return (
            "Only the unordered pair {t, s} is identified: too few rows were labelled by two "
            f"annotators to tell the class from what annotators have in common; {pi}."
        )
    if level == 2:
        found = reasons(checks, Aspect.LEVEL, Aspect.LABELS, Aspect.COMPUTATION)
        reason = "; ".join(found) or "its uncertainty was not computed"
        return f"The ranking by t is separable, its level is not: {pi}; {reason}."
    return (
        "t and every annotator's s are separable from these data, if annotators label "
        f"independently given x and the class: {pi}."
    )


def _carriers(fit: FittedModel, checks: list[Check], level: int) -> tuple[str, ...]:
    open_prior = any(c.open and Aspect.PRIOR in c.bears_on for c in checks)
    thin = any(c.name == "overlap" and c.status == "failed" for c in checks)
    carriers = ["data"] if level < 4 else []
    carriers += [CARRIER, "parametric form"]
    if open_prior or thin or level > 2:
        carriers.append("prior")
    if not fit.data.is_closed:
        carriers.append("knowledge from outside")
    if not fit.spec.has_selection:
        carriers.append("assumption that every s_j is constant")
    return tuple(carriers)
