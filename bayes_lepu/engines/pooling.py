r"""Unknown scales, of annotators or of slopes: the coordinates in which a sampler moves.

.. math:: \alpha_j = \bar\alpha + \sigma z_j, \qquad v_j = c\,\bar\alpha + \sigma^c z_j

The deviations z of the density are independent of σ where the data say little about an annotator;
his own coefficients are where they say much. Every deviation is centred by its own share c. Slopes
with an unknown scale, a = σ z, are centred alike: v = σ^c z.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.engines.laplace import Gaussian, lower_factor
from bayes_lepu.engines.lbfgs import lbfgs_free
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.priors.prior import Prior, Priors
from bayes_lepu.rows.factoring import inverse_curvature

SETTLING_STEPS = 8  # of the search for the scales: they change by less than 1 % afterwards


def known_scales(priors: Priors, *, hierarchical: bool = True) -> dict[str, Prior]:
    """The same priors with every unknown scale taken as known: the scale of its own prior.

    Parameters
    ----------
    hierarchical : bool
        Whether scales of slopes' priors are meant too, or those of the annotators' differences
        only.
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
    return prior.with_scale(scales.get(prior.block, prior.scale.known_scale))


def is_pooled(density: LogDensity) -> bool:
    """Whether the density has unknown scales."""
    return bool(density.layout.scaled)


def settle_scales(density: LogDensity, z: Array) -> Array:
    """Move the scales from the joint mode, which overstates them, to their marginal mode.

    At the joint mode a large sigma pays because all deviations z can be small. An EM step sets
    sigma² to the mean of squared deviations *and* their variance given sigma (half-normal prior
    and Jacobian included), and climbs again with the scales held.
    """
    z = z.copy()
    scales = density.layout.scaled
    free = np.ones(z.size, dtype=bool)
    free[[at for at, _, _ in scales]] = False
    for _ in range(SETTLING_STEPS):
        covariance = np.diag(inverse_curvature(density.observed_information(z)))
        for at, block, prior in scales:
            squares = np.exp(2 * z[at]) * float(np.sum(z[block] ** 2 + covariance[block]))
            variance = marginal_variance(squares, block.size, prior.known_scale)
            z[block] *= np.exp(z[at]) / np.sqrt(variance)  # the coefficients stay where they are
            z[at] = 0.5 * np.log(variance)
        z = lbfgs_free(density, z, free)
    return z


def marginal_variance(squares: float, count: int, scale: float) -> float:
    """σ² at the maximum of log σ - count log σ - squares / 2σ² - σ² / 2 scale²."""
    free = count - 1
    return 0.5 * scale**2 * float(np.sqrt(free**2 + 4 * squares / scale**2) - free)


def choose_centring(density: LogDensity, z: Array) -> Array:
    """How far to centre each deviation: the data's share of what is known about it.

    Where the data know an annotator's coefficient, the coefficient itself is nearly independent of
    the scale sigma; where only the pooling does, its standardised deviation is; between the two a
    mixture is best (Papaspiliopoulos et al., 2007, doi:10.1214/088342307000000014).
    """
    total = np.diag(density.observed_information(z))  # of which the pooling contributes 1
    centring = np.zeros(density.dim)
    deviations = _deviations(density)[0]
    centring[deviations] = 1.0 - 1.0 / np.maximum(total[deviations], 1.0)
    return centring


def _deviations(density: LogDensity) -> tuple[NDArray[np.intp], ...]:
    """Coordinates that unknown scales multiply, of what they deviate from (-1: 0), of log σ."""
    layout = density.layout
    _, base, scale, deviation = layout.arrays
    stretch = layout.stretch[0]
    free, own = scale >= 0, stretch >= 0
    slopes, first = np.unique(base[own], return_index=True)
    nothing = np.full(slopes.size, -1, dtype=np.intp)
    return (
        np.r_[slopes, deviation[free]],
        np.r_[nothing, base[free]],
        np.r_[stretch[own][first], scale[free]],
    )


def to_centred(density: LogDensity, z: Array, centring: Array) -> Array:
    """Sampling coordinates v = c mean + sigma^c z in place of the deviations z."""
    at, mean, scale = _deviations(density)
    c, v = centring[at], z.copy()
    v[..., at] = np.exp(c * z[..., scale]) * z[..., at]
    apart = mean >= 0
    v[..., at[apart]] += c[apart] * v[..., mean[apart]]
    return v


def from_centred(density: LogDensity, v: Array, centring: Array) -> Array:
    """Inverse of `to_centred`."""
    at, mean, scale = _deviations(density)
    c, z, apart = centring[at], v.copy(), mean >= 0
    z[..., at[apart]] -= c[apart] * v[..., mean[apart]]
    z[..., at] *= np.exp(-c * v[..., scale])
    return z


def centred_gaussian(density: LogDensity, near: Gaussian, centring: Array) -> Gaussian:
    """A Gaussian carried over to the sampling coordinates."""
    root = _jacobian(density, near.mean, centring) @ near.root
    return Gaussian(to_centred(density, near.mean, centring), lower_factor(root), near.log_evidence)


def gaussian_of_draws(density: LogDensity, z: Array, log_evidence: float) -> Gaussian:
    """Mean and covariance of draws ``(draws, dim)``; of pooled ones in sampling coordinates."""
    if not is_pooled(density):
        return Gaussian(z.mean(axis=0), _root_of(z), log_evidence)
    centring = choose_centring(density, z.mean(axis=0))
    v = to_centred(density, z, centring)
    mean = from_centred(density, v.mean(axis=0), centring)
    jacobian, root = _jacobian(density, mean, centring), _root_of(v)
    try:
        back = np.linalg.inv(jacobian) @ root
    except np.linalg.LinAlgError:  # a scale that vanished: no way back from its coordinates
        back = np.full_like(root, np.nan)
    if not np.all(np.isfinite(back)):
        return Gaussian(z.mean(axis=0), _root_of(z), log_evidence)
    return Gaussian(mean, lower_factor(back), log_evidence)


def _root_of(draws: Array) -> Array:
    """Lower factor of the draws' covariance, with a little added to every variance."""
    centred = (draws - draws.mean(axis=0)) / np.sqrt(len(draws) - 1)
    return lower_factor(np.hstack([centred.T, 1e-5 * np.eye(draws.shape[1])]))


def _jacobian(density: LogDensity, z: Array, centring: Array) -> Array:
    """Derivative of `to_centred`."""
    at, mean, scale = _deviations(density)
    c = centring[at]
    size, apart = np.exp(c * z[scale]), mean >= 0
    jacobian = np.eye(density.dim)
    jacobian[at, scale], jacobian[at, at] = c * size * z[at], size
    # What annotators share may be such a slope itself: its row comes first.
    jacobian[at[apart]] += c[apart, None] * jacobian[mean[apart]]
    return jacobian
