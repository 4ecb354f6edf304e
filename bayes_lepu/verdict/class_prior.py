r"""How well the class prior π is known, by what, and what more information would change.

The *profile* of π, :math:`\max \{\log L(\theta) : E\,t(x) = \pi\}`, is what the likelihood alone
says. It is traced from every materially different mode in both directions: each point is the mode
with π known to a small error. The π within 1.92 of the maximum are the likelihood's own 95 % set;
where it is wide, a narrow posterior comes from the prior.

Remedies are weighed by the sd of π they would leave and by the log likelihood with which the data
would then prefer this orientation to the other. An audited unlabelled row adds y | l = 0 ~
Bernoulli(m), :math:`\operatorname{logit} m = \tau + \log(1-\Psi)`: information :math:`m(1-m) D D'`.
"""

import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.engines.optimizers import lbfgs, optimise, part_of
from bayes_lepu.links import Array, RowKind, sigmoid
from bayes_lepu.model.compiled import collect
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import INTERCEPTS, SLOPES, Prior
from bayes_lepu.result.numbers_in_words import as_likely, share
from bayes_lepu.rows import outside_moments
from bayes_lepu.rows.factoring import inverse, solve
from bayes_lepu.verdict.records import LIKELIHOOD_DROP, MODE_GAP, Remedy

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

WEAK_SLOPE_SCALE = 2.5  # of the weak ridge on standardised columns: log odds of ±5 over ±1 sd
# A criterion of the verdict, which must not move with the level at which intervals are shown
# (ArviZ's `stats.ci_prob`).
CI_PROB = 0.95
ENOUGH_DRAWS = 100  # of the other orientation: enough for an interval


def weak_density(spec: ModelSpec, data: PUData) -> LogDensity:
    """A model's likelihood with slopes N(0, 2.5²), the rest flat or uniform."""
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
    """Which answer a mode stands for."""

    AS_LABELLED = "as labelled"
    EXCHANGED = "exchanged"
    OTHER = "other"


@dataclass(frozen=True, eq=False)
class Peak:
    """A mode of the weak density: its coordinates, and its point on standardised columns."""

    role: Role
    z: Array
    logp: float
    point: Parameters


def exchanged_peak(evidence: "Evidence") -> Peak | None:
    """The best answer with t and s swapped, if there is one."""
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
    """Information of data and prior at one point z, the prior's part of it, and the slope of π."""

    z: Array
    total: Array
    prior: Array
    pi_gradient: Array

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Draws of the Gaussian with this precision."""
        values, vectors = np.linalg.eigh(inverse(self.total))
        noise = rng.normal(size=(count, len(values))) * np.sqrt(np.maximum(values, 0.0))
        return self.z + noise @ vectors.T

    def sd(self, extra: Array | float = 0.0) -> float:
        """Delta-method sd of π, with ``extra`` information added to that at hand."""
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
    """The density with one more observation, π ± error, besides what is known from outside."""
    outside = density.data.outside.copy()
    known, its_error = outside[0]
    if not np.isnan(known):
        weight = np.array([its_error**-2, error**-2])
        pi, error = float(np.average([known, pi], weights=weight)), float(weight.sum() ** -0.5)
    outside[0] = pi, error
    return replace(density, data=replace(density.data, outside=outside))


def climb(density: LogDensity, z: Array) -> Array:
    """The mode near z: the curvature of a part of the rows sets the units of the steps."""
    # Steps end at a hundredth of what a reader sees.
    return lbfgs(density, z, curvature=part_of(density).logp_grad_info(z)[2], least=1e-4)


def trace_profile(evidence: "Evidence") -> pd.DataFrame:
    """The profile from the labelled mode, the best swapped one and the best other one.

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
    sd = float(np.clip(delta_sd(part_of(density).logp_grad_info(peak.z)[2], slope), 0.01, 0.8))
    step, points = min(0.5 * sd, 0.4), [(float(sigmoid(center)), peak.logp)]
    for direction in (-1.0, 1.0):
        z, top = peak.z, peak.logp
        for k in range(1, 41):  # half an sd each
            target = center + direction * k * step
            # Beyond π of .007 and .993 a range says nothing that is not known.
            if abs(target) > 5.0:
                break
            pi = float(sigmoid(target))
            z = climb(with_known_pi(density, pi, 0.1 * sd * pi * (1 - pi)), z)
            value = density.logp(z)
            points.append((float(sigmoid(logit_pi(density, z)[0])), value))
            top = max(top, value)
            if value < top - STOP_DROP:
                break
    return sorted(points)


