r"""Log posterior density of a model on its free coordinates, with gradient and curvature.

.. math::
    \log p(z \mid l) = \log L(z) + \log p(z) \; [+ \log |\det J|]
        \; [+ \log p(\hat\pi, \hat c \mid z)]

With ``jacobian=False`` the maximum is the paper's penalised MLE; with ``jacobian=True`` the density
is that of the unconstrained coordinates, as a sampler needs it: the softmax map of the rates adds
log(γ λ ρ) (SCAR: log c(1-c)). Unknown scales σ have the coordinate log σ, always with its Jacobian.
An external class prior π or label frequency c, with a standard error, is one more normal
observation.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import compress
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from bayes_lepu import rows as row_sums
from bayes_lepu.data.pu_data import PUData, Sums
from bayes_lepu.factors.curves import LOG_ROOT_2PI
from bayes_lepu.factors.factor import ratios_to_logs
from bayes_lepu.links import Array, sigmoid
from bayes_lepu.model import compiled
from bayes_lepu.model.blocks import logit
from bayes_lepu.model.compiled import Constants, Terms
from bayes_lepu.model.coordinates import Layout
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import Numbers, Prior, Priors
from bayes_lepu.rows import Links, Point, Rows, make_rows, outside_moments


@dataclass(frozen=True, eq=False)
class LogDensity:
    """The log posterior of one model on one data set."""

    spec: ModelSpec
    data: PUData
    priors: Priors  # one for every parameter that carries one
    jacobian: bool = False  # whether to add that of the map to the unconstrained rates

    def __getstate__(self) -> dict[str, Any]:
        """The state for pickling, without addresses of this process."""
        return {name: value for name, value in vars(self).items() if name != "constants"}

    @cached_property
    def layout(self) -> Layout:
        """The positions of all parameters among the coordinates."""
        return Layout.of(self.spec, self.data, self.priors)

    @property
    def blocks(self) -> SimpleNamespace:
        """Slices of the coordinates by slot: ``a``, ``b``, ``alpha``, ``beta``, ``rates``."""
        return self.layout.by_slot

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.layout.dim

    @property
    def names(self) -> list[str]:
        """Readable names of the coordinates."""
        return self.layout.names

    @cached_property
    def prior(self) -> Terms:
        """The log prior density in numbers, one of each kind for every coordinate."""
        return prior_terms(self.layout, jacobian=self.jacobian)

    @cached_property
    def is_kinked(self) -> bool:
        """Whether any coordinate has a Laplace prior (L1), whose density has a kink."""
        return bool(self.prior.rate.any())

    @property
    def can_exchange(self) -> bool:
        """Whether t and s can be swapped: SPM and PsychM with equal columns.

        The density may differ between the two points.
        """
        one = self.spec.exchangeable and self.data.n_annotators == 1
        return one and self.layout.mirrored

    @property
    def is_symmetric(self) -> bool:
        """Whether the likelihood is the same with t and s swapped; the priors may still differ."""
        return self.spec.symmetric and self.data.swap_symmetric

    @cached_property
    def swap_order(self) -> NDArray[np.intp]:
        """Order of the coordinates of S θ."""
        return self.layout.exchange()

    def swap(self, z: Array) -> Array:
        """Coordinates of S θ: (a, b) and (α, β) swapped."""
        return z[..., self.swap_order]

    def with_masks(
        self, class_mask: NDArray[np.bool_], selection_mask: NDArray[np.bool_]
    ) -> "LogDensity":
        """The density with only some of the columns in each factor."""
        data, priors = self.data, dict(self.priors)
        masks = {"a": (data.class_mask, class_mask), "alpha": (data.selection_mask, selection_mask)}
        for block in self.layout.values:
            if parts := priors[block.parameter].parts:  # only slopes have them
                had, has = masks[block.slot]
                priors[block.parameter] = Prior("columns", parts=tuple(compress(parts, has[had])))
        masked = replace(data, class_mask=class_mask, selection_mask=selection_mask)
        return replace(self, data=masked, priors=priors)

    def _entries(self, full: Array) -> Any:
        """The entries of full vectors by name; of one annotator without their axis."""
        at = self.layout.order.entries(full)
        return at if self.data.n_annotators > 1 else at.of_annotator(0)

    def unpack(self, z: Array) -> Parameters:
        """Parameters of one point, or of draws of shape ``(..., dim)``."""
        at, propensity = self._entries(self.layout.full(z)), self.spec.propensity
        log_w = propensity.log_rates(at.uv[..., list(propensity.coordinate_rates)])
        return Parameters(
            at.a,
            at.b,
            at.alpha,
            at.beta,
            np.broadcast_to(log_w, (*at.beta.shape, 3)),
            epsilon=np.asarray(sigmoid(at.e)) if self.spec.false_marks else None,
            pooling={
                block.parameter: self.layout.natural(block, z)
                for block in self.layout.blocks
                if block.role not in ("value", "deviation")
            },
            link=propensity.link,
            of_class=self.spec.of_class,
        )

    def pack(self, point: Parameters) -> Array:
        """Coordinates of a point or of draws; unknown scales are the RMS of their slopes."""
        propensity = self.spec.propensity
        full = np.zeros((*point.b.shape, self.layout.order.size))
        at = self._entries(full)
        at.a[...], at.b[...] = point.a, point.b
        at.alpha[...], at.beta[...] = point.alpha, point.beta
        at.uv[..., list(propensity.coordinate_rates)] = propensity.coordinates(point.log_w)
        if self.spec.false_marks:
            at.e[...] = logit(0.01 if point.epsilon is None else point.epsilon)
        return self.layout.coordinates(full, point.pooling)

    @property
    def links(self) -> Links:
        """The links of the row formula."""
        return Links(self.spec.propensity.link, self.spec.of_class.link)

    @cached_property
    def constants(self) -> Constants:
        """Everything the compiled density needs."""
        log_sigma, mean = self.layout.centred
        free, data = self.spec.n_rates > 0, self.data
        rates = self.spec.propensity.log_rates(np.zeros(self.spec.n_rates))
        none = make_rows(np.empty((0, data.p)), data.labels[:0]) if data.is_sparse else None
        return Constants(
            rows=none or data.as_rows,
            links=self.links.codes,
            class_rates=self.spec.of_class.log_rates(),
            rates=np.where(np.isneginf(rates), -np.inf, 0.0) if free else rates,
            has_free_rates=free,
            false_marks=self.spec.false_marks,
            symmetric=self.is_symmetric,
            linear=self.layout.terms,
            log_sigma=log_sigma,
            mean=mean,
            terms=self.prior,
        )

    def point(self, z: Array) -> Point:
        """The point of the row formula."""
        return compiled.python_point_of(self.layout.full(z), self.constants)

    def _total(self, sums: Callable[..., Sums], z: Array) -> Sums:
        """Sums over all rows at a point."""
        return self.data.total(partial(sums, links=self.links, point=self.point(z)))

    def logp(self, z: Array) -> float:
        """Log density."""
        return self.logp_grad(z)[0]

    def logp_grad(self, z: Array) -> tuple[float, Array]:
        """Log density and gradient."""
        if self.data.in_kernel:
            value, grad = compiled.logp_grad(z, self.constants)
            return value + self._add_known(z, grad), grad
        return self._with_prior(z, *self._total(row_sums.loglik_grad, z))

    def _with_prior(self, z: Array, loglik: float, full_grad: Array) -> tuple[float, Array]:
        """Log density and gradient from the log-likelihood and its gradient in the full vector."""
        grad = compiled.collect(full_grad, z, self.constants)
        value = loglik + compiled.log_prior(z, self.prior, grad)
        return value + self._add_known(z, grad), grad

    def _add_known(self, z: Array, grad: Array) -> float:
        """Log density of the external figures; adds its gradient."""
        if self.data.is_closed:
            return 0.0
        value, full_grad, _ = known_terms(self.data, self.links, self.point(z))
        grad += compiled.collect(full_grad, z, self.constants)
        return value

    def logps(self, z: Array) -> Array:
        """Log density of several points ``(count, dim)``, in one pass over all rows."""
        if self.data.in_kernel or not self.data.is_closed:
            return np.array([self.logp(point) for point in z])
        at = [self.point(point) for point in z]
        (values,) = self.data.total(partial(_logliks, links=self.links, points=at))
        return values + [self.log_prior(point) for point in z]

    def logp_grad_info(self, z: Array) -> tuple[float, Array, Array]:
        """Log density, gradient, and a positive semi-definite curvature plus prior precision.

        The curvature of the likelihood is the expected information for one annotator, that of the
        complete data (classes known) for several.
        """
        if self.data.in_kernel:
            found, info = self.logp_grad(z), self._total(row_sums.information, z)[0]
        else:
            loglik, full_grad, info = self._total(row_sums.loglik_grad_info, z)
            found = self._with_prior(z, loglik, full_grad)
        return *found, self._pulled(info + self._known_info(z), z) + self.prior_precision(z)

    def _known_info(self, z: Array) -> Array | float:
        """Information of the external figures, in the full vector."""
        if self.data.is_closed:
            return 0.0
        roots = known_terms(self.data, self.links, self.point(z))[2]
        return roots.T @ roots

    def fold(self, z: Array) -> tuple[float, Array, float, Array]:
        """Log density at θ and at S θ, each with its gradient with respect to z."""
        order = self.swap_order
        if self.data.in_kernel and self.data.is_closed:
            return compiled.fold(z, order, self.constants)
        there, grad_there = self.logp_grad(z[order])
        return *self.logp_grad(z), there, grad_there[order]

    def observed_information(self, z: Array, *, with_prior: bool = True) -> Array:
        """Minus the Hessian of the log likelihood, by default of the log density."""
        info = self._total(row_sums.observed_information, z)[0]
        pulled = self._pulled(info + self._known_info(z) if with_prior else info, z)
        if self.layout.has_scales:
            pulled -= self.layout.bend(self._total(row_sums.loglik_grad, z)[1], z)
        return pulled + self.prior_precision(z) if with_prior else pulled

    def log_prior(self, z: Array) -> float:
        """Log prior density alone (Jacobian included), up to a constant."""
        return compiled.log_prior(z, self.prior, np.zeros(self.dim))

    def prior_precision(self, z: Array) -> Array:
        """Minus the Hessian of the log prior (Jacobian included), 0 for Laplace priors."""
        return prior_curvature(z, self.prior)

    def sample_prior(self, count: int, rng: np.random.Generator) -> Array:
        """Coordinates drawn from the prior, ``(count, dim)``."""
        z = np.empty((count, self.dim))
        for block in (block for block in self.layout.blocks if block.size):
            size = (count,) if block.is_simplex else (count, block.size)
            drawn = block.prior.sample(rng, size)
            drawn = np.maximum(drawn, 1e-300) if block.is_simplex else drawn  # rates that underflow
            single = not block.dims and not block.is_simplex
            z[:, self.layout.slices[block.name]] = block.coordinates(
                drawn[:, 0] if single else drawn
            )
        return z

    def _pulled(self, info: Array, z: Array) -> Array:
        """A curvature in the coordinates, from one in the full vector."""
        if self.data.n_annotators == 1 and not self.layout.has_scales:  # coordinates are entries
            return info[np.ix_(self.layout.free, self.layout.free)]
        J = self.layout.jacobian(z)
        return J.T @ info @ J


def known_terms(data: PUData, links: Links, point: Point) -> tuple[float, Array, Array]:
    r"""An external class prior or label frequency as one more observation.

    .. math::
        \hat\pi \sim N(\pi(\theta), e), \quad \pi = \sum_i w_i t_i / \sum_i w_i; \qquad
        \hat c \sim N(c(\theta), e), \quad c = \sum_i w_i s_i t_i / \sum_i w_i t_i .

    With several annotators c is the mean over them. Log density and gradient in the full vector of
    the row formula, and roots R of its information R'R, one for each of the two that is known.
    """
    sums = data.total(partial(outside_moments, links=links, point=point))
    total, positive, d_positive, marked, d_marked = sums
    positive = max(float(positive), np.finfo(float).tiny)  # of a class that no row has
    c = float(marked.mean()) / positive
    figures = (positive / total, c)
    slopes = (d_positive / total, (d_marked.mean(axis=0) - c * d_positive) / positive)
    value, grad, roots = 0.0, np.zeros_like(d_positive), []
    for figure, slope, (known, error) in zip(figures, slopes, data.outside, strict=True):
        if not np.isnan(known):
            residual = (known - figure) / error
            value -= 0.5 * residual**2
            grad += residual / error * slope
            roots.append(slope / error)
    return value, grad, np.array(roots)


def row_terms(parameters: Parameters, data: PUData) -> tuple[Array, Array]:
    """Log-likelihood of every row (not weighted) and P(y=1 | x, labels), both ``(..., n)``.

    The probability is 1 for a mark that cannot be false; audited rows have their class.
    """
    flat, links = parameters.take_flat(), Links(parameters.link, parameters.of_class.link)
    loglik, positive = np.empty((flat.b.size, data.n)), np.empty((flat.b.size, data.n))
    for i in range(flat.b.size):
        point = flat.take(i).point
        loglik[i], positive[i] = row_sums.row_terms(data.as_rows, links, point)
    shape = (*parameters.b.shape, data.n)
    return loglik.reshape(shape), positive.reshape(shape)


def _logliks(rows: Rows, links: Links, points: list[Point]) -> Sums:
    """Log-likelihood at several points; a module-level function, so that Dask can send it."""
    return (np.array([row_sums.loglik_grad(rows, links, point)[0] for point in points]),)


def prior_terms(layout: Layout, *, jacobian: bool) -> Terms:
    """The log prior as the compiled density takes it."""
    numbers = np.zeros((len(Numbers._fields), layout.dim))
    is_log = np.zeros(layout.dim, dtype=bool)
    groups: list[tuple[int, int]] = []
    exponents: list[tuple[float, ...]] = []
    for block in layout.blocks:
        prior, at = block.prior, layout.slices[block.name]
        if prior.is_known:
            continue
        if block.transform == "ratios":
            kappa = tuple(k - 1 + float(jacobian) for k in prior.concentration)
            starts = range(at.start, at.stop, len(kappa) - 1)
            groups += [(i, len(kappa) - 1) for i in starts]
            exponents += [kappa for _ in starts]
            continue
        for row, values in zip(numbers, prior.numbers, strict=True):
            row[at] = values
        is_log[at] = block.transform == "log"
    longest = max(map(len, exponents), default=2)
    powers = np.array([(*k, *[0.0] * (longest - len(k))) for k in exponents]).reshape(-1, longest)
    loc, precision, rate, nu, wall = numbers
    places = np.array(groups, dtype=np.intp).reshape(-1, 2)
    return Terms(loc, precision, rate, nu, wall, is_log, places, powers)


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
