r"""Log posterior density of a model on its free coordinates, with gradient and curvature.

.. math::
    \log p(z \mid l) = \log L(z) - \tfrac12 \sum_j P_j (z_j - m_j)^2 - \sum_j C_j |z_j - m_j|
        + \sum_k (\kappa_k - 1) \log w_k \; [+ \log |\det J|]

Normal priors enter through their precisions P, Laplace priors through their rates C, Beta and
Dirichlet priors through κ. With ``jacobian=False`` the maximum is the paper's penalised MLE; with
``jacobian=True`` the density is that of the unconstrained coordinates, as a sampler needs it: the
softmax map adds log(γ λ ρ) (SCAR: log c(1-c)), which is the same as adding one to every κ.

A hierarchical slope prior adds the coordinate log σ of its scale at the end of z.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lepu import kernel
from bayes_lepu.data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.models.hessian import observed_information
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors import Prior, Priors


class Blocks(NamedTuple):
    """Where each parameter stands among the free coordinates."""

    a: slice
    b: slice
    alpha: slice
    beta: slice
    weights: slice


@dataclass(frozen=True, eq=False)
class LogDensity:
    """The log posterior of one model on one data set.

    Parameters
    ----------
    spec : ModelSpec
    data : PUData
    priors : mapping of str to Prior
        One for every name in ``spec.parameters``.
    jacobian : bool
        Whether to add the Jacobian of the map to the unconstrained weights.
    """

    spec: ModelSpec
    data: PUData
    priors: Priors
    jacobian: bool = False

    @cached_property
    def free(self) -> NDArray[np.intp]:
        """Positions of the free coordinates in the common vector."""
        return self.spec.free(self.data)

    @cached_property
    def blocks(self) -> Blocks:
        """Slices of the free coordinates by parameter."""
        has = self.spec.has_selection
        sizes = [
            int(self.data.class_mask.sum()),
            1,
            int(self.data.selection_mask.sum()) if has else 0,
            1 if has else 0,
            self.spec.n_weights,
        ]
        ends = np.cumsum(sizes)
        return Blocks(*(slice(int(e - s), int(e)) for s, e in zip(sizes, ends, strict=True)))

    @cached_property
    def hyper(self) -> tuple[str, ...]:
        """Slopes whose prior scale is unknown, in the order of their log σ coordinates."""
        return tuple(n for n in ("a", "alpha") if n in self.priors and self.priors[n].hierarchical)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.free) + len(self.hyper)

    @property
    def names(self) -> list[str]:
        """Readable names of the coordinates."""
        return self.spec.coordinate_names(self.data) + [f"log sigma_{n}" for n in self.hyper]

    @cached_property
    def _simple(self) -> tuple[Array, Array, Array]:
        """Location, normal precision and Laplace rate of every coordinate."""
        loc, precision, rate = (np.zeros(self.dim) for _ in range(3))
        for name in ("a", "b", "alpha", "beta"):
            if name not in self.priors:
                continue
            prior, block = self.priors[name], getattr(self.blocks, name)
            loc[block] = prior.loc
            if prior.hierarchical:
                continue
            precision[block] = prior.precision()
            if prior.family == "laplace":
                rate[block] = 1.0 / float(prior.scale)  # type: ignore[arg-type]
        return loc, precision, rate

    @property
    def l1_rate(self) -> Array:
        """Laplace rate C of every coordinate, 0 where the prior is smooth."""
        return self._simple[2]

    @cached_property
    def _kappa(self) -> Array:
        """Exponents of (w_1, ...) in the prior density, plus one each with the Jacobian."""
        name = self.spec.weight_prior
        if name is None:
            return np.zeros(0)
        return np.array(self.priors[name].concentration) - (0.0 if self.jacobian else 1.0)

    @cached_property
    def _swap_order(self) -> NDArray[np.intp]:
        if not np.array_equal(self.data.class_mask, self.data.selection_mask):
            raise ModelError("The factors cannot be exchanged: their columns differ.")
        k = self.blocks.b.stop
        order = np.arange(self.dim)
        order[:k], order[k : 2 * k] = np.arange(k, 2 * k), np.arange(k)
        if len(self.hyper) == 2:
            order[-2:] = order[-2:][::-1]
        return order

    def swap(self, z: Array) -> Array:
        """Coordinates of S θ: (a, b) and (α, β) exchanged."""
        return z[..., self._swap_order]

    def full(self, z: Array) -> Array:
        """The common coordinate vector, zeros where nothing is free."""
        full = np.zeros(2 * self.data.p + 4)
        full[self.free] = z[: len(self.free)]
        return full

    def unpack(self, z: Array) -> Parameters:
        """Parameters of one point."""
        return self.spec.unpack(self.full(z))

    def pack(self, point: Parameters) -> Array:
        """Coordinates of one point (hierarchical scales at the size of the slopes)."""
        z = self.spec.pack(point)[self.free]
        sizes = [np.sqrt(np.mean(z[getattr(self.blocks, n)] ** 2) + 1e-6) for n in self.hyper]
        return np.concatenate([z, np.log(sizes)])

    def logp(self, z: Array) -> float:
        """Log density."""
        return self.logp_grad(z)[0]

    def logp_grad(self, z: Array) -> tuple[float, Array]:
        """Log density and gradient."""
        full = self.full(z)
        ll, grad = kernel.loglik_grad(*self._kernel_arguments(full))
        lp, prior_grad = self._log_prior(z, full)
        prior_grad[: len(self.free)] += grad[self.free]
        return ll + lp, prior_grad

    def logp_grad_info(self, z: Array) -> tuple[float, Array, Array]:
        """Log density, gradient, and expected information plus prior precision."""
        full = self.full(z)
        ll, grad, info = kernel.loglik_grad_info(*self._kernel_arguments(full))
        lp, prior_grad = self._log_prior(z, full)
        k = len(self.free)
        prior_grad[:k] += grad[self.free]
        curvature = np.zeros((self.dim, self.dim))
        curvature[:k, :k] = info[np.ix_(self.free, self.free)]
        curvature += self.prior_precision(z)
        return ll + lp, prior_grad, curvature

    def fold(self, z: Array) -> tuple[float, Array, float, Array]:
        """Log density at θ and at S θ, each with its gradient with respect to z."""
        full = self.full(z)
        swapped = self.swap(z)
        ll, grad, ll_s, grad_s = kernel.loglik_grad_pair(*self._kernel_arguments(full))
        lp, g = self._log_prior(z, full)
        lp_s, g_s = self._log_prior(swapped, self.full(swapped))
        k = len(self.free)
        g[:k] += grad[self.free]
        g_s[:k] += grad_s[self.free]
        return ll + lp, g, ll_s + lp_s, self.swap(g_s)

    def loglik(self, z: Array) -> float:
        """Log-likelihood alone."""
        return float(kernel.loglik_grad(*self._kernel_arguments(self.full(z)))[0])

    def observed_information(self, z: Array, *, with_prior: bool = True) -> Array:
        """Minus the Hessian of the log likelihood, by default of the log density."""
        k = len(self.free)
        info = np.zeros((self.dim, self.dim))
        data_part = observed_information(self.data.X, self.data.kind, self.unpack(z))
        info[:k, :k] = data_part[np.ix_(self.free, self.free)]
        return info + self.prior_precision(z) if with_prior else info

    def prior_precision(self, z: Array) -> Array:
        """Minus the Hessian of the log prior (Jacobian included), 0 for Laplace priors."""
        loc, precision, _ = self._simple
        P = np.diag(precision)
        if self._kappa.size:
            w = np.exp(self.unpack(z).log_w)[: self.spec.n_weights]
            P[self.blocks.weights, self.blocks.weights] += self._kappa.sum() * (
                np.diag(w) - np.outer(w, w)
            )
        for name, i, prior in self._hyper_items():
            block = getattr(self.blocks, name)
            q = np.exp(-2 * z[i])
            r = z[block] - loc[block]
            P[block, block] += q * np.eye(r.size)
            P[block, i] += -2 * q * r
            P[i, block] += -2 * q * r
            P[i, i] += 2 * q * (r @ r) + 2 * np.exp(2 * z[i]) / float(prior.scale) ** 2  # type: ignore[arg-type]
        return P

    def _hyper_items(self) -> list[tuple[str, int, Prior]]:
        start = len(self.free)
        return [
            (name, start + j, self.priors[name].scale)  # type: ignore[misc]
            for j, name in enumerate(self.hyper)
        ]

    def _kernel_arguments(self, full: Array) -> tuple:
        p = self.data.p
        log_w = self.spec.log_w(full[-2], full[-1])
        return (
            self.data.X,
            self.data.kind,
            full[:p],
            full[p],
            full[p + 1 : 2 * p + 1],
            full[2 * p + 1],
            log_w,
        )

    def _log_prior(self, z: Array, full: Array) -> tuple[float, Array]:
        loc, precision, rate = self._simple
        r = z - loc
        grad = -precision * r - rate * np.sign(r)
        value = -0.5 * float(precision @ (r * r)) - float(rate @ np.abs(r))
        if (kappa := self._kappa).size:
            log_w = self.spec.log_w(full[-2], full[-1])[: kappa.size]
            value += float(kappa @ log_w)
            k = self.spec.n_weights
            grad[self.blocks.weights] += kappa[:k] - np.exp(log_w[:k]) * kappa.sum()
        for name, i, prior in self._hyper_items():
            block = getattr(self.blocks, name)
            scale, sigma = float(prior.scale), math.exp(z[i])  # type: ignore[arg-type]
            quad = float(r[block] @ r[block]) / sigma**2
            # Normal(0, σ) slopes, half-normal σ, and the Jacobian of log σ.
            value += -0.5 * quad - r[block].size * z[i] - 0.5 * (sigma / scale) ** 2 + z[i]
            grad[block] -= r[block] / sigma**2
            grad[i] = quad - r[block].size - (sigma / scale) ** 2 + 1.0
        return value, grad
