r"""Unknown scales of annotators' differences or of slopes: estimates, and centring for a sampler.

.. math:: \alpha_j = \bar\alpha + \sigma z_j, \qquad v_j = c\,\bar\alpha + \sigma^c z_j

Where the data have little information about an annotator, the deviations z are nearly independent
of σ; where they have much, the annotator's coefficients are. So every deviation is centred partly,
by its own share c. Slopes with an unknown scale, a = σ z, are centred in the same way: v = σ^c z.

The joint density of deviations and scale has no useful mode: with a large σ all z can be small, and
for slopes it is unbounded as σ goes to zero. Scales are therefore set to their marginal mode,

.. math:: \hat\sigma = \arg\max_\sigma \; \log \int p(l \mid \theta)\,
    p(\theta \mid \sigma)\, d\theta + \log p(\sigma)
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.engines.laplace import Gaussian, lower_factor
from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.priors.prior import Prior, Priors
from bayes_lepu.rows.factoring import inverse_curvature


def known_scales(
    priors: Priors, sizes: Mapping[str, Array] | None = None, *, hierarchical: bool = True
) -> dict[str, Prior]:
    """The priors with unknown scales replaced by ``sizes``, or by the scales of their priors.

    ``sizes`` are by the names of the scales (``sigma_a``). With ``hierarchical=False`` only the
    scales of the annotators' differences are replaced, and those of slopes stay unknown.
    """
    sizes, out = sizes or {}, {}
    for name, prior in priors.items():
        if prior.hierarchical and hierarchical:
            parts = [part for part in prior.parts or (prior,) if part.hierarchical]
            terms = list(dict.fromkeys(part.block for part in parts))
            known = np.atleast_1d(sizes.get(f"sigma_{name}", []))
            out[name] = with_scales(prior, dict(zip(terms, known.tolist(), strict=False)))
        elif prior.form.support == "positive" and prior.family != "known":  # of a scale
            out[name] = Prior("known", loc=float(sizes.get(name, prior.known_scale)))
        else:
            out[name] = prior
    return out


def with_scales(prior: Prior, scales: Mapping[str, float]) -> Prior:
    """The prior with these scales of its terms; other terms get the scale of their prior."""
    if prior.parts:
        return replace(prior, parts=tuple(with_scales(part, scales) for part in prior.parts))
    if not isinstance(prior.scale, Prior):
        return prior
    return replace(prior, scale=scales.get(prior.block, prior.scale.known_scale))


def estimate_scales(density: LogDensity, point: Parameters) -> tuple[Priors, Parameters]:
    """The priors with unknown scales at their marginal mode next to a point; the mode given these.

    The integral is by Laplace's method. Given the mode, an EM step sets each σ² to the mean of the
    squared coefficients plus their variances (and the half-normal prior); then the mode is updated.
    """
    layout = density.layout
    scales = [b for b in layout.blocks if b.role in ("scale", "hyper") and b.size]
    places = np.concatenate([np.r_[layout.slices[b.name]] for b in scales])
    parts = [part for b in scales for part in b.prior.parts or (b.prior,)]
    width = np.array([part.known_scale for part in parts])  # of the half-normal priors
    ends = np.cumsum([b.size for b in scales])[:-1]

    def named(sigma: Array) -> dict[str, Array]:
        values = zip(scales, np.split(np.log(sigma), ends), strict=True)
        return {block.name: block.natural(logs) for block, logs in values}

    sigma = width
    for _ in range(30):  # eight are usual
        known = replace(density, priors=known_scales(density.priors, named(sigma)))
        point = known.unpack(optimise(known, known.pack(point)).z)
        at_mode = replace(point, pooling={**point.pooling, **named(sigma)})
        before, sigma = sigma, _em_step(density, density.pack(at_mode), places, width)
        if np.max(np.abs(np.log(sigma / before))) < 0.01:  # far below what the labels show of it
            break
    found = replace(point, pooling={**point.pooling, **named(sigma)})
    return known_scales(density.priors, found.pooling), found


def _em_step(density: LogDensity, z: Array, places: NDArray[np.intp], width: Array) -> Array:
    """Every σ at the maximum of log σ - count log σ - Σ squares / 2σ² - σ² / 2 width²."""
    # The others are at their mode given the scales, a Laplace prior's at its centre for good.
    free = ~((density.prior.rate > 0) & (z == density.prior.loc))
    free[places] = False
    squares, scaled_by = z**2, density.layout.centred[0]  # in units of σ
    curvature = density.observed_information(z)[np.ix_(free, free)]
    squares[free] += np.diag(inverse_curvature(curvature))
    total = np.array([squares[scaled_by == k].sum() for k in places]) * np.exp(2 * z[places])
    rest = np.array([(scaled_by == k).sum() for k in places]) - 1
    return width * np.sqrt(0.5 * (np.sqrt(rest**2 + 4 * total / width**2) - rest))


def choose_centring(density: LogDensity, z: Array) -> Array:
    """How far to centre each deviation: the data's share of the information about it.

    If the data identify an annotator's coefficient, the coefficient is nearly independent of the
    scale sigma. If only the pooling does, its standardised deviation is. In between, partial
    centring is best (Papaspiliopoulos et al., 2007, doi:10.1214/088342307000000014).
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
    """A Gaussian transformed to the sampling coordinates."""
    root = _jacobian(density, near.mean, centring) @ near.root
    return Gaussian(to_centred(density, near.mean, centring), lower_factor(root), near.log_evidence)


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
