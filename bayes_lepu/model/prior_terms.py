r"""The log prior density of a table of blocks on unconstrained coordinates, in numbers.

.. math:: \log p(z) = \sum_{\text{blocks}} \log f(T(z)) \; [+ \log |\det T'(z)|]

`priors.families` has the forms of log f. `compiled.log_prior` is their sum and its gradient.
"""

import numpy as np
from scipy.special import log_ndtr

from bayes_lepu.links import Array
from bayes_lepu.model.compiled import Terms
from bayes_lepu.model.coordinates import Layout
from bayes_lepu.model.transforms import is_known, ratios_to_logs
from bayes_lepu.priors.families import LOG_ROOT_2PI, Numbers


def prior_terms(layout: Layout, *, jacobian: bool) -> Terms:
    """The log prior as the compiled density takes it."""
    numbers = np.zeros((len(Numbers._fields), layout.dim))
    is_log = np.zeros(layout.dim, dtype=bool)
    groups: list[tuple[int, int, tuple[float, ...]]] = []
    for block in layout.blocks:
        prior, at = block.prior, layout.slices[block.name]
        if is_known(prior):
            continue
        if block.transform == "ratios":
            size = len(prior.concentration) - 1
            kappa = tuple(k - 1 + float(jacobian) for k in prior.concentration)
            groups += [(i, size, kappa) for i in range(at.start, at.stop, size)]
            continue
        for row, values in zip(numbers, prior.numbers, strict=True):
            row[at] = values
        is_log[at] = block.transform == "log"
    longest = max((size for _, size, _ in groups), default=1) + 1
    exponents = [(*k, *[0.0] * (longest - len(k))) for _, _, k in groups]
    loc, precision, rate, nu, wall = numbers
    return Terms(
        loc,
        precision,
        rate,
        nu,
        wall,
        is_log,
        simplex=np.array([g[:2] for g in groups], dtype=np.intp).reshape(-1, 2),
        exponents=np.array(exponents).reshape(-1, longest),
    )


def prior_curvature(z: Array, terms: Terms) -> Array:
    """Minus the Hessian of the log prior (Jacobian included), 0 for Laplace priors."""
    q, nu = terms.precision, terms.nu
    bend = np.where(terms.is_log, 2 * q * np.exp(2 * np.where(terms.is_log, z, 0.0)), q)
    i = np.flatnonzero(nu)
    square = q[i] * (z[i] - terms.loc[i]) ** 2
    bend[i] = (nu[i] + 1) * q[i] * (nu[i] - square) / (nu[i] + square) ** 2
    i = np.flatnonzero(terms.wall)
    u = terms.wall[i] * z[i]
    hazard = np.exp(-0.5 * u * u - LOG_ROOT_2PI - log_ndtr(u))  # φ/Φ
    bend[i] += terms.wall[i] ** 2 * hazard * (hazard + u)
    P = np.diag(bend)
    for (first, size), kappa in zip(terms.simplex, terms.exponents, strict=True):
        at = slice(first, first + size)
        w = np.exp(ratios_to_logs(z[at]))[:-1]
        P[at, at] += kappa.sum() * (np.diag(w) - np.outer(w, w))
    return P
