r"""Whether this table of features could ever tell the factors apart.

The Jacobian of log h in the coordinates, on the distinct rows and at generic slopes, must have as
many independent directions as t and s have on these rows: rank [X_t, 1] + rank [X_s, 1] + the
number of free weights. Continuous columns always do; binary ones need at least three columns (SPM)
or four (PsychM), and mutually exclusive (one-hot) columns never do.
"""

from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import weak_priors
from bayes_lepu.verdict.records import Aspect, Check, passed_if
from bayes_lepu.verdict.thresholds import judged_on

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

MAX_ROWS = 4000
RANK_TOLERANCE = 1e-9


def check_rows(evidence: "Evidence") -> list[Check]:
    """Which part of very many rows the likelihood's own checks looked at."""
    some, n = evidence.weak.data.n, evidence.data.n
    if some == n:
        return []
    text = (
        "Modes, profile of π, rivals and calibration are those of an evenly "
        "spaced part of the rows, so what they leave open is wider than all rows would leave it."
    )
    return [Check("rows", "not applicable", float(some), "", text + judged_on(some, n))]


def check_sampling(evidence: "Evidence") -> list[Check]:
    """How the rows came together: nothing in them tells."""
    text = (
        "All rows are taken as one random sample, labelled or not. Labelled rows collected "
        "apart from the unlabelled ones (case-control) would shift the level of t."
    )
    return [Check("sampling", "not applicable", None, "cannot be checked", text)]


def check_design(evidence: "Evidence") -> list[Check]:
    """Rank of the Jacobian on the distinct rows against the number of directions needed."""
    data, spec = evidence.data, evidence.fit.spec
    rows = distinct_rows(data.X)
    needed = directions_needed(spec, data, rows)
    rank = jacobian_rank(spec, data, rows, needed)
    missing = needed - rank
    count = f"{len(rows)} distinct rows" + (" (of some)" if len(rows) == MAX_ROWS else "")
    text = (
        f"{count} support {rank} of the {needed} directions in which t and s can move."
        if missing
        else f"{count} support all {needed} directions in which t and s can move."
    )
    return [
        passed_if(
            not missing,
            "design",
            float(missing),
            "no direction missing",
            text,
            _remedy(few=len(rows) < data.n),
            bears_on=(Aspect.RANKING,),
            needs="passed",
            consequence="the distinct rows are fewer than the directions in which t and s can "
            "differ",
        ),
    ]


def _remedy(*, few: bool) -> str:
    if not few:
        return (
            "There are more parameters than rows: the penalty or the prior decides the rest. Bring "
            "more rows, or use fewer columns."
        )
    return (
        "No amount of rows of this kind identifies the model: add columns with more distinct "
        "values, give the factors different columns, or use a model with fewer parameters "
        "(model='scar')."
    )


def distinct_rows(X: Array) -> Array:
    """Distinct rows, at most `MAX_ROWS` of them."""
    some = X[evenly_spaced(len(X), 50 * MAX_ROWS)]
    rows = np.unique(some, axis=0)
    return rows[evenly_spaced(len(rows), MAX_ROWS)]


def directions_needed(spec: ModelSpec, data: PUData, rows: Array) -> int:
    """Dimension of (t, s) as functions on these rows."""
    total = spec.n_rates + _affine_rank(rows[:, data.class_mask])
    return total + (_affine_rank(rows[:, data.selection_mask]) if spec.has_selection else 0)


def jacobian_rank(spec: ModelSpec, data: PUData, rows: Array, needed: int) -> int:
    """Rank of d log h / d θ on these rows at generic parameters (the best of a few)."""
    if len(rows) < needed:
        return len(rows)
    rng = np.random.default_rng(0)
    spread = np.maximum(rows.std(axis=0), 1e-12)
    best = 0
    for _ in range(3):
        full = np.concatenate([rng.normal(0, 1.5, 2 * data.p + 2), [-1.5, -2.0, 0.0]])
        full[: data.p] /= spread * np.sqrt(data.p)
        full[data.p + 1 : 2 * data.p + 1] /= spread * np.sqrt(data.p)
        best = max(best, _rank(_jacobian(spec, data, rows, full)))
    return best


def _jacobian(spec: ModelSpec, data: PUData, rows: Array, full: Array) -> Array:
    density = LogDensity(spec, data, spec.complete_priors(weak_priors(1, 1), None))
    point = density.unpack(full[density.free])
    ones = np.column_stack([rows, np.ones(len(rows))])
    psi = point.s(rows)
    slope = np.exp(spec.propensity.logs(point.omega(rows), point.log_w)[2])
    log_t, _, log_slope = spec.of_class.logs(point.tau(rows), spec.of_class.log_rates())
    columns = [
        np.exp(log_slope - log_t)[:, None] * ones,
        (slope / psi)[:, None] * ones,
        (point.gamma * (1 - psi) / psi)[:, None],
        np.full((len(rows), 1), -float(point.lam)),
        np.zeros((len(rows), 1)),  # false marks: not part of the question
    ]
    return np.hstack(columns)[:, density.free]


def _affine_rank(X: Array) -> int:
    return _rank(np.column_stack([X, np.ones(len(X))]))


def _rank(A: Array) -> int:
    """Numerical rank after scaling the columns to unit length."""
    sizes = np.linalg.norm(A, axis=0)
    scaled = A[:, sizes > 0] / sizes[sizes > 0]
    if not scaled.size or not np.all(np.isfinite(scaled)):
        return 0
    values = np.linalg.svd(scaled, compute_uv=False)
    return int(np.sum(values > RANK_TOLERANCE * values[0]))
