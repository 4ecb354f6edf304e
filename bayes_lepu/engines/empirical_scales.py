r"""Unknown scales of a point estimate, by their marginal likelihood.

.. math:: \hat\sigma = \arg\max_\sigma \; \log \int p(l \mid \theta)\, p(\theta \mid \sigma)\,
    d\theta + \log p(\sigma)

The joint density of slopes and scale has no useful mode (it is unbounded as the scale goes to
zero), so scales are estimated first and held. The integral is Laplace's: given the mode, an EM step
sets :math:`\sigma_g^2` to the mean of squared slopes *and* their variance, half-normal prior
included; then the mode is climbed again.
"""

import numpy as np

from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.engines.pooling import marginal_variance, with_scales
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.slope_scales import slope_scales
from bayes_lepu.priors.prior import Prior, Priors
from bayes_lepu.rows.factoring import inverse_curvature

STEPS = 30
SETTLED = 0.01  # relative change of every scale
MANY_COORDINATES = 400  # above which the variances are those of each slope given the others

Scales = dict[str, dict[str, float]]  # of every block, by the name of its slopes


def estimate_scales(density: LogDensity, point: Parameters) -> Priors:
    """The priors of a density with its unknown scales at the marginal mode next to a point."""
    scales: Scales = {name: {} for name, prior in density.priors.items() if prior.hierarchical}
    held = _hold(density.priors, scales)
    for _ in range(STEPS):
        known = LogDensity(density.spec, density.data, held, jacobian=density.jacobian)
        z = optimise(known, known.pack(point)).z
        point, variance = known.unpack(z), _variances(known, z)
        before, scales = scales, {}
        for name in before:
            at = known.layout.slices[name]
            scales[name] = _step(density.priors[name], z[at], variance[at])
        held = _hold(density.priors, scales)
        if _change(before, scales) < SETTLED:
            break
    return held


def _hold(priors: Priors, scales: Scales) -> Priors:
    return {n: with_scales(p, scales[n]) if n in scales else p for n, p in priors.items()}


def _step(prior: Prior, slopes: Array, variance: Array) -> dict[str, float]:
    """One EM step for the scales of a factor."""
    unknown = slope_scales(prior, slopes.size)
    assert unknown is not None
    squares, out = (slopes - unknown.shift) ** 2 + variance, {}
    for g, of_scale in enumerate(unknown.prior.parts or (unknown.prior,)):
        mine = unknown.group == g
        found = marginal_variance(float(squares[mine].sum()), int(mine.sum()), of_scale.known_scale)
        out[unknown.names[g] if unknown.names else prior.block] = float(np.sqrt(found))
    return out


def _variances(density: LogDensity, z: Array) -> Array:
    """Variance of every coordinate at the mode; 0 where an L1 penalty holds it at 0."""
    free = ~((density.l1_rate > 0) & (z == density.loc))
    curvature = density.logp_grad_info(z)[2][np.ix_(free, free)]
    out = np.zeros(z.size)
    if free.sum() > MANY_COORDINATES:
        out[free] = 1.0 / np.maximum(np.diag(curvature), 1e-3)
    else:
        out[free] = np.diag(inverse_curvature(curvature))
    return out


def _change(before: Scales, after: Scales) -> float:
    """The largest relative change of a scale."""
    changes = [
        abs(np.log(value / before[name][block])) if block in before[name] else np.inf
        for name, blocks in after.items()
        for block, value in blocks.items()
    ]
    return float(max(changes))
