r"""How precisely the class prior π is identified, by what, and what an audit would change.

The *profile* log likelihood of π, :math:`\max \{\log L(\theta) : E\,t(x) = \pi\}`, does not depend
on the priors. It is traced from every materially different mode in both directions: each point is
the mode given π up to a small error. The π within 1.92 of the maximum are the likelihood's own 95 %
set. Where this set is wide, a narrow posterior comes from the prior.

An audit plan is judged by two expected figures: the remaining sd of π, and the log likelihood ratio
of this orientation to the other. An audited unlabelled row adds y | l = 0 ~ Bernoulli(m). With D
the gradient of logit m, its information is :math:`m(1-m) D D'`.
"""

import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import kl_div, logit

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.engines.optimizers import lbfgs, part_of
from bayes_lepu.links import Array, RowKind, sigmoid
from bayes_lepu.model.compiled import collect
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import INTERCEPTS, SLOPES, Prior
from bayes_lepu.rows import outside_moments
from bayes_lepu.rows.factoring import inverse, solve
from bayes_lepu.verdict.records import LIKELIHOOD_DROP, Offer

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

WEAK_SLOPE_SCALE = 2.5  # of the weak ridge on standardised columns: log odds of ±5 over ±1 sd
# A threshold of the verdict; it must not depend on the level of printed intervals (ArviZ's
# `stats.ci_prob`).
CI_PROB = 0.95
ENOUGH_DRAWS = 100  # with t and s swapped: enough for an interval


def weak_density(spec: ModelSpec, data: PUData) -> LogDensity:
    """A model's likelihood with slopes N(0, 2.5²) and flat or uniform priors of the rest."""
    priors = dict.fromkeys(SLOPES, Prior("normal", scale=WEAK_SLOPE_SCALE))
    priors |= dict.fromkeys(INTERCEPTS, Prior("flat"))
    return LogDensity(spec, data, spec.complete_priors(priors, None))


def share_positive(point: Parameters, data: PUData) -> float:
    """π at a point: the mean of t over the population."""
    return float(np.average(point.t(data.X), weights=data.weight))


def logit_pi(density: LogDensity, z: Array) -> tuple[float, Array]:
    """Logit of π, and its gradient in the coordinates."""
    k = density.constants
    total, positive, slope, _, _ = outside_moments(
        density.data.as_rows, density.links, density.point(z)
    )
    pi = float(np.clip(positive / total, 1e-12, 1 - 1e-12))
    gradient = collect(slope / (total * pi * (1 - pi)), z, k)
    return float(np.log(pi) - np.log1p(-pi)), gradient


def interval(values: Array) -> tuple[float, float]:
    """Equal-tailed interval of draws."""
    low, high = np.quantile(values, [(1 - CI_PROB) / 2, (1 + CI_PROB) / 2])
    return float(low), float(high)


# Modes of the likelihood ----------------------------------------------------------------------


class Role(StrEnum):
    """Which orientation, or which other answer, a mode represents."""

    AS_LABELLED = "as labelled"
    EXCHANGED = "swapped"
    OTHER = "other"


@dataclass(frozen=True, eq=False)
class Peak:
    """A mode of the weak density: its coordinates, and its point on standardised columns."""

    role: Role
    z: Array
    logp: float
    point: Parameters


def exchanged_peak(evidence: "Evidence") -> Peak | None:
    """The best mode with t and s swapped, if there is one."""
    if evidence.symmetric:
        return evidence.mirrored(evidence.peaks[0], Role.EXCHANGED)
    found = [p for p in evidence.peaks[1:] if p.role is Role.EXCHANGED]
    return max(found, key=lambda p: p.logp, default=None)


def exchange_gap(evidence: "Evidence") -> float:
    """Log-likelihood units by which the data prefer this orientation to the other.

    Infinite where no mode with t and s swapped was found; 0 where the likelihood is symmetric.
    """
    if evidence.symmetric:
        return 0.0
    other = exchanged_peak(evidence)
    return np.inf if other is None else evidence.peaks[0].logp - other.logp


