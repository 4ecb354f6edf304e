r"""How much of π is the prior: power scaling, and other scales of the intercepts' priors.

Draws are reweighted, not sampled again: by :math:`p(\theta)^{\alpha-1}` for the power scaling
(Kallioinen et al. 2024, https://doi.org/10.1007/s11222-023-10366-5), and by the ratio of two
densities for intercepts with priors of two thirds and five thirds of the scale, and rates with
priors as much more or less certain. Where the weights
leave fewer than a tenth of the draws' effective size the Gaussian approximation is refitted
instead.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.diagnostics import thresholds
from bayes_lepu.diagnostics.levels import interval
from bayes_lepu.diagnostics.records import Aspect, Check, not_applicable, not_computed
from bayes_lepu.diagnostics.subject import Subject, share_positive
from bayes_lepu.diagnostics.thresholds import grade, graded
from bayes_lepu.inference.laplace import gaussian_at
from bayes_lepu.inference.optimizers import optimise
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.variables import annotator_values
from bayes_lepu.priors.prior import INTERCEPTS, SMALLEST, Prior

if TYPE_CHECKING:
    from bayes_lepu.diagnostics.evidence import Evidence

INTERCEPT_FACTORS = (2 / 3, 5 / 3)
FLAT_SCALE = 1.5  # stands for the scale of a prior that has none
LEAST_SHARE = 0.1
POWER_DRAWS = 1000
LEAST_DRAWS = 50  # for tails to be seen


@dataclass(frozen=True)
class Alternative:
    """π with the scales of the intercepts' priors times a factor."""

    factor: float
    mean: float
    lower: float
    upper: float


