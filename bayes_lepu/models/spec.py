r"""What a model is: a name, its propensity, and the table of parameters that follows from it.

.. math:: s(x) = \gamma + \rho\,\sigma(\alpha\cdot x+\beta), \qquad \gamma + \lambda + \rho = 1

A model says whether s has a predictor and which of the rates (γ, λ, ρ) are free; `blocks` makes the
table of parameters, `graph` the PyMC model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.families import FAMILIES
from bayes_lepu.links import Array
from bayes_lepu.models.blocks import LARGEST, prior_names, ratios_to_logs
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.priors import Prior, Priors
from bayes_lepu.suggestions import did_you_mean

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
    has_selection : bool
        Whether s depends on x.
    fixed_log_w : tuple of float
        (log γ, log λ, log ρ) where no rate is free.
    rates_name : str
        Name of the free rates in priors and in the PyMC model; empty where none is free.
    components : tuple of str
        Names of the free rates, the last one being what the others leave.
    coordinate_names : tuple of str
        Readable names of the coordinates of the rates.
    log_psi : callable
        ``log_psi(omega, rates) -> (log s, log(1 - s))`` in PyTensor.
    """

    name: str
    mechanism: str
    has_selection: bool
    log_psi: Callable[[Any, Any], tuple[Any, Any]]
    fixed_log_w: tuple[float, float, float] = (-np.inf, -np.inf, 0.0)
    rates_name: str = ""
    components: tuple[str, ...] = ()
    coordinate_names: tuple[str, ...] = ()

    @property
    def n_weights(self) -> int:
        """How many coordinates the free rates have."""
        return len(self.coordinate_names)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters of one annotator that carry a prior."""
        selection = ("alpha", "beta") if self.has_selection else ()
        return ("a", "b", *selection, *((self.rates_name,) if self.rates_name else ()))

    def log_w(self, uv: Array) -> Array:
        """(log γ, log λ, log ρ) from the coordinates ``(..., 2)`` of the full vector."""
        if self.n_weights == 2:
            return ratios_to_logs(uv)
        if self.n_weights == 1:
            pair = ratios_to_logs(uv[..., :1])
            return np.concatenate([pair, np.full((*uv.shape[:-1], 1), -np.inf)], axis=-1)
        return np.broadcast_to(np.array(self.fixed_log_w), (*uv.shape[:-1], 3))

    def unpack(self, full: Array) -> Parameters:
        """Parameters from the full vector, with any leading draw dimensions."""
        p = (full.shape[-1] - 5) // 2
        return Parameters(
            full[..., :p],
            full[..., p],
            full[..., p + 1 : 2 * p + 1],
            full[..., 2 * p + 1],
            self.log_w(full[..., 2 * p + 2 : 2 * p + 4]),
        )

    def pack(self, point: Parameters) -> Array:
        """The full vector of one point; infinite log-odds are cut."""
        log_gamma, log_lam, log_rho = point.log_w
        reference = log_lam if self.n_weights == 1 else log_rho
        with np.errstate(invalid="ignore"):
            uv = np.array([log_gamma - reference, log_lam - reference])
        uv = np.clip(np.nan_to_num(uv), -LARGEST, LARGEST)
        head = [point.a, np.atleast_1d(point.b), point.alpha, np.atleast_1d(point.beta)]
        return np.concatenate([*head, uv, [0.0]])

    def build(self, data: PUData, priors: Priors) -> "pm.Model":
        """The PyMC model."""
        from bayes_lepu.models.graph import build

        return build(self, data, priors)

    def complete_priors(
        self, base: Priors, overrides: Priors | None, *, annotators: int = 1
    ) -> dict[str, Prior]:
        """Priors of this model: the base set with the user's own on top, checked by name."""
        overrides, names = overrides or {}, prior_names(self, annotators)
        for name, prior in overrides.items():
            if name not in names:
                raise ModelError(
                    f"priors names {name!r}, which is not a parameter of {self.name}."
                    f"{did_you_mean(name, self.parameters)} "
                    f"Its parameters: {', '.join(names)}."
                )
            if not isinstance(prior, Prior):
                raise ModelError(
                    f"priors[{name!r}] is {prior!r}; a Prior is expected, for example "
                    "Prior('normal', scale=1.0)."
                )
            self._check_family(name, prior, of_rates=names[name] == self.rates_name)
        return {name: overrides.get(name, base[stem]) for name, stem in names.items()}

    def _check_family(self, name: str, prior: Prior, *, of_rates: bool) -> None:
        support = "real"
        if of_rates:
            support = "unit" if self.n_weights == 1 else "simplex"
        if prior.form.support != support:
            known = ", ".join(f for f in FAMILIES if FAMILIES[f].support == support)
            raise ModelError(f"{name} cannot have a {prior.family} prior. Possible: {known}.")
        if prior.hierarchical and name not in ("a", "alpha"):
            raise ModelError(f"{name} cannot have a hierarchical scale; only a and alpha can.")
        if prior.hierarchical and prior.family != "normal":
            raise ModelError("A hierarchical scale goes with the normal family only.")