# The spread of π ------------------------------------------------------------------------------


def sd_pi(evidence: "Evidence") -> float:
    """Posterior sd of π given the orientation, or the delta method's for a point estimate."""
    if evidence.fit.is_point:
        return evidence.local.sd()
    return float(evidence.pi_given_naming.std(ddof=1))


def prior_speaks(evidence: "Evidence") -> bool:
    """Whether draws are narrow by their prior: beside the likelihood's set of π, or the prior."""
    if evidence.fit.is_point:
        return False
    (low, high), ends = interval(evidence.pi_given_naming), evidence.likelihood_range
    beyond = ends is not None and ends[1] - ends[0] > 1.5 * (high - low)
    return beyond or evidence.contraction < 0.9


def power_scaling(evidence: "Evidence") -> pd.DataFrame:
    """How far every parameter, and π, moves with the weight of the prior and of the labels.

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
    with warnings.catch_warnings():  # that 50 draws have few in their tails
        warnings.simplefilter("ignore", UserWarning)
        for group in ("prior", "likelihood"):
            with suppress(ValueError):  # draws of equal weight have no tail: nothing is computed
                found[group] = psense(tree, group=group)["of"]
    if len(found) < 2:
        return pd.DataFrame(columns=["prior", "likelihood"])
    return pd.DataFrame(found, index=pd.Index(names))


# Remedies -------------------------------------------------------------------------------------

AUDITED = 50  # rows that a person checks in an afternoon
AUDITS = f"{AUDITED} audited rows"
YOURS = "YOUR_FIGURE"
UNSURE = 0.01  # no single audit is taken to refute an answer by more than log 100


def weigh_remedies(evidence: "Evidence") -> tuple[Remedy, ...]:
    """The offers, the most helpful first: for the orientation where that is open, else for π."""
    fit, data, local, offers = evidence.fit, evidence.data, evidence.local, []
    if fit.spec.certain:
        return ()
    before, gap, other = sd_pi(evidence), exchange_gap(evidence), exchanged_peak(evidence)
    ratio = before / max(local.sd(), 1e-300)

    def offer(
        name: str, after: float, more: float, text: str, advice: str, call: str, flags: str = ""
    ) -> None:
        gap_after = gap + more
        text = f"{text}: {_change(before, after, gap, gap_after)}."
        offers.append(Remedy(name, before, after, gap, gap_after, text, advice, call, flags))

    if np.any(data.kind == RowKind.UNLABELLED):
        offer(
            AUDITS,
            ratio * local.sd(audit_information(evidence)),
            0.0 if other is None else _audited_gap(evidence, other),
            f"{AUDITED} audited unlabelled rows",
            f"Find out the true class of {AUDITED} rows that the library picks",
            f"plan = fit.suggest_audit({AUDITED})",
        )
    if fit.spec.has_selection and fit.density.can_exchange and data.selection_mask.sum() > 1:
        # The column that is most of t and least of s; whether it enters s only the user knows.
        point, inside = evidence.peaks[0].point, np.flatnonzero(data.selection_mask)
        j = int(inside[np.argmax(np.abs(point.a[inside]) - np.abs(point.alpha[inside]))])
        name, by_formulas = fit.feature_names[j], data.encoding.design is not None
        left = [c for c in np.array(fit.feature_names)[data.selection_mask].tolist() if c != name]
        all_enter = data.selection_mask.all()
        listed = f"[c for c in fit.feature_names if c != {name!r}]" if all_enter else repr(left)
        known = set(left) <= set(data.user_columns) and "," not in "".join(left)
        alpha, fixed = fit.density.blocks.alpha.start, np.zeros_like(local.total)
        at = alpha + int(data.selection_mask[:j].sum())
        fixed[at, at] = 1e6 * max(float(local.total[at, at]), 1.0)  # α_j known to be 0
        offer(
            f"{name} not in s",
            ratio * local.sd(fixed),
            _masked_gap(evidence, j, other) - (0.0 if other is None else gap),
            f"If you know that {name} cannot influence the labelling, leave it out of "
            "selection_features=",
            f"Can {name} influence who gets a label? If you know that it cannot, say so",
            ""
            if by_formulas
            else f"lepu.fit(X, l, model={fit.spec.name!r}, selection_features={listed})",
            f"--selection-features {quote(','.join(left))}" if known and not by_formulas else "",
        )
    if np.isnan(data.outside[0, 0]):  # a figure that was brought already is not asked for
        # 0.02, a survey's, or about a tenth of a rare class, one digit.
        error = min(0.02, float(f"{max(evidence.pi, 1e-9) / 10:.0e}"))
        offer(
            "class prior known",
            before * error / float(np.hypot(before, error)),
            0.0 if other is None else _known_gap(evidence, other, error),
            f"The class prior known from elsewhere to ±{error:g}",
            f"Bring the share of positives from elsewhere, good to ±{error:g} (a figure of "
            f"your own, not this fit's {evidence.pi:.3g})",
            # No number there: the fit's own, pasted, would count as evidence from outside.
            f"fit.update(class_prior=({YOURS}, {error:g}))",
            f"--class-prior {YOURS},{error:g}",
        )
    open_naming = gap < MODE_GAP[0]
    offers.sort(key=lambda r: -r.gap_after if open_naming else r.sd_after)
    # Audits rest on nothing that somebody has to assert, so they come first where they help.
    return tuple(sorted(offers, key=lambda r: not (r.helps and r.name == AUDITS)))


def audit_information(evidence: "Evidence") -> Array:
    """Expected information of `AUDITED` random audits of unlabelled rows, in the coordinates."""
    data, density, spec = evidence.data, evidence.fit.density, evidence.fit.spec
    X = data.X[data.kind == RowKind.UNLABELLED]
    X = X[evenly_spaced(len(X), 40_000)]  # enough for a mean
    point = evidence.inside(evidence.point)
    m, psi, ones = point.missed(X), point.s(X), np.column_stack([X, np.ones(len(X))])
    not_psi = np.maximum(1 - psi, 1e-12)
    rise = np.exp(spec.propensity.logs(point.omega(X), point.log_w)[2])
    log_t, log_not_t, log_slope = spec.of_class.logs(point.tau(X), spec.of_class.log_rates())
    D = np.column_stack(
        [
            np.exp(log_slope - log_t - log_not_t)[:, None] * ones,
            (-rise / not_psi)[:, None] * ones,
            np.full(len(X), -float(point.gamma)),
            float(point.lam) * psi / not_psi,
            np.zeros(len(X)),  # of false marks: an audit of an unlabelled row says little
        ]
    )[:, density.layout.free]
    out, k = np.zeros((density.dim, density.dim)), len(density.layout.free)
    out[:k, :k] = (AUDITED / len(X)) * (D * (m * (1 - m))[:, None]).T @ D
    return out


def _audited_gap(evidence: "Evidence", other: Peak) -> float:
    """Expected log likelihood ratio of `AUDITED` audits against the swapped answer."""
    data, points = evidence.weak.data, (evidence.peaks[0].point, other.point)
    among = (data.kind == RowKind.UNLABELLED) & (data.weight > 0)
    X, weights = data.X[among], data.weight[among]
    m, q = (np.clip(point.missed(X), UNSURE, 1 - UNSURE) for point in points)
    divergence = m * np.log(m / q) + (1 - m) * np.log((1 - m) / (1 - q))
    return AUDITED * float(weights @ divergence) / max(float(weights.sum()), 1e-300)


def _masked_gap(evidence: "Evidence", column: int, other: Peak | None) -> float:
    """Log likelihood ratio of this orientation to the other with the column left out of s."""
    if other is None:
        return np.inf
    mask = evidence.data.selection_mask.copy()
    mask[column] = False
    density, peaks = evidence.weak.with_masks(evidence.weak.data.class_mask, mask), []
    for peak in (evidence.peaks[0], other):
        start = replace(evidence.inside(peak.point), alpha=peak.point.alpha * mask)
        peaks.append(optimise(density, density.pack(start)))
    here, there = peaks
    if not evidence.differ(density.unpack(here.z), density.unpack(there.z)):
        return np.inf  # without the column the other orientation has no mode of its own
    return here.logp - there.logp


def _known_gap(evidence: "Evidence", other: Peak, error: float) -> float:
    """Log likelihood the swapped answer loses when π is known to be near this answer's value."""
    pi = float(sigmoid(logit_pi(evidence.weak, evidence.peaks[0].z)[0]))
    known = with_known_pi(evidence.weak, pi, error)
    return other.logp - known.logp(climb(known, other.z))


def _change(before: float, after: float, gap: float, gap_after: float) -> str:
    words = f"sd of π {share(before, 3)} → {share(after, 3)}"
    if not np.isfinite(gap):
        return words
    if not np.isfinite(gap_after):
        return f"{words}, no answer with exchanged factors left (now {as_likely(gap)})"
    if as_likely(gap) == as_likely(gap_after):
        return words + ", nothing new about which factor is which"
    return f"{words}, this orientation {as_likely(gap_after)} (now {as_likely(gap)})"
