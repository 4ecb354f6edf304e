"""`PanelFit`: the frozen answer of one call to `fit_panel`."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.diagnostics.records import Identifiability
from bayes_lepu.links import Array
from bayes_lepu.panel import specification, tree
from bayes_lepu.panel.agreement import Agreement, compare_agreement
from bayes_lepu.panel.checks import diagnose_panel
from bayes_lepu.panel.data import PanelData
from bayes_lepu.panel.density import PanelDensity
from bayes_lepu.panel.parameters import PanelParameters, class_prior_and_frequencies
from bayes_lepu.panel.specification import Form
from bayes_lepu.priors import Priors
from bayes_lepu.result import summaries
from bayes_lepu.result.display import facts_as_html, facts_as_text
from bayes_lepu.result.fit import show_estimate
from bayes_lepu.result.summaries import CI_PROB

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

PRIOR_DRAWS = 1000
QUICK_CELLS = 1_000_000  # rows x annotators up to which showing a fit may diagnose it
DISTINCT = 0.95  # probability of the interval that decides which columns tell an annotator apart


@dataclass(frozen=True, eq=False, repr=False)
class PanelFit:
    """A fitted panel of annotators: draws, data and everything needed to redo it.

    The answer rests on one assumption: given x and the class, annotators label independently of
    each other. Where some positives are hard for everybody, π comes out too low;
    ``fit.identifiability`` tests it and `agreement` shows the counts behind the test.

    Attributes
    ----------
    form : Form
        The form of the propensities.
    data : PanelData
        The data on the internal scale.
    priors : mapping of str to Prior
    parameters : PanelParameters
        Draws of shape ``(chain, draw, ...)`` on the internal scale.
    settings : mapping
        Options of the call, seed and versions.
    stats : mapping of str to array
        Sampler statistics of shape ``(chain, draw)``.
    """

    form: Form
    data: PanelData
    priors: Priors
    parameters: PanelParameters
    settings: Mapping[str, Any]
    stats: Mapping[str, Array]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns, in the order of the coefficients."""
        return self.data.table.feature_names

    @property
    def annotator_names(self) -> tuple[str, ...]:
        """Names of the annotators, in the order of the columns of L."""
        return self.data.annotators

    @cached_property
    def draws(self) -> PanelParameters:
        """All draws along one axis."""
        return self.parameters.take_flat()

    @cached_property
    def _pi_and_c(self) -> tuple[Array, Array]:
        return class_prior_and_frequencies(self.draws, self.data.table.X)

    @property
    def pi_draws(self) -> Array:
        """Class prior π = mean of t over the rows, for every draw."""
        return self._pi_and_c[0]

    @property
    def c_draws(self) -> Array:
        """Label frequencies c_j = E[s_j t] / E[t], ``(draw, J)``."""
        return self._pi_and_c[1]

    @cached_property
    def _prior_pi_and_c(self) -> tuple[Array, Array]:
        rng = np.random.default_rng([self.settings["random_seed"], 3])
        prior = self.density.unpack(self.density.sample_prior(PRIOR_DRAWS, rng))
        return class_prior_and_frequencies(prior, self.data.table.X)

    @property
    def prior_pi_draws(self) -> Array:
        """The class prior's own prior: π under draws of the priors."""
        return self._prior_pi_and_c[0]

    # Predictions ------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> Array:
        """P(y | x) as an array of shape (n, 2), averaged over the posterior."""
        values, _ = self.data.table.transform(X)
        t = summaries.mean_by_row(self.draws, PanelParameters.t, values)
        return np.column_stack([1 - t, t])

    def predict(self, X: Any) -> NDArray[np.int8]:
        """The more probable class of every row."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(np.int8)

    def class_probability(self, X: Any, *, ci_prob: float = CI_PROB) -> pd.DataFrame:
        """P(y=1 | x) with its equal-tailed interval."""
        values, index = self.data.table.transform(X)
        return summaries.summary_by_row(self.draws, PanelParameters.t, values, index, ci_prob)

    def propensity(self, X: Any, *, ci_prob: float = CI_PROB) -> pd.DataFrame:
        """s_j(x) = P(l_j=1 | y=1, x) of every annotator, one line per row and annotator.

        ``.xs("anna", level="annotator")`` picks one annotator, ``["mean"].unstack()`` makes one
        column of each.
        """
        values, index = self.data.table.transform(X)

        def of(j: int) -> pd.DataFrame:
            return summaries.summary_by_row(
                self.draws, lambda draws, rows: draws.s(rows, j), values, index, ci_prob
            )

        parts = {name: of(j) for j, name in enumerate(self.annotator_names)}
        table = pd.concat(parts, names=["annotator"])
        order = np.arange(len(table)).reshape(len(parts), -1).T.ravel()
        return table.swaplevel().iloc[order]

    def missed(self, *, ci_prob: float = CI_PROB) -> pd.DataFrame:
        """P(y=1 | x, labels) of the rows the model was fitted on.

        It is 1 where anybody labelled the row; elsewhere it is the probability that everybody who
        saw the row missed it. Audited rows keep their class.
        """
        data = self.data
        rows = np.arange(data.n)

        def positive(draws: PanelParameters, i: NDArray[np.intp]) -> Array:
            return draws.positive(data.table.X[i], data.labels[i], data.table.kind[i])

        return summaries.summary_by_row(self.draws, positive, rows, data.table.index, ci_prob)

    def class_prior(self, *, ci_prob: float = CI_PROB) -> pd.DataFrame:
        """π = E t(x) and each annotator's label frequency c_j = P(l_j=1 | y=1).

        With the implied priors (rows ``prior of pi`` and ``prior of c``): a posterior as wide as
        its prior has learned nothing.
        """
        rows = {"pi": self.pi_draws}
        rows |= {f"c[{n}]": c for n, c in zip(self.annotator_names, self.c_draws.T, strict=True)}
        rows["prior of pi"] = self.prior_pi_draws
        rows["prior of c"] = self._prior_pi_and_c[1][:, 0]  # the same for every annotator
        return pd.DataFrame({k: summaries.describe_draws(v, ci_prob) for k, v in rows.items()}).T

    def annotators(self, *, ci_prob: float = CI_PROB) -> pd.DataFrame:
        """One line per annotator: rows seen and labelled, label frequency, what sets them apart.

        ``shared`` counts the rows that somebody else labelled too; ``mean``, ``lower`` and
        ``upper`` are of c_j = P(l_j=1 | y=1); ``differs_in`` names the columns whose slope is
        higher (+) or lower (-) than the average annotator's with 95 % probability.
        """
        labelled = self.data.labelled
        table = pd.DataFrame(
            {
                "seen": self.data.shown.sum(axis=0),
                "labelled": labelled.sum(axis=0),
                "shared": (labelled & (labelled.sum(axis=1) > 1)[:, None]).sum(axis=0),
            },
            index=pd.Index(self.annotator_names, name="annotator"),
        )
        for name in ("mean", "lower", "upper"):
            table[name] = [summaries.describe_draws(c, ci_prob)[name] for c in self.c_draws.T]
        table["differs_in"] = [self._differences(j) for j in range(len(table))]
        return table

    def agreement(self, *, ci_prob: float = CI_PROB) -> pd.DataFrame:
        """Rows labelled by each pair, by nobody and by exactly k, against what the model expects.

        ``expected``, ``lower`` and ``upper`` come from labels replicated from the posterior, with
        annotators independent given x and the class; ``z`` is the deviation in their standard
        deviations.
        """
        return self.replicated_agreement.to_frame(summaries.tail_probabilities(ci_prob))

    # The model and its draws ------------------------------------------------------------------

    @cached_property
    def identifiability(self) -> Identifiability:
        """What these data can and cannot say: level, verdict, and the checks behind them."""
        return diagnose_panel(self)

    def summary(self, *, var_names: list[str] | None = None) -> pd.DataFrame:
        """Table of the parameters: `arviz.summary` of the draws."""
        import arviz as az

        wanted = ("pi", "c", "a", "b", "alpha", "beta", "sigma_alpha", "sigma_beta")
        available = self.tree["posterior"].data_vars
        return az.summary(self.tree, var_names=var_names or [v for v in wanted if v in available])

    @cached_property
    def model(self) -> "pm.Model":
        """The PyMC model with the same density, for inspection and extension."""
        return specification.build(self.form, self.data, self.priors)

    @cached_property
    def density(self) -> PanelDensity:
        """The compiled log density of the unconstrained coordinates."""
        return PanelDensity(self.form, self.data, self.priors)

    @cached_property
    def tree(self) -> "xr.DataTree":
        """The ArviZ DataTree of this fit."""
        return tree.to_tree(self)

    def save(self, path: str | Path) -> Path:
        """Write everything to one netCDF file; read it back with `load_panel`."""
        return tree.write(self, Path(path))

    @cached_property
    def replicated_agreement(self) -> Agreement:
        """Counts of agreement, observed and replicated from the posterior."""
        rng = np.random.default_rng([self.settings["random_seed"], 7])
        return compare_agreement(self.draws, self.data, rng)

    def _differences(self, j: int) -> str:
        """Columns in which annotator j stands apart, with the sign of the difference."""
        gap = self.draws.alpha[:, j] - self.draws.alpha.mean(axis=1)
        lower, upper = np.quantile(gap, summaries.tail_probabilities(DISTINCT), axis=0)
        apart = [
            (name, low > 0)
            for name, low, high in zip(self.feature_names, lower, upper, strict=True)
            if low * high > 0
        ]
        return ", ".join(f"{name} {'+' if more else '-'}" for name, more in apart)

    # Display ----------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return facts_as_text(self._headline(), self._facts())

    def _repr_html_(self) -> str:
        return facts_as_html(self._headline(), self._facts())

    def _headline(self) -> str:
        return f"bayes_lepu panel fit: {self.form.name}, {len(self.annotator_names)} annotators"

    def _facts(self) -> dict[str, str]:
        data = self.data
        rows = f"{data.n} rows, {data.table.p} columns, {int(data.table.l.sum())} labelled by "
        rows += f"anybody, {data.recaptures} by two or more, {data.table.n_audited} audited"
        if data.unseen:
            rows += f", {data.unseen} shown to nobody"
        table = self.class_prior()
        low, high = table.loc["prior of pi", ["lower", "upper"]]
        frequencies = [
            f"{n} {c:.2f}" for n, c in zip(self.annotator_names, self.c_draws.mean(0), strict=True)
        ]
        facts = {
            "data": rows,
            "model": self.form.mechanism,
            "class prior pi": f"{show_estimate(table.loc['pi'])}; prior {low:.3f} to {high:.3f}",
            "label freq. c": ", ".join(frequencies),
        }
        if data.n * len(self.annotator_names) > QUICK_CELLS and "identifiability" not in vars(self):
            return facts | {"verdict": "not computed yet: ask for fit.identifiability"}
        found = self.identifiability
        facts["verdict"] = f"level {found.level}: {found.verdict}"
        return facts | {"carried by": ", ".join(found.carried_by)}


def load_panel(path: str | Path) -> PanelFit:
    """Read a fit written by `PanelFit.save`."""
    return PanelFit(**tree.read(Path(path)))
