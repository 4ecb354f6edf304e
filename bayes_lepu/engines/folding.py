r"""Sampling across the swap of the two factors, exactly.

Let S swap (a, b) and (α, β). The folded density :math:`q(\theta) \propto p(\theta)+p(S\theta)` is
symmetric, so chains cannot be stuck in different orientations. A draw from q becomes a draw from p
by returning θ with probability

.. math:: w(\theta) = \frac{p(\theta)}{p(\theta) + p(S\theta)},

and Sθ otherwise. Three steps turn draws of q into an answer:

1. **Pivot**: swap the factors of a draw where that brings it closer to a reference mode.
   Convergence is judged on pivoted draws.
2. **Probability**: the mean of w over the pivoted draws is the posterior probability of the
   reference's orientation, before any rule.
3. **Orient**: either by the density (keep each draw with probability w, otherwise swap it, which
   gives p exactly), or by a rule for the whole mode (resample the pivoted draws with weights w).

A sampler that does not fold leaves chains in one orientation, in the other, or in both. Their
shares :math:`n_A, n_B` need not be the posterior probabilities :math:`Z_A, Z_B`. The pivoted draws
become draws of the folded density by the weights

.. math:: W = \frac{1}{n_A\,w/Z_A + n_B\,(1-w)/Z_B}, \qquad
    Z_A \propto \sum W w, \quad Z_B \propto \sum W (1-w),

where the masses are found by iteration (bridge sampling; Meng and Wong, 1996).
"""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logsumexp

from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.engines import orientation
from bayes_lepu.engines.laplace import TRUSTED_K
from bayes_lepu.errors import OWN_CODE, ConvergenceWarning
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity


@dataclass(frozen=True, eq=False)
class Sample:
    """Oriented draws in coordinates."""

    z: Array  # (chain, draw, dim)
    # By name, (chain, draw): ``mirrored`` marks draws that the sampler made on the other side of
    # the pivot, ``exchanged`` those whose factors were swapped against it.
    stats: Mapping[str, Array] = field(default_factory=dict)
    probability: float | None = None  # of this orientation before any rule
    overruled: bool = False  # whether the priors decided instead of the rule


@dataclass(frozen=True, eq=False)
class Folded:
    """Draws of the folded density after pivoting."""

    z: Array  # (chain, draw, dim)
    mirrored: NDArray[np.bool_]  # whether the sampler's draw was swapped to get there
    log_odds: Array  # log w/(1-w): also where one order has next to no mass

    @property
    def weight(self) -> Array:
        """Probability w of every pivoted draw."""
        return expit(self.log_odds)

    @property
    def probability(self) -> float:
        """Posterior probability of the reference's orientation."""
        return float(self.weight.mean())


def naming_log_odds(density: LogDensity, z: Array) -> float:
    """Log p(θ) - log p(Sθ): log odds of θ among {θ, Sθ}."""
    here, _, there, _ = density.fold(z)
    return float(here - there)


def pivot(density: LogDensity, z: Array, reference: Array) -> Folded:
    """Every draw on the side of the reference mode, with the odds of that side."""
    z, mirrored = on_one_side(density, z, reference)
    return Folded(z, mirrored, _log_odds(density, z))


def on_one_side(density: LogDensity, z: Array, reference: Array) -> tuple[Array, NDArray[np.bool_]]:
    """The draws on the side of the reference mode, and which of them were swapped."""
    X = density.data.evenly(1000).X
    draws = np.concatenate(z)  # of all chains
    swapped = density.swap(draws)
    target = _profile(density, reference[None], X)
    for _ in range(2):
        mirrored = _distance(density, swapped, X, target) < _distance(density, draws, X, target)
        pivoted = np.where(mirrored[:, None], swapped, draws)
        # The mean of the pivoted draws represents the mode better than its top does.
        target = _profile(density, pivoted, X).mean(axis=0, keepdims=True)
    return pivoted.reshape(z.shape), mirrored.reshape(z.shape[:-1])


