"""What is said of a fit to a large sparse matrix: only what products with X can tell.

Curvature, profile of π, other forms, rivals and the likelihood under a weak penalty need all
columns at once. Nothing of it is computed here, and what was not computed supports nothing: the
level is 4.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from bayes_lepu.diagnostics.constancy import check_split
from bayes_lepu.diagnostics.convergence import check_optimum
from bayes_lepu.diagnostics.evidence import Evidence
from bayes_lepu.diagnostics.label_checks import MAX_Z, calibrate_labels, label_rates, scores
from bayes_lepu.diagnostics.naming import check_orientation
from bayes_lepu.diagnostics.plausibility import check_plausibility
from bayes_lepu.diagnostics.records import Aspect, Check, Identifiability
from bayes_lepu.diagnostics.subject import MAX_DIM, Subject
from bayes_lepu.diagnostics.verdict import reasons
from bayes_lepu.result import FittedModel
from bayes_lepu.result.numbers_in_words import share, worse

MOST_CELLS = 10_000_000  # of a table that is made dense to be judged: 80 MB
FEWER = (
    "Judge the columns that matter as a dense table: fit with penalty='l1', then keep = "
    "np.flatnonzero(fit.draws.a[0]) and lepu.fit(X[:, keep].toarray(), l, ...); or audit some "
    "unlabelled rows (y=)."
)


def made_dense(fit: FittedModel) -> FittedModel:
    """The same fit on dense rows, where these are few enough to be judged as such."""
    small = fit.density.dim <= MAX_DIM and fit.data.n * fit.data.p <= MOST_CELLS
    return replace(fit, data=fit.data.dense) if fit.data.is_sparse and small else fit


def diagnose_sparse(fit: FittedModel) -> Identifiability:
    """The checks that apply, and a verdict that says what was not computed."""
    subject = Subject(fit)
    evidence = _gather(fit)
    checks = [
        *check_split(subject, evidence),
        check_optimum(subject),
        *_naming(subject, evidence),
        *_not_computed(fit),
        _rates(evidence),
        *check_plausibility(subject, evidence),
    ]
    why = reasons(checks, Aspect.RANKING)[0]
    pi = float(np.mean(fit.pi_draws))
    return Identifiability(
        level=4,
        verdict=f"Only h = s·t is identified: {why}; class prior {share(pi)} under the priors of "
        "this fit.",
        carried_by=_carriers(subject),
        checks=tuple(checks),
        evidence=evidence,
    )


def _gather(fit: FittedModel) -> Evidence:
    fitted = scores(fit)
    rates, calibration = (
        label_rates(*fitted),
        calibrate_labels(*fitted, fit.settings["random_seed"]),
    )
    return Evidence(
        peaks=(),
        profile=None,
        prior=None,
        prior_pi=None,
        prior_c=None,
        rivals=(),
        label_rates=rates,
        calibration=calibration,
        form_rates=rates,
        form_calibration=calibration,
        columns=None,
        forms=None,
        remedies=(),
    )


def _not_computed(fit: FittedModel) -> list[Check]:
    size = f"a sparse matrix of {fit.data.n} x {fit.data.p}"

    def check(name: str, what: str, aspect: Aspect, **more: Any) -> Check:
        text = f"{what}, which a table of this size has to be dense for ({size})."
        return Check(name, "not computed", None, "", text, FEWER, (aspect,), "passed", **more)

    return [
        check(
            "information",
            "Whether the labels can split h needs the curvature in all columns",
            Aspect.RANKING,
            consequence=f"of {size} the curvature, the profile of π, other forms and rivals were "
            "not computed, so that nothing shows how far the labels split h",
        ),
        check("profile of pi", "What the likelihood leaves of π needs its profile", Aspect.LEVEL),
    ]


def _naming(subject: Subject, evidence: Evidence) -> list[Check]:
    """Which factor is the class: by assumption, or by the heights of the fit's own modes."""
    if subject.symmetric or not subject.fit.spec.has_selection:
        return check_orientation(subject, evidence)[:1]
    gaps = [m.gap for m in subject.fit.modes if m.role == "swapped"]
    found = (
        f"the best answer with exchanged factors is {worse(min(gaps))}"
        if gaps
        else "no optimum with exchanged factors was found"
    )
    text = f"Under the priors of this fit {found}. What the likelihood says was not computed."
    return [
        Check(
            "orientation",
            "not computed",
            min(gaps, default=None),
            "",
            text,
            bears_on=(Aspect.ORIENTATION,),
            needs="passed",
        )
    ]


def _rates(evidence: Evidence) -> Check:
    """Label rates by bin of the score: how far h is from the labels, for whatever reason."""
    z = float(evidence.label_rates["z"].abs().max())
    far = z > MAX_Z
    return Check(
        "label rate by score",
        "weak" if far else "passed",
        z,
        f"at most {MAX_Z:.0f} standard errors in each bin",
        f"h is {z:.1f} standard errors off the labels in one bin of its score: the penalties pull "
        "it, or its form is wrong (which of them was not computed)."
        if far
        else "The label rates follow the fitted h.",
        "Try weaker penalties (C=) and compare predictions of held-out labels." if far else "",
    )


def _carriers(subject: Subject) -> tuple[str, ...]:
    spec = subject.fit.spec
    found = ["parametric form", "prior"]
    if not subject.data.is_closed:
        found.append("knowledge from outside")
    if subject.symmetric and subject.fit.orientation.rule != "none":
        found.append("orientation rule")
    if not spec.has_selection:
        found.append(f"assumption that s is {'constant' if spec.constant else 'one'}")
    return tuple(found)
