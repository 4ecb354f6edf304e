r"""Whether the propensity is constant, and whether it is below one.

The fitted model against the next simpler (or next richer) one by the expected log predictive
density of the labels, left-one-out by importance sampling with truncated weights (Ionides 2008,
https://doi.org/10.1198/106186008X320456). A difference counts beyond max(4, 2 se). The likelihood
ratio is never held against χ²: with s constant the slopes α mean nothing, and the statistic exceeds
its nominal 95 % point in up to half of all data sets. `bootstrap_constancy` simulates its
distribution instead.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bayes_lepu import kernel
from bayes_lepu.data import PUData
from bayes_lepu.diagnostics.exceptional import scar_peak
from bayes_lepu.diagnostics.records import Check, Status
from bayes_lepu.diagnostics.subject import Subject, weak_density
from bayes_lepu.inference.laplace import gaussian_at
from bayes_lepu.inference.map import fit_map
from bayes_lepu.inference.starts import constant_starts
from bayes_lepu.links import Array, RowKind
from bayes_lepu.models import get_model
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.priors import default_priors
from bayes_lepu.result.wording import UNITS

DRAWS = 500
MAX_ROWS = 20_000
BLOCK = 5000
LEAST_DIFFERENCE = 4.0
# What each model is held against: the rival, and whether the rival is the richer one.
RIVALS = {
    "psychm": ("scar", False),
    "spm": ("scar", False),
    "scar": ("spm", True),
    "naive": ("scar", True),
}


@dataclass(frozen=True)
class Comparison:
    """Difference of expected log predictive density, fitted model minus rival."""

    rival: str
    difference: float
    se: float

    @property
    def bound(self) -> float:
        """What a difference must exceed to count."""
        return max(LEAST_DIFFERENCE, 2 * self.se)


def compare_to_rival(subject: Subject) -> Comparison:
    """Leave-one-out comparison with the model's rival on the same rows.

    With draws against SCAR by importance sampling; otherwise by the log likelihood at the maxima
    of the weak density minus the effective number of parameters (an approximation to the same,
    for which no Gaussian has to stand in for a skew posterior).
    """
    rival, _ = RIVALS[subject.fit.spec.name]
    if subject.fit.is_point or rival != "scar":
        best = max(subject.peaks, key=lambda p: p.logp)
        d = plug_in_rows(subject.weak, best.z) - plug_in_rows(*_weak_rival(subject, rival))
        return Comparison(rival, float(d.sum()), float(np.sqrt(d.size) * d.std()))
    data = _some_rows(subject.data)
    d = loo_rows(some_draws(subject), data) - loo_rows(_scar_draws(subject), data)
    scale = subject.data.n / data.n
    return Comparison(rival, float(d.sum()) * scale, float(np.sqrt(d.size) * d.std()) * scale)


def plug_in_rows(density: LogDensity, z: Array) -> Array:
    """Log likelihood of every row at a maximum, less its share of the effective parameters."""
    _, _, total = density.logp_grad_info(z)
    data_part = total - density.prior_precision(z)
    # The smallest ridge keeps flat directions (where neither data nor prior speak) at no effect.
    total += 1e-9 * np.trace(total) * np.eye(density.dim)
    effective = float(np.trace(np.linalg.solve(total, data_part)))
    point, data = density.unpack(z), density.data
    return point.loglik(data.X, data.kind) - effective / data.n


def loo_rows(draws: Parameters, data: PUData) -> Array:
    """Log predictive density of every row, left out by truncated importance weights."""
    out = np.empty(data.n)
    for start in range(0, data.n, BLOCK):
        rows = slice(start, start + BLOCK)
        loglik = row_logliks(draws, data.X[rows], data.kind[rows])
        out[rows] = np.log(np.einsum("dn,dn->n", loo_weights(loglik), np.exp(loglik)))
    return out


def loo_weights(loglik: Array) -> Array:
    """Weights of the draws for leaving out each row, truncated at the root of their number."""
    weights = np.exp(loglik.min(axis=0) - loglik)
    weights /= weights.sum(axis=0)
    np.minimum(weights, len(weights) ** -0.5, out=weights)
    return weights / weights.sum(axis=0)


def row_logliks(draws: Parameters, X: Array, kind: NDArray[np.int8]) -> Array:
    """Log-likelihood of every draw and row."""
    X = np.ascontiguousarray(X)
    out = np.empty((draws.b.size, len(X)))
    for i in range(draws.b.size):
        q = draws.take(i)
        log_w = np.ascontiguousarray(q.log_w)
        out[i] = kernel.loglik_rows(
            X, kind, q.a.copy(), float(q.b), q.alpha.copy(), float(q.beta), log_w
        )
    return out


def some_draws(subject: Subject, count: int = DRAWS) -> Parameters:
    """Evenly spaced draws of the fit."""
    flat = subject.fit.draws
    return flat.take(slice(None, None, max(1, flat.b.size // count)))


def check_constancy(subject: Subject) -> list[Check]:
    """Whether s varies with x (or, for SCAR and naive, whether it may be taken as constant)."""
    name = "constancy of s"
    if not subject.small:
        return [Check(name, "not applicable", None, "", "Not computed: too many coordinates.")]
    model = subject.fit.spec.name
    if model == "naive" and subject.data.n_audited:
        return [Check(name, "not applicable", None, "", "Audited rows leave no room for s < 1.")]
    found = compare_to_rival(subject)
    text = (
        f"Rows predicted without themselves, against {found.rival}: {found.difference:+.1f} ± "
        f"{found.se:.1f} {UNITS} (expected log predictive density; counts beyond "
        f"{found.bound:.1f})."
    )
    status, remark, remedy = _reading(model, found)
    return [
        Check(
            name,
            status,
            found.difference,
            f"beyond max({LEAST_DIFFERENCE:g}, 2 se)",
            f"{text} {remark}",
            remedy,
        )
    ]


def _reading(model: str, found: Comparison) -> tuple[Status, str, str]:
    if model in ("psychm", "spm"):
        if found.difference > found.bound:
            return "passed", "s varies with x.", ""
        remark = "A constant propensity predicts the labels as well."
        if model == "spm":
            return "weak", remark + " SPM identifies that case too.", "Compare with model='scar'."
        return (
            "failed",
            remark + " Inside PsychM the level of t is then not identified.",
            "Fit model='scar', or model='spm', which identifies a constant s.",
        )
    if -found.difference > found.bound:
        if model == "naive":
            return (
                "failed",
                "Not every positive is labelled: the naive model is contradicted.",
                "Fit model='scar', 'spm' or 'psychm'.",
            )
        return (
            "failed",
            "s varies with x: the assumption of SCAR is contradicted.",
            "Fit model='spm' or 'psychm'.",
        )
    return "passed", "The data do not contradict the assumption on s.", ""


def _some_rows(data: PUData) -> PUData:
    if data.n <= MAX_ROWS:
        return data
    keep = np.random.default_rng(0).choice(data.n, MAX_ROWS, replace=False)
    return replace(
        data,
        X=np.ascontiguousarray(data.X[keep]),
        l=data.l[keep],
        y=data.y[keep],
        kind=data.kind[keep],
        index=data.index[keep],
    )


def _scar_draws(subject: Subject) -> Parameters:
    """Draws of the Gaussian at the mode of SCAR under the priors of the fit."""
    spec, data, own = get_model("scar"), subject.data, subject.fit.priors
    base = default_priors(int(data.class_mask.sum()), int(data.selection_mask.sum()))
    known = {n: p for n, p in own.items() if not p.hierarchical}
    priors = {n: known.get(n, base[n]) for n in spec.parameters}
    density = LogDensity(spec, data, priors, jacobian=True)
    starts = [density.pack(p) for p in constant_starts(data)]
    best = max((gaussian_at(density, z) for z in starts), key=lambda g: g.log_evidence)
    return density.unpack(best.sample(np.random.default_rng(0), DRAWS))


def _weak_rival(subject: Subject, rival: str) -> tuple[LogDensity, Array]:
    """The rival's weak density and its best maximum."""
    density = weak_density(get_model(rival), subject.weak.data)
    if rival == "scar":
        return density, density.pack(scar_peak(subject)[0])
    found = fit_map(
        density.spec, density.data, density.priors, n_starts=6, rng=np.random.default_rng(0)
    )
    return density, found.modes[0].z


