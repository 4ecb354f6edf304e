r"""What a model is: a name, its free coordinates, its weights, and its PyMC graph.

Every model shares one coordinate system of length ``2 p + 4``,

    (a_1..a_p, b, α_1..α_p, β, u, v),

and keeps some of its entries free: masked slopes are left out, naive and SCAR have no (α, β), and
only PsychM has both ``u = log γ/ρ`` and ``v = log λ/ρ`` (SCAR has ``u = logit c``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lepu.data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.priors import Prior, Priors

if TYPE_CHECKING:
    import pymc as pm


@dataclass(frozen=True)
class ModelSpec:
    """A model of the labelling, as a frozen value.

    Attributes
    ----------
    name : str
    mechanism : str
        The propensity s(x) in one line.
    parameters : tuple of str
        Names of the parameters that carry a prior.
    log_w : callable
        Map from the coordinates (u, v) to (log γ, log λ, log ρ).
    n_weights : int
        How many of (u, v) are free.
    build : callable
        ``build(data, priors) -> pymc.Model``.
    """

    name: str
    mechanism: str
    parameters: tuple[str, ...]
    log_w: Callable[[ArrayLike, ArrayLike], Array]
    n_weights: int
    build: "Callable[[PUData, Priors], pm.Model]"

    @property
    def has_selection(self) -> bool:
        """Whether s depends on x."""
        return "alpha" in self.parameters

    @property
    def weight_prior(self) -> str | None:
        """Name of the prior on the weights, if any is free."""
        return {0: None, 1: "c", 2: "weights"}[self.n_weights]

    def free(self, data: PUData) -> NDArray[np.intp]:
        """Positions of the free coordinates in the common vector."""
        p = data.p
        keep = np.zeros(2 * p + 4, dtype=bool)
        keep[:p], keep[p] = data.class_mask, True
        if self.has_selection:
            keep[p + 1 : 2 * p + 1], keep[2 * p + 1] = data.selection_mask, True
        keep[2 * p + 2 : 2 * p + 2 + self.n_weights] = True
        return np.flatnonzero(keep)

    def unpack(self, full: Array) -> Parameters:
        """Parameters from the common vector, with any leading draw dimensions."""
        p = (full.shape[-1] - 4) // 2
        return Parameters(
            full[..., :p],
            full[..., p],
            full[..., p + 1 : 2 * p + 1],
            full[..., 2 * p + 1],
            self.log_w(full[..., -2], full[..., -1]),
        )

    def pack(self, point: Parameters) -> Array:
        """The common vector of one point; infinite log-odds are cut at ±700."""
        log_gamma, log_lam, log_rho = point.log_w
        with np.errstate(invalid="ignore"):
            uv = {
                0: [0.0, 0.0],
                1: [log_gamma - log_lam, 0.0],
                2: [log_gamma - log_rho, log_lam - log_rho],
            }[self.n_weights]
        tail = np.clip(np.nan_to_num(uv), -700, 700)
        head = [point.a, np.atleast_1d(point.b), point.alpha, np.atleast_1d(point.beta)]
        return np.concatenate([*head, tail])

    def coordinate_names(self, data: PUData) -> list[str]:
        """Readable names of the free coordinates, in the order of `free`."""
        names = [f"a[{f}]" for f in data.feature_names] + ["b"]
        names += [f"alpha[{f}]" for f in data.feature_names] + ["beta"]
        names += ["logit c" if self.n_weights == 1 else "log(gamma/rho)", "log(lambda/rho)"]
        return [names[i] for i in self.free(data)]

    def complete_priors(self, base: Priors, overrides: Priors | None) -> dict[str, Prior]:
        """Priors of this model: the base set with the user's own on top, checked by name."""
        overrides = overrides or {}
        for name, prior in overrides.items():
            if name not in self.parameters:
                raise ModelError(
                    f"priors names {name!r}, which is not a parameter of {self.name}. "
                    f"Its parameters: {', '.join(self.parameters)}."
                )
            if not isinstance(prior, Prior):
                raise ModelError(
                    f"priors[{name!r}] is {prior!r}; a Prior is expected, for example "
                    "Prior('normal', scale=1.0)."
                )
            _check_family(name, prior)
        return {name: overrides.get(name, base[name]) for name in self.parameters}


def _check_family(name: str, prior: Prior) -> None:
    allowed = {"c": ("beta",), "weights": ("dirichlet",)}.get(name, ("normal", "laplace", "flat"))
    if prior.family not in allowed:
        raise ModelError(
            f"{name} cannot have a {prior.family} prior. Possible: {', '.join(allowed)}."
        )
    if prior.hierarchical and name not in ("a", "alpha"):
        raise ModelError(f"{name} cannot have a hierarchical scale; only a and alpha can.")
    if prior.hierarchical and prior.family != "normal":
        raise ModelError("A hierarchical scale goes with the normal family only.")