def _log_odds(density: LogDensity, z: Array) -> Array:
    """Log odds of w for every draw; with very many rows, on which w hardly varies between draws,
    the log odds of the mean of some w.
    """
    flat = np.concatenate(z)
    if density.is_symmetric:  # the likelihood cancels
        odds = [density.log_prior(here) - density.log_prior(density.swap(here)) for here in flat]
        return np.reshape(odds, z.shape[:-1])
    # For 40 million rows times draws w takes about a second; of more, eight are looked at first.
    if density.data.n_all * len(flat) > 40_000_000 or not density.data.in_memory:
        some = flat[evenly_spaced(len(flat), 8)]
        few = np.array([naming_log_odds(density, point) for point in some])
        if np.ptp(expit(few)) < 0.01 or not density.data.in_memory:
            return np.full(z.shape[:-1], logsumexp(log_expit(few)) - logsumexp(log_expit(-few)))
    return np.reshape([naming_log_odds(density, point) for point in flat], z.shape[:-1])


def resampled(weight: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Indices (chain, draw) that resample each chain's draws with these weights, in order."""
    rows = []
    for w in weight:
        if np.ptp(w) < 1e-12:
            rows.append(np.arange(w.size))
            continue
        edges = np.cumsum(w) / w.sum()
        points = (rng.random() + np.arange(w.size)) / w.size
        rows.append(np.minimum(np.searchsorted(edges, points), w.size - 1))
    return np.array(rows)


def label_draws(
    density: LogDensity,
    z: Array,
    stats: Mapping[str, Array],
    reference: Array,
    rule: str,
    rng: np.random.Generator,
) -> Sample:
    """Orient every draw by the density, or all draws of a mode by a rule.

    If the priors differ between the factors and give the rule's orientation less than 5 %, the
    density decides instead of the rule.
    """
    if not density.can_exchange:
        return Sample(z, stats)
    if "mirrored" in stats:  # the draws are on one side already
        folded = Folded(z, stats["mirrored"] > 0, _log_odds(density, z))
    else:
        folded = pivot(density, z, reference)
        stats = {**stats, "mirrored": folded.mirrored.astype(float)}
    asked = orientation.settled_by(density.spec, density.data, rule) == "rule"
    named = folded
    if asked and _rule_swaps(density, folded.z, rule):
        named = Folded(density.swap(folded.z), ~folded.mirrored, -folded.log_odds)
    if asked and named.probability >= 0.05:
        index = resampled(named.weight, rng)
        kept = np.take_along_axis(named.z, index[..., None], axis=1)
        stats = {name: np.take_along_axis(v, index, axis=1) for name, v in stats.items()}
        return Sample(kept, stats, named.probability)
    exchanged = rng.random(folded.weight.shape) >= folded.weight
    labelled = np.where(exchanged[..., None], density.swap(folded.z), folded.z)
    probability = folded.probability
    if exchanged.mean() > 0.5:  # the other orientation is the more probable one: the pivot
        exchanged, probability = ~exchanged, 1 - probability
    stats = {**stats, "exchanged": exchanged.astype(float)}
    return Sample(labelled, stats, probability, overruled=asked)


def _rule_swaps(density: LogDensity, z: Array, rule: str) -> bool:
    """Whether the rule swaps the factors in most of the mode's draws."""
    flat = z.reshape(-1, z.shape[-1])
    some = flat[evenly_spaced(len(flat), 400)]
    rows = density.data.some(20_000)  # sizes of predictors need no more
    votes = [orientation.rule_swaps(density.unpack(point), rows, rule) for point in some]
    return float(np.mean(votes)) > 0.5


def _profile(density: LogDensity, z: Array, X: Array) -> Array:
    """Both logistic factors over some rows, ``(draws, 2, rows)``."""
    point = density.unpack(z)
    return np.stack([point.t(X), point.swap().t(X)], axis=-2)


def _distance(density: LogDensity, z: Array, X: Array, target: Array) -> Array:
    out = np.empty(len(z))
    for start in range(0, len(z), 1000):
        block = slice(start, start + 1000)
        out[block] = ((_profile(density, z[block], X) - target) ** 2).sum(axis=(-1, -2))
    return out


# Draws of samplers that do not fold ---------------------------------------------------------------


def label_unfolded(
    density: LogDensity,
    z: Array,
    stats: Mapping[str, Array],
    reference: Array,
    rule: str,
    rng: np.random.Generator,
) -> Sample:
    """Draws ``(chain, draw, dim)`` of the unfolded posterior, oriented as `fit` does."""
    if not density.can_exchange:
        return Sample(z, stats)
    folded = pivot(density, z, reference)
    log_weight = log_side_weights(folded.log_odds, folded.mirrored)
    weight = np.exp(log_weight - log_weight.max())
    effective = 0.0 if has_heavy_tail(log_weight) else weight.sum() ** 2 / (weight**2).sum()
    own = np.where(folded.mirrored, -folded.log_odds, folded.log_odds)
    lost = own < math.log(1e-6)  # odds that a side of any mass hardly ever has
    useful = min(effective / weight.size, np.mean(~lost))
    _warn_lost(useful, int((lost.mean(axis=1) > 0.5).sum()), len(lost))
    index = resampled(weight.reshape(1, -1), rng)[0]
    by_draw = {**stats, "mirrored": folded.mirrored.astype(float)}
    taken = {name: v.reshape(-1)[index].reshape(weight.shape) for name, v in by_draw.items()}
    drawn = folded.z.reshape(-1, z.shape[-1])[index].reshape(z.shape)
    return label_draws(density, drawn, taken, reference, rule, rng)


def log_side_weights(log_odds: Array, mirrored: NDArray[np.bool_]) -> Array:
    """Log W of pivoted draws, from log w/(1-w) and from whether they came from the other side."""
    log_odds = np.clip(log_odds, -1e6, 1e6)  # signs in the priors can leave no mass at all
    log_w, log_not_w = log_expit(log_odds), log_expit(-log_odds)
    there = float(np.mean(mirrored))
    if there in (0.0, 1.0):
        return -(log_not_w if there else log_w)
    log_here, log_there = math.log1p(-there), math.log(there)
    log_mass = np.array([log_here, log_there])
    for _ in range(200):  # ten are enough unless the sides hardly overlap
        weight = -np.logaddexp(log_here - log_mass[0] + log_w, log_there - log_mass[1] + log_not_w)
        log_mass = np.array([logsumexp(weight + log_w), logsumexp(weight + log_not_w)])
        log_mass -= logsumexp(log_mass)
    return weight


def has_heavy_tail(log_weight: Array) -> bool:
    """Whether the weights have too heavy a tail to be used, by their Pareto k.

    The threshold is that of `arviz.loo`, which follows the number of draws (Vehtari et al., 2024).
    """
    from arviz_stats.base import array_stats

    if log_weight.size < 400:  # a tail needs some draws to have a shape
        return False
    try:
        k = array_stats.psislw(-log_weight.reshape(-1))[1]  # takes log densities of rows
    except ValueError:  # the largest weights are equal: there is no tail
        return False
    # k is NaN where the weights are equal but for rounding.
    return bool(k > min(TRUSTED_K, 1 - 1 / math.log10(log_weight.size)))


def _warn_lost(effective: float, lost: int, chains: int) -> None:
    """Warn if chains stayed in the wrong order of t and s."""
    if effective < 0.1:
        text = (
            "The chains stayed in one order of t and s, and reweighting would rest on a few draws. "
            "Use lepu.fit, which samples both orders."
        )
    elif lost:
        text = (
            f"{lost} of {chains} chains stayed in an order of t and s that has next to no "
            "posterior mass. Their draws are swapped and weighted, and the answer rests on the "
            "other chains. Use lepu.fit, which samples both orders."
        )
    else:
        return
    warnings.warn(text, ConvergenceWarning, skip_file_prefixes=OWN_CODE)