@dataclass(frozen=True, eq=False)
class Local:
    """Information of data and prior at one point z, and the gradient of π."""

    z: Array
    total: Array
    pi_gradient: Array

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Draws of the Gaussian with this precision."""
        values, vectors = np.linalg.eigh(inverse(self.total))
        noise = rng.normal(size=(count, len(values))) * np.sqrt(np.maximum(values, 0.0))
        return self.z + noise @ vectors.T

    def sd(self, extra: Array | float = 0.0) -> float:
        """Delta-method sd of π, with ``extra`` information added."""
        return delta_sd(self.total + extra, self.pi_gradient)


def delta_sd(information: Array, gradient: Array) -> float:
    """Standard deviation of a function with this gradient."""
    return float(np.sqrt(max(float(gradient @ solve(information, gradient)), 0.0)))


# The profile ----------------------------------------------------------------------------------

STOP_DROP = 6.0  # log-likelihood units below the maximum: three times what the 95 % set needs


def likelihood_range(profile: pd.DataFrame) -> tuple[float, float]:
    """Ends of the π within 1.92 of the maximum in the fit's own orientation, interpolated."""
    own = profile[profile["branch"] != Role.EXCHANGED]
    above, ends = own.assign(delta=own["delta"] - own["delta"].max() + LIKELIHOOD_DROP), []
    for _, curve in above.groupby("curve"):
        pi, d = curve["pi"].to_numpy(), curve["delta"].to_numpy()
        for i in np.flatnonzero(d >= 0)[[0, -1]] if d.max() >= 0 else ():
            ends.append(pi[i])
            for k in (i - 1, i + 1):
                if 0 <= k < len(d) and d[k] < 0:
                    ends.append(np.interp(0.0, d[[k, i]], pi[[k, i]]))
    return float(min(ends)), float(max(ends))


def with_known_pi(density: LogDensity, pi: float, error: float) -> LogDensity:
    """The density with one more observation, π ± error, besides the external figures."""
    outside = density.data.outside.copy()
    known, its_error = outside[0]
    if not np.isnan(known):
        weight = np.array([its_error**-2, error**-2])
        pi, error = float(np.average([known, pi], weights=weight)), float(weight.sum() ** -0.5)
    outside[0] = pi, error
    return replace(density, data=replace(density.data, outside=outside))


def trace_profile(evidence: "Evidence") -> pd.DataFrame:
    """The profile from the fitted mode, the best swapped mode and the best other mode.

    Columns pi, delta (log likelihood minus its maximum), branch (a `Role`) and curve (number of the
    traced line).
    """
    best = max(p.logp for p in evidence.peaks)
    first, *rest = evidence.peaks
    near = sorted((p for p in rest if p.logp > best - STOP_DROP), key=lambda p: -p.logp)
    swapped, other = ([p for p in near if p.role is r][:1] for r in (Role.EXCHANGED, Role.OTHER))
    rows = [
        (pi, value, peak.role, number)
        for number, peak in enumerate([first, *swapped, *other])
        for pi, value in _trace(evidence.weak, peak)
    ]
    table = pd.DataFrame(rows, columns=["pi", "delta", "branch", "curve"])
    table["delta"] -= table["delta"].max()
    return table.sort_values(["curve", "pi"], ignore_index=True)


def _trace(density: LogDensity, peak: Peak) -> list[tuple[float, float]]:
    """Points (π, profile) from low to high π."""
    center, slope = logit_pi(density, peak.z)
    curvature = part_of(density).logp_grad_info(peak.z)[2]
    sd = float(np.clip(delta_sd(curvature, slope), 0.01, 0.8))
    step, points = min(0.5 * sd, 0.4), [(float(sigmoid(center)), peak.logp)]
    for direction in (-1.0, 1.0):
        z, top = peak.z, peak.logp
        for k in range(1, 41):  # half an sd each
            target = center + direction * k * step
            # A range that reaches below π = .007 or above .993 need not be traced further.
            if abs(target) > 5.0:
                break
            pi = float(sigmoid(target))
            known = with_known_pi(density, pi, 0.1 * sd * pi * (1 - pi))
            # One Hessian gives the units of all steps; the term in π adds its curvature. The search
            # stops at a hundredth of the printed precision.
            steep = logit_pi(density, z)[1] / (0.1 * sd)
            z = lbfgs(known, z, curvature=curvature + np.outer(steep, steep), least=1e-4)
            value = density.logp(z)
            points.append((float(sigmoid(logit_pi(density, z)[0])), value))
            top = max(top, value)
            if value < top - STOP_DROP:
                break
    return sorted(points)


# The spread of π ------------------------------------------------------------------------------


