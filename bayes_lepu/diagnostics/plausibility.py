"""Estimates that should make one pause, and maxima that do not exist."""

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linprog

from bayes_lepu.diagnostics.records import Check, not_computed, passed_if
from bayes_lepu.diagnostics.subject import Subject
from bayes_lepu.links import Array

if TYPE_CHECKING:
    from bayes_lepu.diagnostics.evidence import Evidence

FAR = 15.0  # |predictor| beyond which a probability is 0 or 1 for all purposes
STEEP = 10.0
NEAR_ONE = 0.95
MAX_CELLS = 500_000


def check_plausibility(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Factors at their limits, slopes without bound, levels near 0 or 1."""
    X, point, weights = subject.data.X, subject.point, subject.data.row_weights
    complaints = []
    names = {"t": ("a", point.tau(X), point.t(X))}
    if subject.fit.spec.has_selection:
        names["s"] = ("alpha", point.omega(X), point.s(X))
    for factor, (slope, predictor, f) in names.items():
        away = predictor - np.average(predictor, weights=weights)
        sd = float(np.sqrt(np.average(away**2, weights=weights)))
        mean = float(np.average(f, weights=weights))
        if sd > STEEP:
            complaints.append(f"the predictor of {factor} has sd {sd:.0f} over the data")
        if np.average(np.abs(predictor) > FAR, weights=weights) > 0.5:
            complaints.append(f"{factor} is 0 or 1 for most rows")
        if mean > NEAR_ONE:
            complaints.append(
                f"{factor} is close to 1 nearly everywhere (mean {mean:.3f}), so "
                f"{slope} is not estimable"
            )
    c = float(np.mean(subject.fit.c_draws))
    if subject.fit.spec.constant and c > NEAR_ONE:
        complaints.append(f"c = {c:.2f}: nearly every positive is labelled")
    return [
        passed_if(
            not complaints,
            "plausibility",
            float(len(complaints)),
            "no complaint",
            "; ".join(complaints).capitalize() + "."
            if complaints
            else "No estimate is at a limit of its range.",
            "Use a stronger penalty (C=) or tighter priors, and read the level of t with care.",
            otherwise="weak",
        )
    ]


def check_existence(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Whether the unpenalised maximum can exist: no hyperplane may cut off the labelled rows."""
    X, l = subject.data.X, subject.data.l
    if X.size > MAX_CELLS:
        return [not_computed("existence of the MLE", "Too many rows.")]
    separated = linearly_separable(X, l == 1)
    steep = [p for p in subject.peaks[:1] if max(_norms(subject, p.z)) > STEEP]
    text = (
        "A hyperplane separates labelled from unlabelled rows: without a penalty no maximum exists."
        if separated
        else "Even with a weak ridge the slopes run far out: without a penalty the maximum may not "
        "exist."
        if steep
        else "Labelled and unlabelled rows overlap."
    )
    return [
        passed_if(
            not separated and not steep,
            "existence of the MLE",
            float(separated),
            "rows not separable",
            text,
            "Keep a penalty (C > 0) or proper priors: they carry the slopes.",
            otherwise="weak",
        )
    ]


def linearly_separable(X: Array, labelled: Array) -> bool:
    """Whether some hyperplane has all labelled rows on one side and the others on the other."""
    sign = np.where(labelled, 1.0, -1.0)
    scaled = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-300)
    A = -sign[:, None] * np.column_stack([scaled, np.ones(len(X))])
    result = linprog(
        np.zeros(A.shape[1]), A_ub=A, b_ub=-np.ones(len(A)), bounds=(None, None), method="highs"
    )
    return result.status == 0


def _norms(subject: Subject, z: Array) -> tuple[float, float]:
    point, X = subject.weak.unpack(z), subject.weak.data.X
    return float(point.tau(X).std()), float(point.omega(X).std())
