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

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lepu import kernel
from bayes_lepu.data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.models import compiled
from bayes_lepu.models.compiled import MODEL_CODES, Constants
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
    def swap_order(self) -> NDArray[np.intp]:
        """Order of the coordinates of S θ."""
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
        return z[..., self.swap_order]

    def full(self, z: Array) -> Array:
        """The common coordinate vector, zeros where nothing is free."""
        full = np.zeros((*z.shape[:-1], 2 * self.data.p + 4))
        full[..., self.free] = z[..., : len(self.free)]
        return full

    def unpack(self, z: Array) -> Parameters:
        """Parameters of one point, or of draws of shape ``(..., dim)``."""
        return self.spec.unpack(self.full(z))

    def pack(self, point: Parameters) -> Array:
        """Coordinates of one point (hierarchical scales at the size of the slopes)."""
        z = self.spec.pack(point)[self.free]
        sizes = [np.sqrt(np.mean(z[getattr(self.blocks, n)] ** 2) + 1e-6) for n in self.hyper]
        return np.concatenate([z, np.log(sizes)])

    @cached_property
    def constants(self) -> Constants:
        """Everything the compiled density needs."""
        loc, precision, rate = self._simple
        blocks = [getattr(self.blocks, name) for name in self.hyper]
        return Constants(
            X=self.data.X,
            kind=self.data.kind,
            model=MODEL_CODES[self.spec.name],
            free=self.free,
            loc=loc,
            precision=precision,
            rate=rate,
            kappa=self._kappa,
            hyper=np.array([e for b in blocks for e in (b.start, b.stop)], dtype=np.intp),
            hyper_scale=np.array([float(prior.scale) for _, _, prior in self._hyper_items()]),  # type: ignore[arg-type]
        )

    def logp(self, z: Array) -> float:
        """Log density."""
        return float(compiled.logp_grad(z, self.constants)[0])

    def logp_grad(self, z: Array) -> tuple[float, Array]:
        """Log density and gradient."""
        return compiled.logp_grad(z, self.constants)

    def logp_grad_info(self, z: Array) -> tuple[float, Array, Array]:
        """Log density, gradient, and expected information plus prior precision."""
        full, k = self.full(z), len(self.free)
        log_w = self.spec.log_w(full[-2], full[-1])
        p = self.data.p
        ll, full_grad, info = kernel.loglik_grad_info(
            self.data.X,
            self.data.kind,
            full[:p],
            full[p],
            full[p + 1 : 2 * p + 1],
            full[2 * p + 1],
            np.array(log_w),
        )
        grad = np.zeros(self.dim)
        grad[:k] = full_grad[self.free]
        value = ll + compiled.log_prior(z, np.array(log_w), self.constants, grad)
        curvature = np.zeros((self.dim, self.dim))
        curvature[:k, :k] = info[np.ix_(self.free, self.free)]
        return value, grad, curvature + self.prior_precision(z)

    def fold(self, z: Array) -> tuple[float, Array, float, Array]:
        """Log density at θ and at S θ, each with its gradient with respect to z."""
        return compiled.fold(z, self.swap_order, self.constants)

    def loglik(self, z: Array) -> float:
        """Log-likelihood alone."""
        point = self.unpack(z)
        rows = kernel.loglik_rows(
            self.data.X, self.data.kind, point.a, point.b, point.alpha, point.beta, point.log_w
        )
        return float(rows.sum())

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