def sd_pi(evidence: "Evidence") -> float:
    """Posterior sd of π given the orientation; for a point estimate by the delta method."""
    if evidence.fit.is_point:
        return evidence.local.sd()
    return float(evidence.pi_given_orientation.std(ddof=1))


def prior_dominates(evidence: "Evidence") -> bool:
    """Whether the prior determines π: a posterior much narrower than the likelihood's set of π,
    or hardly narrower than the prior.
    """
    if evidence.fit.is_point:
        return False
    (low, high), ends = interval(evidence.pi_given_orientation), evidence.likelihood_range
    beyond = ends is not None and ends[1] - ends[0] > 1.5 * (high - low)
    return beyond or evidence.contraction < 0.9


def power_scaling(evidence: "Evidence") -> pd.DataFrame:
    """Sensitivity of every parameter and of π to power-scaling the prior and the likelihood.

    Columns prior and likelihood (Kallioinen and others 2024, doi:10.1007/s11222-023-10366-5).
    """
    from arviz_base import from_dict
    from arviz_stats import psense

    fit, draws = evidence.fit, evidence.pivoted.take_flat().thin(1000)
    density = LogDensity(fit.spec, fit.data, fit.priors)
    z = density.pack(draws)
    prior = np.array([density.log_prior(one) for one in z])
    logs = {"log_prior": prior, "log_likelihood": density.logps(z) - prior}
    names = [*density.names, "pi"]
    values = np.column_stack([z, fit.class_prior_draws(draws)[0]])
    groups = {"posterior": {"of": values[None]}} | {k: {"all": v[None]} for k, v in logs.items()}
    tree = from_dict(groups, coords={"parameter": names}, dims={"of": ["parameter"]})
    found: dict[str, Any] = {}
    with warnings.catch_warnings():  # warnings that the tails of 50 draws are short
        warnings.simplefilter("ignore", UserWarning)
        for group in ("prior", "likelihood"):
            with suppress(ValueError):  # draws of equal weight have no tail: nothing is computed
                found[group] = psense(tree, group=group)["of"]
    if len(found) < 2:
        return pd.DataFrame(columns=["prior", "likelihood"])
    return pd.DataFrame(found, index=pd.Index(names))


# The audit plan -------------------------------------------------------------------------------

AUDITED = 50  # rows that a person checks in an afternoon
UNSURE = 0.01  # bounds probabilities, so that one audit counts at most log 100 against an answer


def weigh_audit(evidence: "Evidence") -> Offer | None:
    """How much the true classes of `AUDITED` unlabelled rows would change (see `Offer`)."""
    fit, local = evidence.fit, evidence.local
    if fit.spec.certain or not np.any(evidence.data.kind == RowKind.UNLABELLED):
        return None
    before, gap, other = sd_pi(evidence), exchange_gap(evidence), exchanged_peak(evidence)
    after = before * local.sd(audit_information(evidence)) / max(local.sd(), 1e-300)
    more = 0.0 if other is None else _audited_gap(evidence, other)
    return Offer(AUDITED, before, after, gap, gap + more)


def audit_information(evidence: "Evidence") -> Array:
    """Expected information of `AUDITED` random audits of unlabelled rows, in the coordinates."""
    density, z, h = evidence.fit.density, evidence.local.z, 1e-5
    X = evidence.data.X[evidence.data.kind == RowKind.UNLABELLED]
    X = X[evenly_spaced(len(X), 2_000)]  # enough for a mean to within a few per cent

    def log_odds(z: Array) -> Array:
        return logit(np.clip(density.unpack(z).missed(X), 1e-12, 1 - 1e-12))

    m = density.unpack(z).missed(X)
    slopes = [(log_odds(z + e) - log_odds(z - e)) / (2 * h) for e in h * np.eye(density.dim)]
    D = np.column_stack(slopes)
    return (AUDITED / len(X)) * (D * (m * (1 - m))[:, None]).T @ D


def _audited_gap(evidence: "Evidence", other: Peak) -> float:
    """Expected log likelihood ratio of `AUDITED` audits against the swapped answer."""
    data, points = evidence.weak.data, (evidence.peaks[0].point, other.point)
    among = (data.kind == RowKind.UNLABELLED) & (data.weight > 0)
    m, q = (np.clip(point.missed(data.X[among]), UNSURE, 1 - UNSURE) for point in points)
    return AUDITED * float(
        np.average(kl_div(m, q) + kl_div(1 - m, 1 - q), weights=data.weight[among])
    )