def check_power_scaling(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Power-scaling sensitivity of π to the prior and to the likelihood."""
    name = "power scaling"
    if subject.fit.is_point:
        return [not_applicable(name, "A point estimate has no posterior.")]
    if subject.pi_draws.size < LEAST_DRAWS:
        return [not_computed(name, f"Fewer than {LEAST_DRAWS} draws.")]
    prior, likelihood = power_scaling(subject)
    status = grade(prior, thresholds.POWER_SCALING)
    if status == "failed" and likelihood >= prior:
        # Both matter: a conflict or simply an informative posterior, not a silent likelihood.
        status = "weak"
    return [
        graded(
            name,
            prior,
            thresholds.POWER_SCALING,
            f"Sensitivity of π to a stronger or weaker prior {prior:.3f}, to more or fewer data "
            f"{likelihood:.3f}.",
            "π moves with the prior: report it under a second, defensible prior.",
            status=status,
            bears_on=(Aspect.PRIOR,),
        )
    ]


def power_scaling(subject: Subject) -> tuple[float, float]:
    """`arviz_stats.psense` of π for the prior and for the likelihood."""
    import xarray as xr
    from arviz_stats import psense

    chains, draws = subject.pi_draws.shape
    step = max(1, chains * draws // POWER_DRAWS)
    pi = subject.pi_draws[:, ::step]
    z = subject.coordinates.reshape(chains, draws, -1)[:, ::step]
    density, dims, flat = subject.fit.density, ("chain", "draw"), z.reshape(-1, z.shape[-1])
    logprior = log_prior(density, flat)
    loglik = np.array([density.logp(point) for point in flat]) - logprior
    tree = xr.DataTree.from_dict(
        {
            "/posterior": xr.Dataset({"pi": (dims, pi)}),
            "/log_prior": xr.Dataset({"prior": (dims, logprior.reshape(pi.shape))}),
            "/log_likelihood": xr.Dataset({"l": (dims, loglik.reshape(pi.shape))}),
        }
    )
    prior, likelihood = (
        float(psense(tree, var_names=["pi"], group=group)["pi"])
        for group in ("prior", "likelihood")
    )
    return prior, likelihood


def log_prior(density: LogDensity, z: Array) -> Array:
    """Log prior of every draw, up to a constant."""
    return np.array([density.log_prior(zi) for zi in z])


def check_intercepts(subject: Subject, evidence: "Evidence") -> list[Check]:
    """π under narrower and wider priors of the intercepts and rates."""
    name = "intercept prior"
    if subject.fit.spec.certain:
        return [not_applicable(name, "t = h in this model.")]
    if subject.too_large:
        return [not_computed(name, subject.too_large)]
    found = other_intercepts(subject)
    own = float(np.mean(subject.pi_draws))
    shift = max(abs(f.mean - own) for f in found)
    bounds = (0.05, 0.10)
    if subject.fit.is_point:
        words = ", ".join(f"{f.mean:.2f} with scales times {f.factor:.2g}" for f in found)
    else:
        words = ", ".join(
            f"{f.lower:.2f} to {f.upper:.2f} with scales times {f.factor:.2g}" for f in found
        )
    return [
        graded(
            name,
            shift,
            bounds,
            f"Under other priors of intercepts and rates π would be {words} (here {own:.2f}).",
            "The level of t follows these priors: state them with the result.",
            threshold="shift of π {}",
            bears_on=(Aspect.LEVEL, Aspect.PRIOR),
        )
    ]


def other_intercepts(subject: Subject) -> list[Alternative]:
    """π with priors of intercepts and rates that are narrower and wider than the fit's own."""
    return [
        _refitted(subject, factor) if subject.fit.is_point else _reweighted(subject, factor)
        for factor in INTERCEPT_FACTORS
    ]


def _scaled(prior: Prior, factor: float) -> Prior:
    """The same with its scale times a factor; of one that has no scale a normal.

    Of rates, what a prior adds to the uniform one counts as so many rows more or fewer.
    """
    if prior.concentration:
        rows = np.subtract(prior.concentration, 1.0)
        return replace(prior, concentration=tuple(1 + np.where(rows > 0, rows / factor**2, rows)))
    if isinstance(prior.scale, float):
        return prior.with_scale(float(np.clip(factor * prior.scale, SMALLEST, 1 / SMALLEST)))
    return Prior("normal", scale=factor * FLAT_SCALE)


def _levels(subject: Subject) -> tuple[str, ...]:
    return (*INTERCEPTS, subject.fit.spec.rates_name)


def _with_intercepts(subject: Subject, factor: float, *, jacobian: bool) -> LogDensity:
    levels = _levels(subject)
    priors = {n: _scaled(p, factor) if n in levels else p for n, p in subject.fit.priors.items()}
    return LogDensity(subject.fit.spec, subject.data, priors, jacobian=jacobian)


def _refitted(subject: Subject, factor: float) -> Alternative:
    density = _with_intercepts(subject, factor, jacobian=False)
    z = optimise(density, density.pack(subject.inside(subject.point))).z
    pi = share_positive(density.unpack(z), subject.data)
    return Alternative(factor, pi, pi, pi)


def _reweighted(subject: Subject, factor: float) -> Alternative:
    values = annotator_values(subject.fit.density, subject.pivoted.take_flat())
    log_ratio = np.zeros(subject.pi_draws.size)
    exact = True
    for name in _levels(subject):
        prior = subject.fit.priors.get(name)
        if prior is None:
            continue
        exact &= isinstance(prior.scale, float) or bool(prior.concentration)
        if exact:
            other, x = _scaled(prior, factor), values[name]
            log_ratio += other.entry_logpdf(x) - prior.entry_logpdf(x)
    w = np.exp(log_ratio - log_ratio.max())
    w /= w.sum()
    pi = subject.pi_draws.ravel()
    if not exact or 1 / float(w @ w) < LEAST_SHARE * w.size:
        density = _with_intercepts(subject, factor, jacobian=True)
        z = gaussian_at(density, density.pack(subject.inside(subject.point))).sample(
            np.random.default_rng(0), 1000
        )
        pi, _ = subject.fit.class_prior_draws(density.unpack(z))
        return Alternative(factor, float(pi.mean()), *interval(pi))
    order = np.argsort(pi)
    low, high = np.interp([0.025, 0.975], np.cumsum(w[order]), pi[order])
    return Alternative(factor, float(w @ pi), float(low), float(high))
