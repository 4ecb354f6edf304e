r"""Sampling across the exchange of the two factors, exactly.

Let S exchange (a, b) and (α, β). The folded density :math:`q(\theta) \propto p(\theta)+p(S\theta)`
is symmetric, so chains cannot be stuck in different mirror images, and a draw from q becomes a draw
from p by returning θ with probability

.. math:: w(\theta) = \frac{p(\theta)}{p(\theta) + p(S\theta)},

and Sθ otherwise. Three steps turn draws of q into an answer:

1. **Pivot**: exchange the factors of a draw where that brings it closer to a reference mode.
   Convergence is judged on pivoted draws.
2. **Orientation probability**: the mean of w over the pivoted draws is the posterior probability
   that the reference's naming of the factors is the right one, before any rule.
3. **Label**: either by the density (keep each draw with probability w, else exchange it, which
   gives p exactly), or by a rule for the whole mode at once (condition on the naming: resample the
   pivoted draws with weights w, which leaves them as they are when the priors are exchangeable).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logsumexp

from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity


def naming_log_odds(density: LogDensity, z: Array) -> float:
    """Log p(θ) - log p(Sθ): log odds of θ among {θ, Sθ}."""
    here, _, there, _ = density.fold(z)
    return float(here - there)


@dataclass(frozen=True, eq=False)
class Folded:
    """Draws of the folded density after pivoting.

    Attributes
    ----------
    z : (chain, draw, dim) array
        Pivoted coordinates.
    mirrored : (chain, draw) bool array
        Whether the sampler's draw was exchanged to get there.
    log_odds : (chain, draw) array
        log w/(1-w) of the pivoted draw: also where one order has no mass to speak of.
    """

    z: Array
    mirrored: NDArray[np.bool_]
    log_odds: Array

    @property
    def weight(self) -> Array:
        """W of every pivoted draw."""
        return expit(self.log_odds)

    @property
    def probability(self) -> float:
        """Posterior probability of the reference's naming of the factors."""
        return float(self.weight.mean())


def pivot(density: LogDensity, z: Array, reference: Array) -> Folded:
    """Bring every draw to the side of the reference mode, and tell the odds of that side."""
    return odds_of(density, *on_one_side(density, z, reference))


def odds_of(density: LogDensity, z: Array, mirrored: NDArray[np.bool_]) -> Folded:
    """The odds of the side on which these draws are."""
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
        # The mean of the pivoted draws represents the mode better than its peak does.
        target = _profile(density, pivoted, X).mean(axis=0, keepdims=True)
    return pivoted.reshape(z.shape), mirrored.reshape(z.shape[:-1])


def _log_odds(density: LogDensity, z: Array) -> Array:
    """Of every draw; over very many rows, where w hardly differs, those of the mean of some w."""
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


def keep_or_exchange(
    density: LogDensity, folded: Folded, rng: np.random.Generator
) -> tuple[Array, NDArray[np.bool_]]:
    """Exact draws of p, and which of them were exchanged against the pivoted ones."""
    exchanged = rng.random(folded.weight.shape) >= folded.weight
    return np.where(exchanged[..., None], density.swap(folded.z), folded.z), exchanged


def condition_on_naming(weight: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Indices (chain, draw) that resample each chain's draws with weights w, in order."""
    rows = []
    for w in weight:
        if np.ptp(w) < 1e-12:
            rows.append(np.arange(w.size))
            continue
        edges = np.cumsum(w) / w.sum()
        points = (rng.random() + np.arange(w.size)) / w.size
        rows.append(np.minimum(np.searchsorted(edges, points), w.size - 1))
    return np.array(rows)


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
