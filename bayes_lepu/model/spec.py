"""The specification of a model: a name and two factors; `blocks` makes its table of parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.factors import Factor
from bayes_lepu.factors.curves import LOGISTIC_FACTOR as LOGISTIC
from bayes_lepu.model.blocks import Role, Stem, with_priors
from bayes_lepu.priors.prior import FAMILIES, Prior, Priors
from bayes_lepu.suggestions import did_you_mean

if TYPE_CHECKING:
    import pymc as pm

RATE_WORDS = {"gamma": "guess rate γ", "lambda": "lapse rate λ"}


@dataclass(frozen=True)
class ModelSpec:
    """A model of the labelling, as a frozen value."""

    name: str
    propensity: Factor
    of_class: Factor = LOGISTIC  # its rates are known
    false_marks: bool = False  # whether negatives may be marked, at a rate ε

    @property
    def mechanism(self) -> str:
        """The propensity s(x) in one line, and the class where it is not logistic."""
        marks = "; negatives are marked at a rate ε" if self.false_marks else ""
        t = "" if self.of_class is LOGISTIC else f"; {self.of_class.written('t', 'a·x + b')}"
        return self.propensity.written("s", "α·x + β") + t + marks

    @property
    def has_selection(self) -> bool:
        """Whether s depends on x."""
        return self.propensity.has_predictor

    @property
    def rates_name(self) -> str:
        """Name of the free rates in priors and in the PyMC model; empty where none is free."""
        return self.propensity.rates_name

    @property
    def n_rates(self) -> int:
        """How many coordinates the free rates have."""
        return self.propensity.n_coordinates

    @property
    def shape_rates(self) -> tuple[str, ...]:
        """Free rates of a propensity with a predictor: guesses, lapses, or both."""
        free = self.propensity.free if self.n_rates and self.has_selection else ()
        return tuple(name for name in free if name in RATE_WORDS)

    @property
    def exchangeable(self) -> bool:
        """Whether s has the same form as t; the columns may differ (`LogDensity.can_exchange`)."""
        alike = self.of_class.is_plain and self.propensity.link is self.of_class.link
        return self.has_selection and alike

    @property
    def symmetric(self) -> bool:
        """Whether h = s t is unchanged by swapping t and s, because no rates differ."""
        return self.exchangeable and self.propensity.is_plain and not self.false_marks

    @property
    def certain(self) -> bool:
        """Whether every positive is marked."""
        return bool(np.isneginf(self.propensity.log_rates(np.zeros(self.n_rates))[1:]).all())

    @property
    def constant(self) -> bool:
        """Whether every positive is marked with the same unknown probability."""
        return not self.has_selection and not self.certain

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters of one annotator that carry a prior."""
        return tuple(with_priors(self))

    def build(
        self, data: PUData, priors: Priors, terms: Mapping[str, Callable[[], Any]] | None = None
    ) -> "pm.Model":
        """The PyMC model; ``terms`` are added to its predictors."""
        from bayes_lepu.model.graph import build

        return build(self, data, priors, terms)

    def complete_priors(
        self, base: Priors, overrides: Priors | None, data: PUData | None = None
    ) -> dict[str, Prior]:
        """Priors of this model: the base set, overridden by the user's own after a check of names.

        ``base`` has priors by the names for one annotator, as without ``data``; rates of a user's
        own propensity have their own defaults.
        """
        overrides = overrides or {}
        names = with_priors(self, data)
        for name, prior in overrides.items():
            if name not in names:
                raise ModelError(
                    f"priors names {name!r}, which is not a parameter of {self.name} on these "
                    f"data.{did_you_mean(name, names)} Its parameters: {', '.join(names)}."
                )
            if not isinstance(prior, Prior):
                raise ModelError(
                    f"priors[{name!r}] is {prior!r}; a Prior is expected, for example "
                    "Prior('normal', scale=1.0)."
                )
            self._check_family(name, prior, *names[name])
        base = {**self.own_priors(), **base}
        # Of several annotators alpha_mean has the prior that alpha has for one.
        return {
            name: overrides.get(name) or base[name if name in base else stem.name]
            for name, (stem, _) in names.items()
        }

    def own_priors(self) -> dict[str, Prior]:
        """Default priors of the rates, and of the annotators' differences."""
        out = {
            "epsilon": Prior("beta", concentration=FALSE_MARKS),
            "delta": VISITS,
        }
        if self.rates_name:
            family = "beta" if self.n_rates == 1 else "dirichlet"
            out[self.rates_name] = Prior(family, concentration=self.propensity.concentration)
            out[f"sigma_{self.rates_name}"] = Prior("halfnormal", scale=SPREAD)
        return out

    def _check_family(self, name: str, prior: Prior, stem: Stem, role: Role) -> None:
        support = "real"
        if role == "scale":
            support = "positive"
        elif stem.transform == "ratios":
            support = "simplex" if stem.slot == "rates" and self.n_rates > 1 else "unit"
        if prior.form.support != support:
            known = ", ".join(f for f in FAMILIES if FAMILIES[f].support == support)
            raise ModelError(f"{name} cannot have a {prior.family} prior. Possible: {known}.")
        of_columns = stem.is_slope and role != "scale"
        if prior.parts and not of_columns:
            raise ModelError(f"{name} cannot have a prior for every column; only slopes can.")
        if prior.hierarchical and not of_columns:
            raise ModelError(f"{name} cannot have a hierarchical scale; only a and alpha can.")
        for part in prior.parts or (prior,):
            if prior.parts and part.form.support != "real":
                raise ModelError(
                    f"{part!r} cannot be the prior of a column; one of the real line is expected, "
                    "such as Prior('normal', scale=1.0) or Prior('positive', scale=1.0)."
                )


SPREAD = 1.0  # half-normal scale of the annotators' differences, in log-odds
VISITS = Prior("normal", scale=1.0)  # of slopes per standard deviation over the visits
FALSE_MARKS = (1.0, 99.0)  # prior mean: one mark in a hundred negatives, far below any propensity
