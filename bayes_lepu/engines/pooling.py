r"""Unknown scales, of annotators or of slopes: their estimates, and how a sampler moves.

.. math:: \alpha_j = \bar\alpha + \sigma z_j, \qquad v_j = c\,\bar\alpha + \sigma^c z_j

The deviations z of the density are independent of σ where the data say little about an annotator;
his own coefficients are where they say much. Every deviation is centred by its own share c. Slopes
with an unknown scale, a = σ z, are centred alike: v = σ^c z.

The joint density of deviations and scale has no useful mode: a large σ pays because all z can be
small, and that of slopes is unbounded as σ goes to zero. Scales are put at their marginal mode,

.. math:: \hat\sigma = \arg\max_\sigma \; \log \int p(l \mid \theta)\,
    p(\theta \mid \sigma)\, d\theta + \log p(\sigma)
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.engines.laplace import Gaussian, lower_factor
from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.priors.prior import Prior, Priors
from bayes_lepu.rows.factoring import inverse_curvature


def known_scales(priors: Priors, *, hierarchical: bool = True) -> dict[str, Prior]:
    """The same priors with every unknown scale taken as known: the scale of its own prior.

    With ``hierarchical=False`` those of the annotators' differences only.
    """
    out = {}
    for name, prior in priors.items():
        if prior.hierarchical and hierarchical:
            out[name] = with_scales(prior, {})
        elif prior.form.support == "positive" and prior.family != "known":  # of a scale
            out[name] = Prior("known", loc=prior.known_scale)
        else:
            out[name] = prior
    return out


def with_scales(prior: Prior, scales: Mapping[str, float]) -> Prior:
    """The same prior with these scales of its blocks; those that are not named at their prior's."""
    if prior.parts:
        return replace(prior, parts=tuple(with_scales(part, scales) for part in prior.parts))
    if not isinstance(prior.scale, Prior):
        return prior
    return replace(prior, scale=scales.get(prior.block, prior.scale.known_scale))


class Unknown(NamedTuple):
    """An unknown scale, and what it scales where it is known."""

    name: str  # of the prior that it stands in
    term: str  # the block of columns in that prior
    block: str  # coordinates, by the name of their block
    mine: NDArray[np.bool_]  # which of them
    center: Array
    prior: Prior


def unknown_scales(density: LogDensity) -> list[Unknown]:
    """The unknown scales of a density, in the order of their coordinates."""
    out = []
    for block in density.layout.blocks:
        if block.role == "scale" and block.size:
            deviations = density.layout.slices[f"z_{block.stem}"]
            every = np.ones(deviations.stop - deviations.start, dtype=bool)
            center = np.zeros(every.size)
            out.append(Unknown(block.name, "", f"z_{block.stem}", every, center, block.prior))
        elif block.role == "hyper" and block.scales is not None:
            scales, priors = block.scales, block.prior.parts or (block.prior,)
            terms = scales.names or (density.priors[block.stem].block,)
            out += [
                Unknown(block.stem, term, block.stem, scales.group == g, scales.shift, prior)
                for g, (term, prior) in enumerate(zip(terms, priors, strict=True))
            ]
    return out


def estimate_scales(density: LogDensity, point: Parameters) -> tuple[Priors, Parameters]:
    """The priors with their unknown scales at the marginal mode next to a point, and the mode then.

    The integral is Laplace's: given the mode, an EM step sets each σ² to the mean of squares of
    what it scales *and* their variance, half-normal prior included; then the mode is climbed again.
    """
    unknown = unknown_scales(density)
    sigma = np.array([u.prior.known_scale for u in unknown])
    for _ in range(30):  # eight are usual
        known, before = replace(density, priors=_hold(density.priors, unknown, sigma)), sigma
        z = optimise(known, known.pack(point)).z
        point, squares = known.unpack(z), _variances(known, z)
        sigma = np.array(
            [_step(u, s, known, z, squares) for u, s in zip(unknown, sigma, strict=True)]
        )
        if np.max(np.abs(np.log(sigma / before))) < 0.01:  # far below what the labels show of it
            break
    of_point: dict[str, list[float]] = {}
    for u, s in zip(unknown, sigma, strict=True):
        of_point.setdefault(u.name if u.block.startswith("z_") else f"sigma_{u.name}", []).append(s)
    blocks = {block.name for block in density.layout.blocks if block.dims}
    pooling = {name: np.array(v if name in blocks else v[0]) for name, v in of_point.items()}
    held = _hold(density.priors, unknown, sigma)
    return held, replace(point, pooling={**point.pooling, **pooling})