# The likelihood ratio, with its distribution simulated ----------------------------------------


def bootstrap_constancy(
    subject: Subject,
    repeats: int,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Check:
    """Likelihood ratio against SCAR, its distribution simulated from the SCAR fit."""
    spec, data = subject.weak.spec, subject.weak.data
    point, scar = scar_peak(subject)
    observed = max(p.logp for p in subject.peaks) - scar
    rng = np.random.default_rng(int(subject.fit.settings["random_seed"]))
    audited = data.kind >= RowKind.MISSED
    count = 0
    for _ in progress(range(repeats)):
        y, l = point.simulate(data.X, rng)
        kind = np.where(audited & (l == 0), np.where(y == 1, 2, 3), l).astype(np.int8)
        again = replace(data, l=l, kind=kind)
        density = replace(subject.weak, data=again)
        full = fit_map(spec, again, density.priors, n_starts=6, rng=rng).modes[0].logp
        _, simple = scar_peak(subject, again)
        count += full - simple >= observed
    p_value = (1 + count) / (1 + repeats)
    passed = p_value <= 0.05
    psychm = spec.name == "psychm"
    return Check(
        "bootstrap of SCAR",
        "passed" if passed else ("failed" if psychm else "weak"),
        p_value,
        "at most 0.05",
        f"The log likelihood exceeds that of SCAR by {observed:.1f}; as much or more in "
        f"{count} of {repeats} data sets simulated from the SCAR fit (p = {p_value:.3f}).",
        "" if passed else "A constant propensity is not rejected: fit model='scar' or 'spm'.",
    )
