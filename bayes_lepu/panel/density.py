"""The panel model's log posterior density on unconstrained coordinates, for optimiser and sampler.

The coordinates are those of the PyMC graph: see `compiled`.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayes_lepu.links import Array
from bayes_lepu.panel import compiled
from bayes_lepu.panel.compiled import Constants
from bayes_lepu.panel.data import PanelData
from bayes_lepu.panel.parameters import PanelParameters
from bayes_lepu.panel.specification import Form
from bayes_lepu.priors import Priors

STEP = 1e-5  # of the central differences of the gradient


@dataclass(frozen=True, eq=False)
class PanelDensity:
    """Log density of one form on one data set."""

    form: Form
    data: PanelData
    priors: Priors

    @cached_property
    def blocks(self) -> dict[str, slice]:
        """Slices of the coordinates by the name of the PyMC variable."""
        J, ps = len(self.data.annotators), int(self.form.selection_mask(self.data).sum())
        sizes = {"a": int(self.data.table.class_mask.sum()), "b": 1}
        sizes |= {"alpha_mean": ps} if ps else {}
        sizes |= {"beta_mean": 1}
        sizes |= {"sigma_alpha": 1} if ps else {}
        sizes |= {"sigma_beta": 1}
        sizes |= {"z_alpha": J * ps} if ps else {}
        sizes |= {"z_beta": J}
        ends = np.cumsum(list(sizes.values())).tolist()
        return {
            name: slice(end - size, end)
            for (name, size), end in zip(sizes.items(), ends, strict=True)
        }

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.blocks["z_beta"].stop

    @cached_property
    def constants(self) -> Constants:
        """Everything the compiled density needs."""
        table = self.data.table
        loc, precision, log_norm = np.zeros(self.dim), np.zeros(self.dim), 0.0
        scales = []
        for name, block in self.blocks.items():
            size = block.stop - block.start
            if name.startswith("z_"):
                precision[block] = 1.0
                log_norm -= 0.5 * size * math.log(2 * math.pi)
                continue
            prior = self.priors[name]
            log_norm += prior.log_normalizer(size=size)
            if name.startswith("sigma_"):
                scales.append(float(prior.scale))  # type: ignore[arg-type]
            else:
                loc[block], precision[block] = prior.loc, prior.known_scale**-2
        return Constants(
            Xt=np.ascontiguousarray(table.X[:, table.class_mask]),
            Xs=np.ascontiguousarray(table.X[:, self.form.selection_mask(self.data)]),
            labels=self.data.labels,
            kind=table.kind,
            loc=loc,
            precision=precision,
            scales=np.array(scales),
            log_norm=log_norm,
        )

    def logp_grad(self, z: Array) -> tuple[float, Array]:
        """Log density and gradient."""
        return compiled.logp_grad(z, self.constants)

    def curvature(self, z: Array) -> Array:
        """Minus the Hessian, by central differences of the gradient."""
        steps = STEP * np.eye(self.dim)
        columns = [self.logp_grad(z + e)[1] - self.logp_grad(z - e)[1] for e in steps]
        hessian = np.array(columns) / (2 * STEP)
        return -0.5 * (hessian + hessian.T)

    def unpack(self, z: Array) -> PanelParameters:
        """Parameters of one point, or of draws of shape ``(..., dim)``."""
        table, mask = self.data.table, self.form.selection_mask(self.data)
        lead, J = z.shape[:-1], len(self.data.annotators)
        a = np.zeros((*lead, table.p))
        a[..., table.class_mask] = z[..., self.blocks["a"]]
        pooling = {"beta_mean": self._single(z, "beta_mean")}
        pooling["sigma_beta"] = np.exp(self._single(z, "sigma_beta"))
        level, spread = pooling["beta_mean"][..., None], pooling["sigma_beta"][..., None]
        beta = level + spread * z[..., self.blocks["z_beta"]]
        alpha = np.zeros((*lead, J, table.p))
        if mask.any():
            mean = np.zeros((*lead, table.p))
            mean[..., mask] = z[..., self.blocks["alpha_mean"]]
            sigma = np.exp(self._single(z, "sigma_alpha"))
            deviations = z[..., self.blocks["z_alpha"]].reshape(*lead, J, -1)
            alpha[..., mask] = mean[..., None, mask] + sigma[..., None, None] * deviations
            pooling |= {"alpha_mean": mean, "sigma_alpha": sigma}
        return PanelParameters(a, self._single(z, "b"), alpha, beta, pooling)

    @cached_property
    def pooled_at(self) -> dict[int, tuple[int, int]]:
        """For every deviation z: the coordinates of its mean and of its log scale."""
        out = {}
        for name in ("alpha", "beta"):
            if f"z_{name}" not in self.blocks:
                continue
            means, scale = self.blocks[f"{name}_mean"], self.blocks[f"sigma_{name}"].start
            block = self.blocks[f"z_{name}"]
            width = means.stop - means.start
            for i in range(block.start, block.stop):
                out[i] = (means.start + (i - block.start) % width, scale)
        return out

    def to_centred(self, z: Array, centring: Array) -> Array:
        """Sampling coordinates v = c mean + sigma^c z in place of the deviations z."""
        v = z.copy()
        for i, (mean, scale) in self.pooled_at.items():
            c = centring[i]
            v[..., i] = c * z[..., mean] + np.exp(c * z[..., scale]) * z[..., i]
        return v

    def from_centred(self, v: Array, centring: Array) -> Array:
        """Inverse of `to_centred`."""
        z = v.copy()
        for i, (mean, scale) in self.pooled_at.items():
            c = centring[i]
            z[..., i] = (v[..., i] - c * v[..., mean]) * np.exp(-c * v[..., scale])
        return z

    def sample_prior(self, count: int, rng: np.random.Generator) -> Array:
        """Coordinates drawn from the prior, ``(count, dim)``."""
        z = np.empty((count, self.dim))
        for name, block in self.blocks.items():
            size = (count, block.stop - block.start)
            if name.startswith("z_"):
                z[:, block] = rng.standard_normal(size)
            else:
                drawn = self.priors[name].sample(rng, size)
                z[:, block] = np.log(drawn) if name.startswith("sigma_") else drawn
        return z

    def loglik_rows(self, parameters: PanelParameters) -> Array:
        """Log-likelihood of every row, ``(..., n)``."""
        table, k = self.data.table, self.constants
        mask = self.form.selection_mask(self.data)
        flat = parameters.take_flat()
        out = np.empty((flat.b.size, table.n))
        for i in range(flat.b.size):
            out[i] = compiled.loglik_rows(
                flat.a[i][table.class_mask],
                float(flat.b[i]),
                np.ascontiguousarray(flat.alpha[i][:, mask]),
                flat.beta[i],
                k.Xt,
                k.Xs,
                k.labels,
                k.kind,
            )
        return out.reshape(*parameters.b.shape, table.n)

    def _single(self, z: Array, name: str) -> Array:
        return z[..., self.blocks[name].start]
