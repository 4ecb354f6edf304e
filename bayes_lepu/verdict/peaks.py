"""Maxima of the likelihood under a weak ridge, π and the information at a point."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.links import Array
from bayes_lepu.model.compiled import collect
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import INTERCEPTS, SLOPES, Prior
from bayes_lepu.rows import outside_moments
from bayes_lepu.rows.factoring import inverse, solve

WEAK_SLOPE_SCALE = 2.5  # of the weak ridge on standardised columns: log odds of ±5 over ±1 sd


class Role(StrEnum):
    """Which answer a maximum stands for."""

    AS_LABELLED = "as labelled"
    EXCHANGED = "exchanged"
    OTHER = "other"


@dataclass(frozen=True, eq=False)
class Peak:
    """A local maximum of the weak density: its coordinates there, and its point.

    The point is on standardised columns.
    """

    role: Role
    z: Array
    logp: float
    point: Parameters


@dataclass(frozen=True, eq=False)
class Local:
    """Information of the data and precision of the prior at one point z, and the slope of π.

    The precision is that of the default prior where the fit's own is flat.
    """

    z: Array
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
        return delta_sd(self.data + self.prior + extra, gradient)


def delta_sd(information: Array, gradient: Array) -> float:
    """Standard deviation of a function with this gradient."""
    return float(np.sqrt(max(float(gradient @ solve(information, gradient)), 0.0)))


def weak_density(spec: ModelSpec, data: PUData) -> LogDensity:
    """A model's likelihood with slopes N(0, 2.5²), the rest flat or uniform."""
    priors = dict.fromkeys(SLOPES, Prior("normal", scale=WEAK_SLOPE_SCALE))
    priors |= dict.fromkeys(INTERCEPTS, Prior("flat"))
    return LogDensity(spec, data, spec.complete_priors(priors, None))


def share_positive(point: Parameters, data: PUData) -> float:
    """π at a point: the mean of t over the population."""
    return float(np.average(point.t(data.X), weights=data.weight))


def logit_pi(density: LogDensity, z: Array) -> tuple[float, Array]:
    """Logit of π = mean of t over the rows, and its gradient in the coordinates."""
    k = density.constants
    total, positive, slope, _, _ = outside_moments(
        density.data.as_rows, density.links, density.point(z)
    )
    pi = float(np.clip(positive / total, 1e-12, 1 - 1e-12))
    gradient = collect(slope / (total * pi * (1 - pi)), z, k)
    return float(np.log(pi) - np.log1p(-pi)), gradient
