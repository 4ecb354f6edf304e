r"""The log prior density of a table of blocks on unconstrained coordinates.

.. math:: \log p(z) = \sum_{\text{blocks}} \log f(T(z)) \; [+ \log |\det T'(z)|]

Parabolas, absolute values, Student t, Beta, Dirichlet and the families of scales are handed to the
compiled density as numbers (`compiled.Terms`). Every other family is evaluated by its own functions
and the chain rule (`Extra`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, expit

from bayes_lepu.links import Array
from bayes_lepu.models.blocks import Block
from bayes_lepu.models.compiled import Terms
from bayes_lepu.models.coordinates import Layout
from bayes_lepu.models.transforms import is_known, ratios_to_logs
from bayes_lepu.priors.prior import Prior
from bayes_lepu.priors.scale_families import inverse_slab

SCALES = ("halfnormal", "half-student-t", "half-cauchy")  # those that the compiled density knows
STEP = 1e-5  # of central differences where a family has no closed curvature on its coordinates


@dataclass(frozen=True)
class Extra:
    """A block whose prior has no compiled form."""

    block: Block
    at: slice
    jacobian: bool

    def add(self, z: Array, grad: Array) -> float:
        """Log density of the block; adds its gradient."""
        value, d = self._value_grad(z[self.at])
        grad[self.at] += d
        return value

    def curvature(self, z: Array) -> Array:
        """Minus the Hessian."""
        x = z[self.at]
        if self.block.transform == "identity":
            return np.diag(self.block.prior.form.curvature(self.block.prior, x))
        steps = STEP * np.eye(x.size)
        H = np.array([self._value_grad(x + e)[1] - self._value_grad(x - e)[1] for e in steps])
        return -0.5 * (H + H.T) / (2 * STEP)

    def _value_grad(self, z: Array) -> tuple[float, Array]:
        prior, form = self.block.prior, self.block.prior.form
        if self.block.transform == "identity":
            return prior.logpdf(z), prior.grad(z)
        if self.block.transform == "log":
            x = np.exp(z)
            return prior.logpdf(x) + float(z.sum()), prior.grad(x) * x + 1.0
        if form.support == "unit":  # every coordinate is a logit of its own
            x = 1.0 / (1.0 + np.exp(-z))
            slope = x * (1 - x)
            value, d = prior.logpdf(x), prior.grad(x) * slope
            if self.jacobian:
                value, d = value + float(np.log(slope).sum()), d + 1 - 2 * x
            return value, d
        log_w = ratios_to_logs(z)
        w = np.exp(log_w)
        by_w = w * prior.grad(w)
        value, d = prior.logpdf(w), by_w[:-1] - w[:-1] * by_w.sum()
        if self.jacobian:
            value, d = value + float(log_w.sum()), d + 1 - w[:-1] * w.size
        return value, d


def prior_terms(layout: Layout, *, jacobian: bool) -> tuple[Terms, list[Extra]]:
    """The compiled part of the log prior, and the blocks that are not part of it."""
    loc, precision, rate = (np.zeros(layout.dim) for _ in range(3))
    students: list[tuple[int, float, float]] = []  # coordinate, scale, degrees of freedom
    groups: list[tuple[int, int, tuple[float, ...]]] = []
    # Coordinate, prior, and the coordinate of a global scale, which comes before its block.
    scales: dict[str, list[tuple[int, Prior, int]]] = {family: [] for family in SCALES}
    extras: list[Extra] = []
    for block in layout.blocks:
        prior, at = block.prior, layout.slices[block.name]
        if is_known(prior):
            continue
        exponents = prior.form.exponents(prior) if block.transform == "ratios" else None
        if block.transform == "identity" and (form := prior.form.parabola(prior)) is not None:
            loc[at], precision[at], rate[at] = form
        elif block.transform == "identity" and prior.family == "student-t":
            loc[at] = prior.loc
            students += [(i, prior.known_scale, prior.nu) for i in range(at.start, at.stop)]
        elif exponents is not None:
            size = len(exponents) - 1
            kappa = tuple(k + float(jacobian) for k in exponents)
            groups += [(i, size, kappa) for i in range(at.start, at.stop, size)]
        elif block.transform == "log" and all(s.family in SCALES for s in _each(block)):
            for i, of_scale in enumerate(_each(block)):
                scales[of_scale.family].append((at.start + i, of_scale, at.start - 1))
        else:
            extras.append(Extra(block, at, jacobian))
    longest = max((size for _, size, _ in groups), default=1) + 1
    terms = Terms(
        loc=loc,
        precision=precision,
        rate=rate,
        student=np.array([i for i, _, _ in students], dtype=np.intp),
        student_scale=np.array([scale for _, scale, _ in students]),
        student_nu=np.array([nu for _, _, nu in students]),
        simplex=np.array([g[:2] for g in groups], dtype=np.intp).reshape(-1, 2),
        exponents=np.array([(*k, *[0.0] * (longest - len(k))) for _, _, k in groups]).reshape(
            -1, longest
        ),
        **_of_scales(scales),
    )
    return terms, extras


def _of_scales(found: Mapping[str, list[tuple[int, Prior, int]]]) -> dict[str, Any]:
    """The families of scales as numbers of the compiled density."""

    def places(values: list[int]) -> NDArray[np.intp]:
        return np.array(values, dtype=np.intp)

    normal, heavy, cauchy = (found[family] for family in SCALES)
    tied = [s.hierarchical for _, s, _ in cauchy]
    return {
        "positive": places([i for i, _, _ in normal]),
        "positive_scale": np.array([s.known_scale for _, s, _ in normal]),
        "heavy": places([i for i, _, _ in heavy]),
        "heavy_scale": np.array([s.known_scale for _, s, _ in heavy]),
        "heavy_nu": np.array([s.nu for _, s, _ in heavy]),
        "cauchy": places([i for i, _, _ in cauchy]),
        "cauchy_slab": np.array([inverse_slab(s) for _, s, _ in cauchy]),
        "cauchy_scale": np.array([1.0 if s.hierarchical else s.known_scale for _, s, _ in cauchy]),
        "cauchy_top": places(
            [top if free else -1 for (_, _, top), free in zip(cauchy, tied, strict=True)]
        ),
    }


def _each(block: Block) -> tuple[Prior, ...]:
    """The prior of every coordinate."""
    return block.prior.parts or (block.prior,) * block.size


def prior_curvature(z: Array, terms: Terms, extras: list[Extra]) -> Array:
    """Minus the Hessian of the log prior (Jacobian included), 0 for Laplace priors."""
    P = np.diag(terms.precision)
    i, nu = terms.student, terms.student_nu
    square = ((z[i] - terms.loc[i]) / terms.student_scale) ** 2
    P[i, i] += (nu + 1) * (nu - square) / ((nu + square) * terms.student_scale) ** 2
    for (first, size), kappa in zip(terms.simplex, terms.exponents, strict=True):
        at = slice(first, first + size)
        w = np.exp(ratios_to_logs(z[at]))[:-1]
        P[at, at] += kappa.sum() * (np.diag(w) - np.outer(w, w))
    for i, scale in zip(terms.positive, terms.positive_scale, strict=True):
        P[i, i] += 2 * np.exp(2 * z[i]) / scale**2
    for i, scale, nu in zip(terms.heavy, terms.heavy_scale, terms.heavy_nu, strict=True):
        P[i, i] += 2 * (nu + 1) * _share(2 * (z[i] - np.log(scale)) - np.log(nu))
    if terms.cauchy.size:
        _add_cauchy(P, z, terms)
    for extra in extras:
        P[extra.at, extra.at] += extra.curvature(z)
    return P


def _add_cauchy(P: Array, z: Array, terms: Terms) -> None:
    """Minus the second derivatives of half-Cauchy scales, by log σ and by an unknown log τ."""
    i, top, free = terms.cauchy, terms.cauchy_top, terms.cauchy_top >= 0
    tau = np.where(free, np.exp(z[top]), terms.cauchy_scale)
    bend = 4 * _share(2 * (z[i] - np.log(tau)))
    P[i, i] += bend + 2 * (np.exp(z[i]) * terms.cauchy_slab) ** 2
    i, top, bend, x = i[free], top[free], bend[free], (tau * terms.cauchy_slab)[free] / np.sqrt(2)
    P[i, top] -= bend
    P[top, i] -= bend
    inverse = 1 / (np.sqrt(np.pi) * erfcx(x))
    slope = 2 * (x - inverse)  # of log erfcx
    np.add.at(P, (top, top), bend + x * slope + x**2 * (2 + 2 * slope * inverse))


def _share(log_odds: Array) -> Array:
    """P (1 - p) of log odds."""
    return expit(log_odds) * expit(-log_odds)
