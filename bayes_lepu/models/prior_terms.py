r"""The log prior density of a table of blocks on unconstrained coordinates.

.. math:: \log p(z) = \sum_{\text{blocks}} \log f(T(z)) \; [+ \log |\det T'(z)|]

Parabolas, absolute values, Student t, half-normal scales, Beta and Dirichlet are handed to the
compiled density as numbers (`compiled.Terms`). Every other family is evaluated by its own functions
and the chain rule (`Extra`).
"""

from dataclasses import dataclass

import numpy as np

from bayes_lepu.links import Array
from bayes_lepu.models.blocks import Block
from bayes_lepu.models.compiled import Terms
from bayes_lepu.models.coordinates import Layout
from bayes_lepu.models.transforms import is_known, ratios_to_logs
from bayes_lepu.priors.prior import Prior

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
    scales: list[tuple[int, float]] = []  # coordinate, scale of the half-normal
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
        elif block.transform == "log" and all(s.family == "halfnormal" for s in _each(block)):
            scales += [(at.start + i, s.known_scale) for i, s in enumerate(_each(block))]
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
        positive=np.array([i for i, _ in scales], dtype=np.intp),
        positive_scale=np.array([scale for _, scale in scales]),
    )
    return terms, extras


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
    for extra in extras:
        P[extra.at, extra.at] += extra.curvature(z)
    return P
