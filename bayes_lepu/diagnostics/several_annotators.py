"""What only several annotators can show: overlap, independence, and other forms of marking."""

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logit

from bayes_lepu.diagnostics import thresholds
from bayes_lepu.diagnostics.forms import AS_WELL, FormRange
from bayes_lepu.diagnostics.levels import SHARED_REMEDY, interval
from bayes_lepu.diagnostics.panel_forms import INDEPENDENT, Panel, panel_forms
from bayes_lepu.diagnostics.records import Aspect, Check, not_applicable, passed_if
from bayes_lepu.diagnostics.subject import Subject
from bayes_lepu.diagnostics.thresholds import grade, graded, judged_on
from bayes_lepu.result import FittedModel
from bayes_lepu.result.numbers_in_words import UNITS, share

if TYPE_CHECKING:
    from bayes_lepu.diagnostics.evidence import Evidence

RECAPTURES = (50.0, 10.0)  # rows labelled by two or more: relative error of a count about 1/sqrt
MATERIAL = 0.05  # share of the evidence from which another mode matters
INDEPENDENCE = (0.05, 0.01)  # posterior predictive p
WIDE = 1.96  # sd of π to either side of every form's own
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


def check_overlap(subject: Subject, evidence: "Evidence") -> list[Check]:
    """How many rows two annotators marked: only they show how many were missed."""
    data, spec = subject.data, subject.fit.spec
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
    exchangeable = spec.exchangeable and np.array_equal(data.class_mask, data.selection_mask)
    naming = (Aspect.ORIENTATION,) if exchangeable and not data.n_audited else ()
    return [
        graded(
            "overlap",
            float(data.recaptures),
            RECAPTURES,
            text,
            SHARED_REMEDY,
            threshold="{} rows labelled twice",
            status=status,
            bears_on=(Aspect.LEVEL, Aspect.PRIOR, *naming),
            needs="weak",
            consequence="too few rows were labelled by two annotators",
        )
    ]


def check_mode_weights(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Whether other modes hold a share of the evidence that matters."""
    other = 1.0 - float(subject.fit.quality.figures.get("mode_weights", [1.0])[0])
    return [
        passed_if(
            other < MATERIAL,
            "modes",
            other,
            f"other modes hold less than {MATERIAL:.0%} of the evidence",
            f"Modes other than the sampled one hold {other:.1%} of the evidence (Gaussian at "
            "each).",
            SHARED_REMEDY,
            bears_on=(Aspect.ORIENTATION, Aspect.LEVEL),
            needs="weak",
            consequence="the posterior has separate modes",
        )
    ]


def check_independence(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Whether the annotators agree as often as independent ones would."""
    name, data, agreement = "independence of annotators", subject.data, evidence.agreement
    if agreement is None or (data.shown.sum(axis=1) > 1).sum() == 0:
        return [not_applicable(name, "No row was shown to two annotators.")]
    p, worst = agreement.p_value, int(np.abs(agreement.z).argmax())
    text = (
        f"Largest deviation: rows labelled by {agreement.names[worst]}, "
        f"{agreement.observed[worst]:.0f} observed, {agreement.replicated[:, worst].mean():.0f} "
        f"expected ({agreement.z[worst]:+.1f} sd; p = {p:.3f} over all counts)."
    )
    if data.n_annotators == 2:
        text += " Two annotators alone can hardly contradict their independence."
    side = (
        "agree more than independent ones would, so it is probably too low (positives that are "
        "hard for everybody)"
        if agreement.alike
        else "agree less than independent ones would, so it is probably too high"
    )
    return [
        graded(
            name,
            p,
            INDEPENDENCE,
            text,
            TOO_ALIKE if agreement.alike else TOO_DIFFERENT,
            threshold="p {}",
            bears_on=(Aspect.LEVEL,),
            needs="weak",
            consequence=f"the annotators {side}",
        )
    ]


def panel_range(fit: FittedModel) -> FormRange:
    """π over all forms of marking that predict the labels as well, and with its own width."""
    data, draws, X = fit.data, fit.draws, fit.data.X
    center, spread = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-300)
    # Medians: a few wild draws of an approximation would carry the means away.
    a, alpha, beta, b = (np.median(v, axis=0) for v in (draws.a, draws.alpha, draws.beta, draws.b))
    beta = beta + alpha @ center
    rates = np.zeros((data.n_annotators, 2))
    if not fit.spec.has_selection:  # a constant s_j as a logistic one without slopes
        s = np.median(draws.s(X[:1])[..., 0], axis=0)
        beta = logit(np.clip(s, 1e-6, 1 - 1e-6))
    elif fit.spec.n_rates:
        rates = np.column_stack([np.median(v, axis=0) for v in (draws.gamma, draws.lam)])
    entering = data.selection_mask.copy()
    entering[data.visit_places] = True
    panel = Panel(
        (X - center) / spread,
        data.labels,
        data.as_rows.known,
        data.class_mask,
        entering & fit.spec.has_selection,
        rates,
        data.each_weight,
        fit.spec.of_class,
    )
    table = panel_forms(
        panel,
        a=a * spread,
        b=float(b + a @ center),
        alpha=alpha * spread,
        beta=beta,
        false_marks=fit.spec.false_marks,
    )
    own_gap = float(table["below"].iloc[0])
    table.loc[INDEPENDENT, "kept"] = True
    kept, (low, high) = table[table["kept"]], interval(fit.pi_draws)
    # The refits have a weak ridge instead of the fit's priors: the fit's own answer counts too.
    low = min(low, float((kept["pi"] - WIDE * kept["sd"]).min()))
    high = max(high, float((kept["pi"] + WIDE * kept["sd"]).max()))
    return FormRange(table, max(low, 0.0), min(high, 1.0), own_gap, len(panel.some().X))


def check_panel_forms(subject: Subject, evidence: "Evidence") -> list[Check]:
    """How far π would move if annotators did not mark independently, or marked at random."""
    found = evidence.forms
    assert found is not None
    bounds = thresholds.relative(thresholds.FORM_WIDTH, float(np.mean(subject.pi_draws)))
    told = ", ".join(f"{share(pi)} ({name})" for name, pi in found.kept["pi"].items())
    judged = judged_on(found.rows, subject.data.n)
    best = found.table["below"].idxmin()
    return [
        graded(
            "form range",
            found.high - found.low,
            bounds,
            f"{len(found.kept)} of {len(found.table)} forms of marking predict the labels as well; "
            f"over them π is {share(found.low)} to {share(found.high)}: {told}.{judged}",
            TOO_ALIKE,
            threshold="width of π {}",
            bears_on=(Aspect.LEVEL,),
            needs="passed",
            consequence="forms of marking that predict the labels as well disagree about it",
        ),
        passed_if(
            found.own_gap <= AS_WELL,
            "form of marking",
            found.own_gap,
            f"at most {AS_WELL:g} {UNITS} below the best form",
            f"The best form ({best}) is {found.own_gap:.1f} {UNITS} better than the fitted one."
            + judged,
            REMEDY_OF_FORM.get(str(best), TOO_ALIKE),
            bears_on=(Aspect.LABELS,),
            needs="passed",
            consequence=f"another form of marking predicts the labels better ({best})",
        ),
    ]
