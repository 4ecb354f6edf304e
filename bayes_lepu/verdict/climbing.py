r"""Maximising the log density under a restriction: the tool of profiles and of refits.

Quasi-Newton steps in units in which the curvature at the start is one, so that a climb needs one
curvature, however many steps it takes: it costs as much as fifty gradients of a hundred columns.
The objective ``held`` is :math:`\log p(z) - \tfrac K2 (q(z) - q_0)^2` with q = logit π. Its maximum
is the profile of π exactly, at the value of π it attains (which is close to the one asked for).

Over many rows the curvature is that of a weighted subsample: it sets the units, while values and
gradients, which say where the maximum is, come from all rows.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines.subsample import subsample
from bayes_lepu.links import Array
from bayes_lepu.model.compiled import collect
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import INTERCEPTS, SLOPES, Prior
from bayes_lepu.rows import outside_moments
from bayes_lepu.rows.factoring import inverse, solve

WEAK_SLOPE_SCALE = 2.5  # of the weak ridge, on standardised columns
ENOUGH = (
    0.03  # length of the gradient in units of one sd: half its square, in nats, is left to gain
)
CURVATURE_ROWS = 20_000  # of which a curvature is good to a per cent
DAMPING = 1e-3  # of the curvature on the diagonal: some directions have none at all


@dataclass(frozen=True, eq=False)
class Objective:
    """What is maximised.

    Attributes
    ----------
    slopes : function of coordinates
        Value and gradient.
    curvature : function of coordinates
        A positive semi-definite matrix that is near minus the Hessian.
    """

    slopes: Callable[[Array], tuple[float, Array]]
    curvature: Callable[[Array], Array]


def climb(objective: Objective, start: Array, *, max_iterations: int = 200) -> tuple[Array, float]:
    """The local maximum next to ``start``, and its value."""
    curvature = objective.curvature(start)
    root = np.sqrt(np.maximum(np.diag(curvature), 1e-8))
    damped = curvature / np.outer(root, root) + DAMPING * np.eye(root.size)
    L = np.linalg.cholesky(damped)

    def place(u: Array) -> Array:
        return start + solve_triangular(L, u, lower=True, trans=1) / root

    def loss(u: Array) -> tuple[float, Array]:
        value, grad = objective.slopes(place(u))
        if not np.isfinite(value):
            return np.inf, np.zeros_like(u)
        return -value, -solve_triangular(L, grad / root, lower=True)

    options = {"gtol": ENOUGH, "norm": 2.0, "maxiter": max_iterations}
    found = minimize(loss, np.zeros_like(start), jac=True, method="BFGS", options=options)
    return place(found.x), -float(found.fun)


def curvature_of(density: LogDensity) -> Callable[[Array], Array]:
    """The curvature of a log density, from at most `CURVATURE_ROWS` rows."""
    if density.data.n > CURVATURE_ROWS and density.data.n_annotators == 1:
        density = replace(density, data=subsample(density.data, CURVATURE_ROWS))
    return lambda z: density.logp_grad_info(z)[2]


def held(density: LogDensity, target: float, strength: float) -> Objective:
    """The log density with logit π held close to ``target``."""
    curvature = curvature_of(density)

    def slopes(z: Array) -> tuple[float, Array]:
        value, grad = density.logp_grad(z)
        q, slope = logit_pi(density, z)
        off = q - target
        return value - 0.5 * strength * off**2, grad - strength * off * slope

    def curved(z: Array) -> Array:
        slope = logit_pi(density, z)[1]
        return curvature(z) + strength * np.outer(slope, slope)

    return Objective(slopes, curved)


def logit_pi(density: LogDensity, z: Array) -> tuple[float, Array]:
    """Logit of π = mean of t over the rows, and its gradient in the coordinates."""
    k = density.constants
    rows = density.data.as_rows
    total, positive, slope, _, _ = outside_moments(rows, k.links, density.point(z))
    pi = float(np.clip(positive / total, 1e-12, 1 - 1e-12))
    gradient = collect(slope / (total * pi * (1 - pi)), z, k)
    return float(np.log(pi) - np.log1p(-pi)), gradient


class Role(StrEnum):
    """Which answer a maximum stands for."""

    AS_LABELLED = "as labelled"
    EXCHANGED = "exchanged"
    OTHER = "other"


@dataclass(frozen=True, eq=False)
class Peak:
    """A local maximum of the weak density.

    Attributes
    ----------
    role : Role
    z : array
        Coordinates in the weak density.
    logp : float
    point : Parameters
        On standardised columns.
    """

    role: Role
    z: Array
    logp: float
    point: Parameters


def share_positive(point: Parameters, data: PUData) -> float:
    """π at a point: the mean of t over the population."""
    return float(np.average(point.t(data.X), weights=data.row_weights))


def weak_density(spec: ModelSpec, data: PUData) -> LogDensity:
    """A model's likelihood with slopes N(0, 2.5²), the rest flat or uniform."""
    priors = dict.fromkeys(SLOPES, Prior("normal", scale=WEAK_SLOPE_SCALE))
    priors |= dict.fromkeys(INTERCEPTS, Prior("flat"))
    return LogDensity(spec, data, spec.complete_priors(priors, None))


@dataclass(frozen=True, eq=False)
class Local:
    """Data information against prior precision at one point.

    Attributes
    ----------
    z : array
    names : list of str
    data : (dim, dim) array
        Expected information of the data, likelihood only.
    prior : (dim, dim) array
        Precision of the prior (of the default prior where the fit's own is flat).
    pi_gradient : array
        Gradient of π in the coordinates.
    """

    z: Array
    names: list[str]
    data: Array
    prior: Array
    pi_gradient: Array

    @cached_property
    def covariance(self) -> Array:
        """Inverse of data information plus prior precision."""
        return inverse(self.data + self.prior)

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Draws of the Gaussian with this covariance."""
        values, vectors = np.linalg.eigh(self.covariance)
        noise = rng.normal(size=(count, len(values))) * np.sqrt(np.maximum(values, 0.0))
        return self.z + noise @ vectors.T

    def sd(self, gradient: Array, extra: Array | float = 0.0) -> float:
        """Delta-method sd of a function, with ``extra`` information added to that at hand."""
        total = self.data + self.prior + extra
        return float(np.sqrt(max(float(gradient @ solve(total, gradient)), 0.0)))
