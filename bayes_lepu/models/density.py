r"""Log posterior density of a model on its free coordinates, with gradient and curvature.

.. math::
    \log p(z \mid l) = \log L(z) + \log p(z) \; [+ \log |\det J|]

The likelihood comes from the compiled row formula, the prior from the table of blocks. With
``jacobian=False`` the maximum is the paper's penalised MLE; with ``jacobian=True`` the density is
that of the unconstrained coordinates, as a sampler needs it: the softmax map of the rates adds
log(γ λ ρ) (SCAR: log c(1-c)). Unknown scales σ have the coordinate log σ, always with its Jacobian.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from bayes_lepu import kernel
from bayes_lepu.data import PUData
from bayes_lepu.links import Array
from bayes_lepu.models import compiled
from bayes_lepu.models.blocks import Block, Layout, logs_to_ratios
from bayes_lepu.models.compiled import Constants, Terms
from bayes_lepu.models.hessian import observed_information
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.models.prior_terms import Extra, prior_curvature, prior_terms
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors import Priors

SMALLEST_RATE = 1e-300  # of a draw that underflowed, so that its logarithm exists


@dataclass(frozen=True, eq=False)
class LogDensity:
    """The log posterior of one model on one data set.

    Parameters
    ----------
    spec : ModelSpec
    data : PUData
    priors : mapping of str to Prior
        One for every parameter that carries one.
    jacobian : bool
        Whether to add the Jacobian of the map to the unconstrained rates.
    """

    spec: ModelSpec
    data: PUData
    priors: Priors
    jacobian: bool = False

    @cached_property
    def layout(self) -> Layout:
        """Where every parameter stands among the coordinates."""
        return Layout.of(self.spec, self.data, self.priors)

    @property
    def free(self) -> NDArray[np.intp]:
        """Positions of the free coordinates in the full vector of the row formula."""
        return self.layout.arrays[0]

    @property
    def blocks(self) -> SimpleNamespace:
        """Slices of the coordinates by slot: ``a``, ``b``, ``alpha``, ``beta``, ``rates``."""
        return self.layout.by_slot

    @property
    def hyper(self) -> tuple[str, ...]:
        """Slopes whose prior scale is unknown, in the order of their log σ coordinates."""
        return tuple(slopes.name for slopes, _ in self.layout.hyper)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.layout.dim

    @property
    def names(self) -> list[str]:
        """Readable names of the coordinates."""
        return self.layout.names

    @cached_property
    def _prior(self) -> tuple[Terms, list[Extra]]:
        return prior_terms(self.layout, jacobian=self.jacobian)

    @property
    def is_compiled(self) -> bool:
        """Whether `constants` holds all of the density."""
        return not self._prior[1]

    @property
    def l1_rate(self) -> Array:
        """Laplace rate C of every coordinate, 0 where the prior is smooth."""
        return self._prior[0].rate

    @property
    def loc(self) -> Array:
        """Centre of every coordinate's prior, where it is a parabola or an absolute value."""
        return self._prior[0].loc

    @cached_property
    def swap_order(self) -> NDArray[np.intp]:
        """Order of the coordinates of S θ."""
        return self.layout.exchange()

    def swap(self, z: Array) -> Array:
        """Coordinates of S θ: (a, b) and (α, β) exchanged."""
        return z[..., self.swap_order]

    def full(self, z: Array) -> Array:
        """The full vector of the row formula, zeros where nothing is free."""
        return self.layout.full(z)

    def unpack(self, z: Array) -> Parameters:
        """Parameters of one point, or of draws of shape ``(..., dim)``."""
        return self.spec.unpack(self.full(z))

    def pack(self, point: Parameters) -> Array:
        """Coordinates of one point (unknown scales at the size of what they scale)."""
        return self.layout.coordinates(self.spec.pack(point))

    @cached_property
    def constants(self) -> Constants:
        """Everything the compiled density needs."""
        place, base, scale, deviation = self.layout.arrays
        return Constants(
            X=self.data.X,
            kind=self.data.kind,
            form=self.spec.n_weights,
            log_w=np.array(self.spec.fixed_log_w),
            place=place,
            base=base,
            scale=scale,
            deviation=deviation,
            spread=self.layout.spread,
            terms=self._prior[0],
        )

    def logp(self, z: Array) -> float:
        """Log density."""
        return self.logp_grad(z)[0]

    def logp_grad(self, z: Array) -> tuple[float, Array]:
        """Log density and gradient."""
        value, grad = compiled.logp_grad(z, self.constants)
        return value + self._add_extras(z, grad), grad

    def logp_grad_info(self, z: Array) -> tuple[float, Array, Array]:
        """Log density, gradient, and expected information plus prior precision."""
        full, k = self.full(z), self.constants
        p = self.data.p
        log_w = compiled.log_weights(k, full[2 * p + 2], full[2 * p + 3])
        ll, full_grad, info = kernel.loglik_grad_info(
            self.data.X,
            self.data.kind,
            full[:p],
            full[p],
            full[p + 1 : 2 * p + 1],
            full[2 * p + 1],
            log_w,
        )
        grad = compiled.collect(full_grad, z, k)
        value = ll + compiled.log_prior(z, k.terms, grad) + self._add_extras(z, grad)
        return value, grad, self._pulled(info, z) + self.prior_precision(z)

    def fold(self, z: Array) -> tuple[float, Array, float, Array]:
        """Log density at θ and at S θ, each with its gradient with respect to z."""
        here, grad, there, grad_there = compiled.fold(z, self.swap_order, self.constants)
        if self.is_compiled:
            return here, grad, there, grad_there
        by_swapped = np.zeros_like(grad)
        there += self._add_extras(z[self.swap_order], by_swapped)
        here += self._add_extras(z, grad)
        return here, grad, there, grad_there + by_swapped[self.swap_order]

    def loglik(self, z: Array) -> float:
        """Log-likelihood alone."""
        point = self.unpack(z)
        rows = kernel.loglik_rows(
            self.data.X, self.data.kind, point.a, point.b, point.alpha, point.beta, point.log_w
        )
        return float(rows.sum())

    def observed_information(self, z: Array, *, with_prior: bool = True) -> Array:
        """Minus the Hessian of the log likelihood, by default of the log density."""
        info = self._pulled(observed_information(self.data.X, self.data.kind, self.unpack(z)), z)
        return info + self.prior_precision(z) if with_prior else info

    def log_prior(self, z: Array) -> float:
        """Log prior density alone (Jacobian included), up to a constant."""
        grad = np.zeros(self.dim)
        return compiled.log_prior(z, self._prior[0], grad) + self._add_extras(z, grad)

    def prior_precision(self, z: Array) -> Array:
        """Minus the Hessian of the log prior (Jacobian included), 0 for Laplace priors."""
        return prior_curvature(z, *self._prior)

    def sample_prior(self, count: int, rng: np.random.Generator) -> Array:
        """Coordinates drawn from the prior, ``(count, dim)``."""
        z = np.empty((count, self.dim))
        hyper = {slopes.name: scale for slopes, scale in self.layout.hyper}
        for block in self.layout.blocks:
            at = self.layout.slices[block.name]
            if block.role == "hyper" or at.stop == at.start:
                continue
            prior = block.prior
            if block.name in hyper:  # its unknown scale is drawn first, one for each draw
                scale = hyper[block.name]
                sigma = scale.prior.sample(rng, (count, 1))
                z[:, self.layout.slices[scale.name]] = np.log(sigma)
                unit = replace(prior, scale=1.0, loc=0.0)
                z[:, at] = prior.loc + sigma * unit.sample(rng, (count, block.size))
            elif block.transform == "ratios":
                z[:, at] = self._sample_ratios(block, count, rng)
            else:
                drawn = prior.sample(rng, (count, block.size))
                z[:, at] = np.log(drawn) if block.transform == "log" else drawn
        return z

    def _sample_ratios(self, block: Block, count: int, rng: np.random.Generator) -> Array:
        """Coordinates of rates drawn from their prior."""
        if block.prior.form.support == "unit":
            c = block.prior.sample(rng, (count, block.size))
            return np.log(c) - np.log1p(-c)
        w = np.maximum(block.prior.sample(rng, (count,)), SMALLEST_RATE)
        return logs_to_ratios(np.log(w))

    def _add_extras(self, z: Array, grad: Array) -> float:
        return sum(extra.add(z, grad) for extra in self._prior[1])

    def _pulled(self, info: Array, z: Array) -> Array:
        """A curvature of the full vector as one of the coordinates."""
        info = info[np.ix_(self.free, self.free)]
        if self.data.n_annotators == 1:  # the coordinates are the entries, before the scales
            out = np.zeros((self.dim, self.dim))
            out[: len(info), : len(info)] = info
            return out
        J = self.layout.jacobian(z)
        return J.T @ info @ J
