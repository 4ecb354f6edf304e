"""`FittedModel`: the frozen answer of one call to `fit`, without diagnostics and report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.choosing import Choice
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.inference.engines import Quality
from bayes_lepu.inference.modes import Mode, mode_table
from bayes_lepu.inference.orientation import Orientation
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors.prior import Priors
from bayes_lepu.result import predictive, summaries
from bayes_lepu.result.facts import facts_as_html, facts_as_text, facts_of
from bayes_lepu.result.origin import HEAD, FitOptions, Provenance, call_text
from bayes_lepu.result.parameter_tables import (
    annotator_table,
    checked_names,
    coefficient_table,
    estimate_table,
    summary_by_annotator,
)
from bayes_lepu.result.without_rows import ColumnsOnly, Remembered

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

PRIOR_DRAWS = 1000


@dataclass(frozen=True, eq=False, repr=False)
class FittedModel:
    """A fitted model: its draws (or point estimate), its data and everything needed to redo it.

    Attributes
    ----------
    spec : ModelSpec
        The model.
    data : PUData
        The data on the internal scale.
    priors : mapping of str to Prior
    parameters : Parameters
        Draws of shape ``(chain, draw, ...)`` on the internal scale; ``(1, 1, ...)`` for MAP.
    modes : tuple of Mode
        Distinct MAP modes, the answer's first.
    orientation : Orientation
        How t and s got their names.
    options : FitOptions
        Those of the call.
    provenance : Provenance
        By what and when it was computed.
    stats : mapping of str to array
        Sampler statistics of shape ``(chain, draw)``, and what else belongs to single draws.
    quality : Quality
        How well the engine did, by its own measure.
    levels : pair of arrays, optional
        π (draw,) and c (draw, J), where all rows would have to be gone over for them.
    remembered : Remembered, optional
        What was found of the rows before the fit was saved: after its verdict, or without them.
    choice : Choice, optional
        What ``model="auto"`` compared, the chosen model first; ``choice.to_frame()`` as a table.
    """

    spec: ModelSpec
    data: PUData
    priors: Priors
    parameters: Parameters
    modes: tuple[Mode, ...]
    orientation: Orientation
    options: FitOptions
    provenance: Provenance
    stats: Mapping[str, Array] = field(default_factory=dict)
    quality: Quality = field(default_factory=Quality)
    levels: tuple[Array, Array] | None = None
    remembered: Remembered | None = None
    choice: Choice | None = None

    @property
    def method(self) -> str:
        """Name of the engine."""
        return self.options.method

    @property
    def call(self) -> str:
        """Lines of Python that give the same numbers, from the table ``X`` and the labels ``l``.

        Priors are written out, so that they do not depend on what a release has as defaults.
        """
        return HEAD + call_text(self, self.priors)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns, in the order of the coefficients."""
        return self.data.feature_names

    @property
    def is_point(self) -> bool:
        """Whether this is a point estimate without uncertainty."""
        return self.parameters.b.size == 1

    @property
    def has_rows(self) -> bool:
        """Whether the rows are there: a fit can be saved without them."""
        return not isinstance(self.data, ColumnsOnly)

    @cached_property
    def draws(self) -> Parameters:
        """All draws along one axis."""
        return self.parameters.take_flat()

    @cached_property
    def _pi_and_c(self) -> tuple[Array, Array]:
        if self.remembered is not None:
            return self.remembered.pi, self.remembered.c
        return self.levels or self._pi_and_frequencies(self.parameters)

    @property
    def pi_draws(self) -> Array:
        """Class prior π, for every draw."""
        return self._pi_and_c[0]

    @property
    def c_draws(self) -> Array:
        """Label frequency c, for every draw; of several annotators their mean."""
        return self._pi_and_c[1].mean(axis=1)

    @property
    def c_by_annotator(self) -> Array:
        """Label frequency of every annotator, ``(draw, J)``."""
        return self._pi_and_c[1]

    def class_prior_draws(self, parameters: Parameters) -> tuple[Array, Array]:
        """π = mean of t over the rows and c = P(l=1 | y=1) = E[s t] / E t, for any draws."""
        pi, c = self._pi_and_frequencies(parameters)
        return pi, c.mean(axis=1)

    def _pi_and_frequencies(self, parameters: Parameters) -> tuple[Array, Array]:
        flat = parameters.take_flat()
        positive, marked, total = summaries.over_all_rows(
            self.data.distinct, summaries.positive_sums, flat
        )
        pi = positive / total
        found = marked if flat.several else marked[:, None]
        return pi, found / np.maximum(positive, np.finfo(float).tiny)[:, None]

    # Predictions ------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> Array:
        """P(y | x) as an array of shape (n, 2), averaged over the posterior."""
        values, _ = self.data.transform(X)
        t = summaries.mean_by_row(self.draws, Parameters.t, values)
        return np.column_stack([1 - t, t])

    def predict(self, X: Any) -> NDArray[np.int8]:
        """The more probable class of every row."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(np.int8)

    def class_probability(self, X: Any, *, ci_prob: float | None = None) -> pd.DataFrame:
        """P(y=1 | x) with its equal-tailed interval.

        Where a few draws name the factors the other way round, they can pull the mean out of a
        narrow interval; ``fit.orientation.probability`` tells how many do.
        """
        return self._summarise(Parameters.t, X, ci_prob)

    def propensity(self, X: Any, *, ci_prob: float | None = None) -> pd.DataFrame:
        """s(x) = P(l=1 | y=1, x) with its interval.

        Several annotators have one line per row and annotator: ``.xs("anna", level="annotator")``
        picks one, ``["mean"].unstack()`` makes one column of each.
        """
        return self._summarise_each(Parameters.s, X, ci_prob)

    def label_probability(self, X: Any, *, ci_prob: float | None = None) -> pd.DataFrame:
        """h(x) = P(l=1 | x) = s(x) t(x) with its interval."""
        return self._summarise_each(Parameters.h, X, ci_prob)

    def missed(self, X: Any, *, ci_prob: float | None = None) -> pd.DataFrame:
        """P(y=1 | x, l=0): how likely a row that nobody labelled is a missed positive."""
        return self._summarise(Parameters.missed, X, ci_prob)

    def class_prior(self, *, ci_prob: float | None = None) -> pd.DataFrame:
        """π and c, with their priors; see `Fit.class_prior`."""
        rows = self.level_draws
        return pd.DataFrame({k: summaries.describe_draws(v, ci_prob) for k, v in rows.items()}).T

    @cached_property
    def level_draws(self) -> dict[str, Array]:
        """Draws of π and c, of every annotator's c, and of the prior of π and c.

        `fit` looks at them once, so that showing a fit computes nothing.
        """
        rows = {"pi": self.pi_draws, "c": self.c_draws}
        if self.data.n_annotators > 1:
            each = zip(self.data.annotators, self.c_by_annotator.T, strict=True)
            rows |= {f"c[{name}]": c for name, c in each}
        if not self.is_point:
            before = dict(zip(("pi", "c"), self.prior_pi_and_c, strict=True))
            rows |= {f"prior of {name}": v for name, v in before.items() if name in rows}
        return rows

    @cached_property
    def prior_draws(self) -> Parameters:
        """Draws of the prior along one axis, drawn once for whoever compares with it."""
        rng = np.random.default_rng([self.options.random_seed, 3])
        return predictive.prior_parameters(self.spec, self.data, self.priors, PRIOR_DRAWS, rng)

    @cached_property
    def prior_pi_and_c(self) -> tuple[Array, Array]:
        """π and c of the draws of the prior, over some of the rows."""
        if self.remembered is not None:
            return self.remembered.prior_pi, self.remembered.prior_c
        some = replace(self, data=self.data.some(summaries.PRIOR_ROWS))
        return some.class_prior_draws(self.prior_draws)

    def annotators(self, *, ci_prob: float | None = None) -> pd.DataFrame:
        """One line per annotator: rows seen and labelled, label frequency, what sets them apart.

        ``shared`` counts the rows that somebody else labelled too; ``mean``, ``lower`` and
        ``upper`` are of c_j = P(l_j=1 | y=1); ``differs_in`` names the columns whose slope is
        higher (+) or lower (-) than the average annotator's with 95 % probability.
        """
        return annotator_table(self, ci_prob)

    def accept_unseen(self, how: str) -> Self:
        """The same fit, which takes new rows with levels that no training row had.

        Parameters
        ----------
        how : {"average", "reference", "error"}
            What stands in for such a level: an average row of that column, the reference level,
            or nothing.
        """
        encoding = self.data.encoding.accept_unseen(how)
        return replace(self, data=self.data.with_encoding(encoding))

    # Parameters -------------------------------------------------------------------------------

    def coefficients(self, *, ci_prob: float | None = None) -> pd.DataFrame:
        """Slopes and intercepts of both factors, on the internal and on the original scale."""
        return coefficient_table(self, ci_prob)

    def summary(
        self,
        *,
        var_names: str | Sequence[str] | None = None,
        ci_prob: float | None = None,
        kind: str = "all",
        round_to: int | str = "auto",
    ) -> pd.DataFrame:
        """Table of the parameters: `arviz.summary` of the draws, or the estimates for MAP.

        Parameters
        ----------
        var_names : str or sequence of str, optional
            Variables of the PyMC model; by default the parameters, π and c.
        ci_prob : float, optional
            Probability of the equal-tailed intervals; ArviZ's ``stats.ci_prob`` by default.
        kind : {"all", "stats", "diagnostics", "all_median", "stats_median", "diagnostics_median"}
            Which columns; see `arviz.summary`.
        round_to : int or {"auto", "none"}
            Digits, as many as the Monte-Carlo error allows by default.
        """
        if self.is_point:
            return estimate_table(self, var_names)
        import arviz as az

        wanted = ("pi", "c", *self.spec.parameters, *self.spec.shape_rates, *self.priors)
        available = self.tree["posterior"].data_vars
        default = [v for v in dict.fromkeys(wanted) if v in available and v != "rates"]
        return az.summary(
            self.tree,
            var_names=checked_names(var_names, available) or default,
            ci_prob=summaries.interval_level(ci_prob),
            kind=kind,
            round_to=round_to,
        )

    def mode_table(self) -> pd.DataFrame:
        """The distinct MAP modes, the answer's first."""
        return mode_table(self.modes)

    # The model and its draws ------------------------------------------------------------------

    @cached_property
    def model(self) -> "pm.Model":
        """The PyMC model with the same density, for inspection and extension."""
        return self.spec.build(self.data, self.priors)

    @cached_property
    def density(self) -> LogDensity:
        """The compiled log density without Jacobian."""
        return LogDensity(self.spec, self.data, self.priors)

    @cached_property
    def tree(self) -> "xr.DataTree":
        """The ArviZ DataTree of this fit, with all variables of `model` and all groups.

        Groups with an entry for every draw and row are computed when they are looked at.
        """
        from bayes_lepu.result.tree import to_tree

        return to_tree(self)

    @property
    def idata(self) -> "xr.DataTree":
        """The same as `tree`."""
        return self.tree

    def extract(self, X: Any = None) -> "xr.Dataset":
        """t(x), s(x), h(x) and P(y=1 | x, l=0) of these or new rows, every draw of them.

        Returns
        -------
        Dataset
            ``t``, ``s``, ``h`` and ``missed`` with dimensions (chain, draw, obs) and row labels;
            ``s`` and ``h`` of several annotators one more. They are computed when looked at:
            ``fit.extract()["t"].sel(obs=label)`` takes one row.
        """
        from bayes_lepu.result.lazy import extract_rows

        rows = (self.data.X, self.data.index) if X is None else self.data.transform(X)
        return extract_rows(self, *rows)

    def sample_posterior_predictive(
        self, X: Any = None, *, random_seed: int | None = None
    ) -> "xr.DataArray":
        """Labels l drawn from the fitted model, dims (chain, draw, obs), for these or new rows."""
        values = self.data.X if X is None else self.data.transform(X)[0]
        rng = np.random.default_rng(random_seed)
        shown = self.data.shown if X is None and self.parameters.several else None
        return _label_array(
            predictive.predictive_labels(self.parameters, values, rng, shown=shown), self.data
        )

    def sample_prior_predictive(
        self, X: Any = None, *, draws: int = 500, random_seed: int | None = None
    ) -> "xr.DataArray":
        """Labels l drawn from the prior, dims (chain, draw, obs)."""
        values = self.data.X if X is None else self.data.transform(X)[0]
        rng = np.random.default_rng(random_seed)
        prior = predictive.prior_parameters(self.spec, self.data, self.priors, draws, rng)
        return _label_array(predictive.predictive_labels(prior, values, rng)[None], self.data)

    # Display ----------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """What is not computed from the rest, for pickling."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __repr__(self) -> str:
        return facts_as_text(self._headline(), self._facts())

    def _repr_html_(self) -> str:
        return facts_as_html(self._headline(), self._facts())

    def _headline(self) -> str:
        count = self.data.n_annotators
        who = f", {count} annotators" if count > 1 else ""
        return f"bayes_lepu fit: {self.spec.name}{who}, method={self.method}"

    def _facts(self) -> dict[str, str]:
        return facts_of(self)

    def _summarise(
        self, function: summaries.RowFunction, X: Any, ci_prob: float | None
    ) -> pd.DataFrame:
        values, index = self.data.transform(X)
        return summaries.summary_by_row(self.draws, function, values, index, ci_prob)

    def _summarise_each(
        self, function: summaries.RowFunction, X: Any, ci_prob: float | None
    ) -> pd.DataFrame:
        """The same for what every annotator has of his own."""
        if self.data.n_annotators == 1:
            return self._summarise(function, X, ci_prob)
        values, index = self.data.transform(X)
        return summary_by_annotator(self, function, values, index, ci_prob)


def _label_array(labels: NDArray[np.int8], data: PUData) -> "xr.DataArray":
    import xarray as xr

    if labels.ndim == 3:
        return xr.DataArray(labels, dims=("chain", "draw", "obs"), name="l")
    dims, coords = ("chain", "draw", "obs", "annotator"), {"annotator": list(data.annotators)}
    return xr.DataArray(labels, dims=dims, coords=coords, name="L")