def _hold(priors: Priors, unknown: list[Unknown], sigma: Array) -> Priors:
    """The priors with these scales."""
    found: dict[str, dict[str, float]] = {}
    for u, s in zip(unknown, sigma, strict=True):
        found.setdefault(u.name, {})[u.term] = float(s)
    return {
        name: prior
        if name not in found
        else with_scales(prior, found[name])
        if prior.hierarchical
        else Prior("known", loc=found[name][""])
        for name, prior in priors.items()
    }


def _step(u: Unknown, sigma: float, density: LogDensity, z: Array, variance: Array) -> float:
    """One EM step: σ at the maximum of log σ - count log σ - squares / 2σ² - σ² / 2 scale²."""
    at = density.layout.slices[u.block]
    squares = float((((z[at] - u.center) ** 2 + variance[at])[u.mine]).sum())
    squares *= sigma**2 if u.block.startswith("z_") else 1.0  # deviations are in units of σ
    free, scale = int(u.mine.sum()) - 1, u.prior.known_scale
    return float(scale * np.sqrt(0.5 * (np.sqrt(free**2 + 4 * squares / scale**2) - free)))


def _variances(density: LogDensity, z: Array) -> Array:
    """Variance of every coordinate at the mode; 0 where an L1 penalty holds it at its centre."""
    several = density.data.n_annotators > 1
    curvature = density.observed_information(z) if several else density.logp_grad_info(z)[2]
    free = ~((density.prior.rate > 0) & (z == density.prior.loc))
    curvature, out = curvature[np.ix_(free, free)], np.zeros(z.size)
    if free.sum() > 400:  # the variance given the others, to spare an inverse
        out[free] = 1.0 / np.maximum(np.diag(curvature), 1e-3)
    else:
        out[free] = np.diag(inverse_curvature(curvature))
    return out


def choose_centring(density: LogDensity, z: Array) -> Array:
    """How far to centre each deviation: the data's share of what is known about it.

    Where the data know an annotator's coefficient, the coefficient itself is nearly independent of
    the scale sigma; where only the pooling does, its standardised deviation is; between the two a
    mixture is best (Papaspiliopoulos et al., 2007, doi:10.1214/088342307000000014).
    """
    total = np.diag(density.observed_information(z))  # of which the pooling contributes 1
    centring = np.zeros(density.dim)
    scaled = density.layout.centred[0] >= 0
    centring[scaled] = 1.0 - 1.0 / np.maximum(total[scaled], 1.0)
    return centring


def to_centred(density: LogDensity, z: Array, centring: Array) -> Array:
    """Sampling coordinates v = c mean + σ^c z of coordinates ``(..., dim)``."""
    (scale, mean), v = density.layout.centred, z.copy()
    v *= np.where(scale >= 0, np.exp(centring * z[..., scale]), 1.0)
    return v + np.where(mean >= 0, centring * v[..., mean], 0.0)


def from_centred(density: LogDensity, v: Array, centring: Array) -> Array:
    """Inverse of `to_centred`."""
    scale, mean = density.layout.centred
    z = v - np.where(mean >= 0, centring * v[..., mean], 0.0)
    return z * np.where(scale >= 0, np.exp(-centring * v[..., scale]), 1.0)


def centred_gaussian(density: LogDensity, near: Gaussian, centring: Array) -> Gaussian:
    """A Gaussian carried over to the sampling coordinates."""
    root = _jacobian(density, near.mean, centring) @ near.root
    return Gaussian(to_centred(density, near.mean, centring), lower_factor(root), near.log_evidence)


def gaussian_of_draws(z: Array, log_evidence: float) -> Gaussian:
    """Mean and covariance of draws ``(draws, dim)``, with a little added to every variance."""
    centred = (z - z.mean(axis=0)) / np.sqrt(len(z) - 1)
    root = lower_factor(np.hstack([centred.T, 1e-5 * np.eye(z.shape[1])]))
    return Gaussian(z.mean(axis=0), root, log_evidence)


def _jacobian(density: LogDensity, z: Array, centring: Array) -> Array:
    """Derivative of `to_centred`."""
    scale, mean = density.layout.centred
    scaled, apart = np.flatnonzero(scale >= 0), np.flatnonzero(mean >= 0)
    jacobian = np.eye(density.dim)
    c, size = centring[scaled], np.exp((centring * z[scale])[scaled])
    jacobian[scaled, scale[scaled]], jacobian[scaled, scaled] = c * size * z[scaled], size
    # What annotators share may be such a slope itself: its row is complete.
    jacobian[apart] += centring[apart, None] * jacobian[mean[apart]]
    return jacobian
