"""`Fit`: a fitted model with its predictions, verdict and actions; `load` reads one from a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.actions.audits import AuditPlan, audit_estimate, plan_with, suggest_audit
from bayes_lepu.actions.decisions import Decision, decide, rule_of
from bayes_lepu.actions.groups import (
    By,
    Comparison,
    compare_groups,
    read_groups,
    shares_table,
)
from bayes_lepu.actions.missed import (
    MAX_DRAWS,
    UNNAMED_LEVEL,
    Alternatives,
    alternatives_of,
    count_missed,
    positive_given_labels,
)
from bayes_lepu.actions.plain_answer import Answer, answer
from bayes_lepu.actions.sensitivity import SCALES, bound_class_prior, importance, sensitivity
from bayes_lepu.choosing import Choice
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines.engines import Quality
from bayes_lepu.engines.modes import Mode, mode_table
from bayes_lepu.engines.orientation import Orientation
from bayes_lepu.errors import ModelError, announced
from bayes_lepu.factors import Factor
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.options import FitOptions
from bayes_lepu.priors.prior import Priors
from bayes_lepu.result import summaries
from bayes_lepu.result.facts import (
    POSITIVE,
    Provenance,
    call_text,
    estimate_in_words,
    facts_as_html,
    facts_as_text,
    facts_of,
)
from bayes_lepu.result.numbers_in_words import share
from bayes_lepu.runtime.files import page_name, replace_file
from bayes_lepu.runtime.interruption import stops_at_once
from bayes_lepu.verdict.identifiability import diagnose
from bayes_lepu.verdict.labels import agreement
from bayes_lepu.verdict.records import Identifiability

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

    from bayes_lepu.result.saved import Remembered


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """The result of one call to `fit`: draws or a point estimate, the data, and the options.

    ``ci_prob`` of a method is the probability of its equal-tailed intervals, by default ArviZ's
    ``stats.ci_prob``. ``by`` defines groups: a column of the fit, a list of columns, or one value
    per row, which need not be a feature.

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
        Which factor is t and which s, and what decided it.
    options : FitOptions
    provenance : Provenance
        Library versions, date and duration of the computation.
    stats : mapping of str to array
        Sampler statistics and other figures of single draws, of shape ``(chain, draw)``.
    quality : Quality
        The engine's own check of its approximation or convergence.
    levels : pair of arrays, optional
        π (draw,) and c (draw, J), stored if computing them needs a pass over rows out of memory.
    remembered : Remembered, optional
        Results that need the rows, stored when a fit is saved after its verdict or without rows.
    log_likelihood : array, optional
        ``(chain, draw, row)``, if a trace was sampled from another density than the model's.
    choice : Choice, optional
        What ``model="auto"`` compared, the chosen model first; ``choice.to_frame()`` as a table.

    Examples
    --------
    >>> import bayes_lepu as lepu
    >>> demo = lepu.load_demo()
    >>> fit = lepu.fit(demo.X, demo.l, model="spm", method="map", random_seed=1)
    >>> len(fit.decide(budget=100).rows), len(fit.suggest_audit(20).rows)
    (100, 20)
    >>> list(fit.bounds(s_min=0.2).index)
    ['nothing', 's between 0.2 and 1']
    >>> list(fit.sensitivity().columns)
    ['class_prior', 'missed', 'same_rows', 'behind']
    >>> found = pd.Series(demo.y)[demo.l == 0].sample(100, random_state=1)
    >>> list(fit.update(y=found, audits="random").audit_estimate().index)
    ['missed', 'positives', 'share']
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
    remembered: "Remembered | None" = None
    choice: Choice | None = None
    log_likelihood: Array | None = None

    @property
    def method(self) -> str:
        """Name of the engine."""
        return self.options.method

    @property
    def call(self) -> str:
        """Python code that computes this fit again from the table ``X`` and the labels ``l``."""
        return call_text(self)

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
        """Whether the fit has its rows; it can be saved without them."""
        return "X" in vars(self.data)

    @cached_property
    def draws(self) -> Parameters:
        """All draws along one axis."""
        return self.parameters.take_flat()

    @cached_property
    def _pi_and_c(self) -> tuple[Array, Array]:
        if self.remembered is not None:
            return self.remembered.pi, self.remembered.c
        return self.levels or self.class_prior_draws(self.parameters)

    @property
    def pi_draws(self) -> Array:
        """Class prior π, for every draw."""
        return self._pi_and_c[0]

    @property
    def c_draws(self) -> Array:
        """Label frequency c, for every draw; with several annotators the mean over them."""
        return self._pi_and_c[1].mean(axis=1)

    @property
    def c_by_annotator(self) -> Array:
        """Label frequency of every annotator, ``(draw, J)``."""
        return self._pi_and_c[1]

    def class_prior_draws(self, parameters: Parameters) -> tuple[Array, Array]:
        """π = mean of t over the rows and c_j = P(l_j=1 | y=1) = E[s_j t] / E t, for any draws."""
        flat = parameters.take_flat()
        positive, marked, total = summaries.over_all_rows(
            self.data.distinct, summaries.positive_sums, flat
        )
        found = marked if flat.several else marked[:, None]
        return positive / total, found / np.maximum(positive, np.finfo(float).tiny)[:, None]

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
        """t(x) = P(y=1 | x) with its interval.

        If a few draws have t and s swapped, the mean can lie outside a narrow interval;
        ``fit.orientation.probability`` is the share of the draws that do not.
        """
        return self._summarise(Parameters.t, X, ci_prob)

    def propensity(
        self, X: Any, *, visits: Mapping[str, Any] | None = None, ci_prob: float | None = None
    ) -> pd.DataFrame:
        """s(x) = P(l=1 | y=1, x) with its interval.

        With several annotators there is one line per row and annotator:
        ``.xs("anna", level="annotator")`` selects one of them, ``["mean"].unstack()`` gives one
        column for each. ``visits`` are columns by name: a number, one per row, or a table as in
        `fit`. Those not given have the values of an average visit.
        """
        return self._summarise(Parameters.s, X, ci_prob, by_annotator=True, visits=visits)

    def label_probability(self, X: Any, *, ci_prob: float | None = None) -> pd.DataFrame:
        """h(x) = P(l=1 | x) = s(x) t(x) with its interval, for every annotator."""
        return self._summarise(Parameters.h, X, ci_prob, by_annotator=True)

    def _summarise(
        self,
        function: summaries.RowFunction,
        X: Any,
        ci_prob: float | None,
        *,
        by_annotator: bool = False,
        visits: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        values, index = self.data.transform(X, visits)
        if by_annotator and self.data.n_annotators > 1:
            return summaries.summary_by_annotator(self, function, values, index, ci_prob)
        return summaries.summary_by_row(self.draws, function, values, index, ci_prob)

    @cached_property
    def level_draws(self) -> dict[str, Array]:
        """Draws of π and c, of every annotator's c, and of the prior of π and c.

        `fit` computes them in advance, so that printing a fit is instant.
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
        """A thousand draws from the prior, along one axis."""
        if flat := [name for name, prior in self.priors.items() if not prior.proper]:
            raise ModelError(
                f"The prior of {', '.join(flat)} is flat and cannot be sampled. Fit with "
                "method='nuts' or 'laplace', or pass proper priors."
            )
        rng = np.random.default_rng([self.options.random_seed, 3])
        return self.density.unpack(self.density.sample_prior(1000, rng))

    @cached_property
    def prior_pi_and_c(self) -> tuple[Array, Array]:
        """π and c for every draw from the prior, as means over 2,000 of the rows."""
        if self.remembered is not None:
            return self.remembered.prior_pi, self.remembered.prior_c
        some = replace(self, data=self.data.some(2000))
        pi, c = some.class_prior_draws(self.prior_draws)
        return pi, c.mean(axis=1)

    def annotators(self, *, ci_prob: float | None = None) -> pd.DataFrame:
        """One line per annotator: rows seen and labelled, label frequency, unusual slopes.

        ``shared`` counts the rows that somebody else labelled too. ``mean``, ``lower`` and
        ``upper`` describe c_j = P(l_j=1 | y=1). ``differs_in`` lists the columns whose slope is
        higher (+) or lower (-) than the average annotator's with 95 % probability.
        """
        return summaries.annotator_table(self, ci_prob)

    def accept_unseen(self) -> Self:
        """The same fit, which also accepts new rows with levels that no training row had.

        Unseen levels are replaced by the most frequent level.
        """
        encoding = replace(self.data.encoding, accepts_unseen=True)
        own = {
            f.name: vars(self.data)[f.name] for f in fields(self.data) if f.name in vars(self.data)
        }
        return replace(self, data=type(self.data)(**own | {"encoding": encoding}))

    # Parameters -------------------------------------------------------------------------------

    def coefficients(self, *, ci_prob: float | None = None) -> pd.DataFrame:
        """Slopes and intercepts of both factors, on the internal and on the original scale."""
        return summaries.coefficient_table(self, ci_prob)

    def importance(self, *, features: Sequence[str] | None = None) -> pd.DataFrame:
        """How much t and s depend on each of your columns (or on ``features``), by shuffling it.

        One line per column, the most important first. The figures for ``t`` and, where it varies,
        ``s`` are the mean squared change of the factor when the column is shuffled, divided by
        twice the factor's variance. 0: the column has no effect; 1: nothing else matters. The sum
        need not be 1, because columns can interact or be correlated.
        """
        self._require_memory("importance")
        return importance(self, features)

    def summary(
        self,
        *,
        var_names: str | Sequence[str] | None = None,
        ci_prob: float | None = None,
        round_to: int | str = "auto",
    ) -> pd.DataFrame:
        """Table of the parameters, π and c: `arviz.summary` of the draws, or the estimates for MAP.

        Estimates are on the scale of the fit; ``a_original`` and so on are in the units of your
        columns. ``var_names`` selects variables of the PyMC model. ``round_to`` is the number of
        digits, by default as many as the Monte-Carlo error allows; "none" does not round.
        """
        from bayes_lepu.result.tree import stored_groups

        # With draws: the tree, which also has the variables of a trace but needs the rows.
        point = stored_groups(self)["map"] if self.is_point else None
        available = self.tree["posterior"].to_dataset() if point is None else point
        wanted = ["pi", "c", *self.spec.parameters, *self.spec.shape_rates, *self.priors]
        wanted += [f"{v}_original" for v in wanted if self.is_point]
        default = [v for v in dict.fromkeys(wanted) if v in available and v != "rates"]
        names = summaries.checked_names(var_names, available) or default
        if self.is_point:
            return summaries.estimate_table(available, names)
        import arviz as az

        return az.summary(
            self.tree,
            var_names=names,
            ci_prob=summaries.interval_level(ci_prob),
            round_to=round_to,
        )

    def mode_table(self) -> pd.DataFrame:
        """Table of the distinct MAP modes, the fitted one first."""
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

        Groups with an entry for every draw and row are computed on first access.
        """
        from bayes_lepu.result.tree import to_tree

        return to_tree(self)

    @property
    def idata(self) -> "xr.DataTree":
        """The same as `tree`."""
        return self.tree

    # Verdict, groups and audits ----------------------------------------------------------------

    @cached_property
    def identifiability(self) -> Identifiability:
        """What these data identify: level, verdict, and the checks behind them.

        Computed once. For a Dask collection it is computed on a random sample of rows (`sample`).
        """
        with announced("Judging what the labels identify", aloud=self.options.progressbar):
            return diagnose(self.sample)

    @cached_property
    def sample(self) -> "Fit":
        """The same model fitted to rows in memory, for results that need single rows.

        This is the fit itself unless its rows are a Dask collection. For a collection it is a fit
        to a random sample of the rows, on which verdict and report are based.
        """
        if self.data.in_memory:
            return self
        from bayes_lepu._fit import fit_sample

        return fit_sample(self)

    def bounds(
        self,
        *,
        s_min: float | None = None,
        s_max: float | None = None,
        ci_prob: float | None = None,
    ) -> pd.DataFrame:
        """Bounds of the class prior that hold whatever the form of t and s.

        They need only h = P(l=1 | x), which can be checked, and your assumption about s: its
        smallest and largest value for a positive row. One line per assumption (``nothing`` first):
        ``lower`` and ``upper`` are the bounds, ``lowest`` and ``highest`` the outer ends of their
        intervals (missing for a point estimate).
        """
        return bound_class_prior(self, s_min=s_min, s_max=s_max, ci_prob=ci_prob)

    def audit_estimate(self, *, by: By | None = None, ci_prob: float | None = None) -> pd.DataFrame:
        """How many positives there are by the rows audited at random, whatever the model.

        The mean of the audited classes is corrected by the fit's predictions, each made without
        the row's own class (prediction-powered inference). The interval keeps its coverage for any
        model, for few audits and for rare classes. A better model makes it shorter.

        Lines ``missed`` (positives that nobody has marked or audited yet), ``positives`` and
        ``share``, for every group. Columns ``estimate``, ``lower``, ``upper``; ``alone_lower`` and
        ``alone_upper``, the interval from the audits without the model; ``model``, ``model_lower``
        and ``model_upper``, the fit's own figures; ``audits``, the number of rows used.
        """
        self._require_memory("audit_estimate")

        def again(y: Array) -> Parameters:
            return replace(self, data=replace(self.data, y=y)).update().draws

        groups = None if by is None else read_groups(self.data, by)
        return audit_estimate(self, groups, again, ci_prob=summaries.interval_level(ci_prob))

    def class_prior(self, *, by: By | None = None, ci_prob: float | None = None) -> pd.DataFrame:
        """π = E t(x), the class prior, and c = P(l=1 | y=1), the label frequency; or π by group.

        ``low`` and ``high`` are the range of π over all models that predict the labels as well;
        ``lower`` and ``upper`` are its interval if this model is exact. Several annotators have a
        label frequency each, and c is their mean. With draws, the rows ``prior of pi`` and ``prior
        of c`` describe the prior: a posterior as wide as the prior has learned nothing.

        By group it is the share of positives given the labels, with ``rows`` and ``marked``;
        ``.attrs["rests_on"]`` states the assumption that it rests on.
        """
        if by is None:
            rows = self.level_draws.items()
            found = pd.DataFrame({k: summaries.describe_draws(v, ci_prob) for k, v in rows}).T
            if ends := (self._printed or self.identifiability).pi_range:
                found.insert(0, "low", [ends[0] if k == "pi" else np.nan for k in found.index])
                found.insert(1, "high", [ends[1] if k == "pi" else np.nan for k in found.index])
            return found
        self._require_memory("class_prior")
        return shares_table(self, self.identifiability, read_groups(self.data, by), ci_prob)

    def compare_groups(self, by: By, a: Any, b: Any, *, ci_prob: float | None = None) -> Comparison:
        """Ratio and difference of the shares of positives in two groups.

        The ratio can be identified where the level of π is not: if positives are marked alike in
        both groups, or at one rate in each. ``rests_on`` states which of the two this fit assumes.
        ``a`` and ``b`` are the names of the groups.
        """
        self._require_memory("compare_groups")
        groups = read_groups(self.data, by)
        return compare_groups(self, self.identifiability, groups, a, b, ci_prob)

    def suggest_audit(
        self, k: int, *, goal: str = "total", random_seed: int | None = None
    ) -> AuditPlan:
        """Which k unlabelled rows to audit.

        ``plan.to_csv(path)`` writes the rows; enter the answers by
        ``fit.update(audits=lepu.read_audit(path))`` or ``fit.update(y=answers, audits=plan)``.

        Parameters
        ----------
        k : int
            How many rows can be audited.
        goal : {"total", "find"}
            ``total``: rows at random, uncertain ones more often, for the number of positives.
            ``find``: the rows that are most probably positive, and every fifth at random, so that
            the total can be estimated too.
        random_seed : int, optional
            Seed of the draw; by default the fit's own.
        """
        self._require_memory("suggest_audit")
        return suggest_audit(self, k, goal=goal, random_seed=random_seed)

    def plan_audit(self, *, width: float, ci_prob: float | None = None) -> pd.Series:
        """How many rows to audit at random, without this fit and with it (if it is right).

        ``width`` is how wide the interval of the share of positives among the unlabelled rows may
        be, from end to end. With the fit, rows are drawn by ``suggest_audit(goal="total")`` and
        evaluated by `audit_estimate`.
        """
        self._require_memory("plan_audit")
        return plan_with(self, width, ci_prob)

    @cached_property
    def answer(self) -> Answer:
        """The fit in plain sentences: positives missed, rows to review first, whether to trust it.

        Computed once, from the verdict. The report and the command line print the same sentences.
        """
        at_random = self.options.audits == "random" or np.any(self.data.drawn[:, 1] < 1)
        known = at_random and self.data.in_memory and not self.spec.certain
        audited = self.audit_estimate() if known else None
        return answer(self, self.identifiability, audited)

    def missed(
        self,
        X: Any = None,
        *,
        total: bool = False,
        by: By | None = None,
        ci_prob: float | None = None,
    ) -> pd.DataFrame:
        """How likely rows are positive though nobody marked them, or how many of them are.

        Parameters
        ----------
        X : DataFrame or array, optional
            Rows that were left unlabelled: P(y=1 | x, l=0). By default the rows of the fit:
            P(y=1 | x, labels), which is 1 for a marked row (unless marks may be false) and the
            class itself for an audited row. For the total, by default the rows of the fit that
            nobody marked and whose class nobody has checked.
        total : bool
            Count the positives among the rows instead of rating each row: one line ``as named``
            and, where the data do not show which factor is the class, one line ``swapped``, with t
            and s swapped. For the rows of the fit, ``low`` and ``high`` are the range over all
            models that predict the labels as well. ``lower`` and ``upper`` hold if this model is
            exact: they include the uncertainty of the parameters and of the class of every row.
            Weighted rows of the fit count as if they were repeated.
        by : column, list of columns or values for every row of the fit, optional
            The total of every group, with the rows that are ``open``.
        """
        if by is not None:
            if X is not None or not total:
                raise ModelError("by= counts the fit's own rows: fit.missed(total=True, by=...).")
            self._require_memory("missed")
            groups = read_groups(self.data, by)
            return shares_table(self, self.identifiability, groups, ci_prob, missed=True)
        if total:
            pi_range = (self._printed or self.identifiability).pi_range
            return count_missed(
                self, X, ci_prob=ci_prob, both=self._level >= UNNAMED_LEVEL, pi_range=pi_range
            )
        draws = self.draws.thin(MAX_DRAWS)
        if X is not None:
            values, index = self.data.transform(X)
            return summaries.summary_by_row(draws, Parameters.missed, values, index, ci_prob)
        self._require_memory("missed")
        rows, positive = np.arange(self.data.n), positive_given_labels(self.data)
        return summaries.summary_by_row(draws, positive, rows, self.data.index, ci_prob)

    def sensitivity(self, *, scales: Sequence[float] = SCALES, budget: int = 100) -> pd.DataFrame:
        """How the answer depends on how much the annotator's propensity may vary.

        Parameters
        ----------
        scales : sequence of float
            Values of S, the prior standard deviation of the log-odds that a positive is marked,
            over the effect of all columns together. 0 is a constant propensity.
        budget : int
            How many rows would be reviewed first.

        Returns
        -------
        DataFrame
            One line per S, by point estimates: ``class_prior``, ``missed``, ``same_rows`` (share of
            the first ``budget`` rows that this fit also puts first), and ``behind``, the
            log-likelihood units by which S fits these labels worse than the best S. A larger S
            always fits the labels a little better; a difference below 2 units shows nothing.
        """
        self._require_memory("sensitivity")
        return sensitivity(self, scales, budget)

    def agreement(self, *, ci_prob: float | None = None) -> pd.DataFrame:
        """Rows labelled by each pair, by nobody and by exactly k, and the model's expectation.

        ``expected``, ``lower`` and ``upper`` come from labels replicated from the posterior, with
        annotators independent given x and the class; ``z`` is the deviation in their standard
        deviations. For several annotators.
        """
        if self.data.n_annotators == 1:
            raise ModelError("Agreement needs several annotators; this fit has one.")
        return agreement(self, summaries.tail_probabilities(ci_prob))

    def decide(
        self,
        X: Any = None,
        *,
        budget: int | None = None,
        cost: tuple[float, float] | None = None,
        ci_prob: float | None = None,
    ) -> Decision:
        """Which unlabelled rows to review, and how many positives are expected there.

        Rows are ordered by P(y=1 | x, l=0), the most probable first. Where the data do not show
        which factor is the class, the outcome is also given with t and s swapped. At level 4 the
        data identify only P(l=1 | x), and rows are ordered by it. Every row counts once, whatever
        its ``sample_weight``.

        Parameters
        ----------
        X : DataFrame or array, optional
            Rows that the annotator left unlabelled; by default those of the fit whose class nobody
            has checked.
        budget : int, optional
            Take so many rows.
        cost : (float, float), optional
            Costs fp of a review in vain and fn of an overlooked positive: take the rows with
            P(y=1 | x, l=0) above fp / (fp + fn), for which a review is worth its cost.
        """
        if X is None:
            self._require_memory("decide")
        rule = rule_of(budget, cost)
        known = self._alternatives
        return decide(self, X, rule, ci_prob=ci_prob, identified=self._level, known=known)

    def update(
        self,
        *,
        y: Any = None,
        audits: str | AuditPlan | None = None,
        class_prior: tuple[float, float] | None = None,
        label_frequency: tuple[float, float] | None = None,
        false_marks: bool | None = None,
        method: str | None = None,
        random_seed: int | None = None,
    ) -> "Fit":
        """Fit again with new information about the same rows; everything else stays as it was.

        Parameters
        ----------
        y : Series or array, optional
            Newly audited classes, 0 or 1: by row label, or one value per row with NaN where
            nothing new is known. They are added to those the fit has, or replace them.
        audits : AuditPlan or {"random", "chosen"}, optional
            The plan of `suggest_audit`, with the answers in its column y or in the argument y. Or
            how all audited rows together were picked, as in `fit`: by default "chosen" if y is
            given, otherwise as before.
        class_prior, label_frequency, false_marks, random_seed : optional
            As in `fit`; by default as they were.
        method : {"nuts", "map", "laplace"}, optional
            Another method; priors that it cannot use are replaced by its defaults.
        """
        from bayes_lepu._fit import refit

        self._require_memory("update")
        news = {
            "class_prior": class_prior,
            "label_frequency": label_frequency,
            "false_marks": false_marks,
            "method": method,
            "random_seed": random_seed,
        }
        return refit(self, y, audits, {k: v for k, v in news.items() if v is not None})

    def _require_memory(self, method: str) -> None:
        if not self.data.in_memory:
            what = (
                "fit again"
                if method in ("update", "audit_estimate")
                else f"pass some of them: fit.{method}(X)"
            )
            raise ModelError(
                f"Most of the {self.data.n_all} rows of this fit are not in memory; {what}. "
                "fit.sample has the same fit to a random sample of them."
            )

    # What was known when the fit was saved ----------------------------------------------------

    @property
    def _judged(self) -> bool:
        """Whether the verdict has been computed."""
        return "identifiability" in vars(self)

    @property
    def _printed(self) -> "Remembered | None":
        """The stored results of a saved fit, unless its verdict has been computed again."""
        return None if self._judged else self.remembered

    @property
    def _level(self) -> int:
        """The level of the verdict."""
        return (self._printed or self.identifiability).level

    @property
    def _alternatives(self) -> Alternatives:
        """Ranges over the models that predict the labels as well."""
        if self._printed is not None:
            return Alternatives(self._printed.pi_range, self._printed.hits)
        return alternatives_of(self, self.identifiability)

    def _remember(self) -> "Remembered":
        from bayes_lepu.result.saved import Remembered

        facts = (self.answer, self._facts())[1]  # the answer first, so that the facts include it
        prior = (np.zeros(0),) * 2 if self.is_point else self.prior_pi_and_c
        level = self.identifiability.level
        return Remembered(
            self.pi_draws, self.c_by_annotator, *prior, level, *self._alternatives, facts
        )

    @stops_at_once
    def save(self, path: str | Path, *, data: bool = True) -> Path:
        """Write the fit to one netCDF file; read it with `load`.

        A fit that was printed prints the same after `load`, without computing anything. ArviZ
        reads the draws from the same file; ``fit.tree.to_netcdf(path)`` writes all groups.

        ``data=False`` leaves the rows out. The file is then small and contains no personal data. It
        has the verdict, predicts new rows, and decides on new rows at levels 1 and 2. Methods that
        need the rows of the fit (report, update, `tree`, another verdict) raise an error.
        """
        from bayes_lepu.result.saved import to_saved, write_tree

        data = data and self.has_rows
        remembered = self._printed
        if remembered is None and (self._judged or not data):
            remembered = self._remember()
        return write_tree(to_saved(self, remembered=remembered, rows=data), Path(path))

    def report(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        group_by: str | Sequence[str] = (),
    ) -> Path:
        """Write a self-contained HTML page about this fit, to read and to send on.

        Parameters
        ----------
        path : str or Path
            The file to write, with a name that ends in .html or .htm.
        title : str, optional
            Heading of the page.
        group_by : str or sequence of str
            Columns by which label rates are shown; by default those that matter most.
        """
        from bayes_lepu.report.sections import Page, render

        path = page_name(path)
        if not self.data.in_memory:
            sampled = f"A random sample of {self.data.n} of {self.data.n_all} rows"
            return self.sample.report(path, title=title or sampled, group_by=group_by)
        groups = (group_by,) if isinstance(group_by, str) else tuple(group_by)
        return replace_file(path, render(Page(self, groups), title).encode())

    # Display ----------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """The fields without cached results, for pickling."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __repr__(self) -> str:
        return facts_as_text(self._headline(), self._facts())

    def _repr_html_(self) -> str:
        return facts_as_html(self._headline(), self._facts())

    def __str__(self) -> str:
        if self._printed is None:
            _ = self.answer  # computes the verdict; repr() alone computes nothing
        return repr(self)

    def _headline(self) -> str:
        count = self.data.n_annotators
        who = f", {count} annotators" if count > 1 else ""
        return f"bayes_lepu fit: {self.spec.name}{who}, method={self.method}"

    def _facts(self) -> dict[str, str]:
        if self._printed is not None:
            return dict(self._printed.facts)
        if not self._judged:
            return facts_of(self) | {"verdict": "not computed yet: print(fit), or fit.answer"}
        found, facts = self.identifiability, self.answer.facts() | facts_of(self)
        if found.pi_range is not None:
            low, high = (share(end) for end in found.pi_range)
            facts[POSITIVE] = f"{low} to {high}; if this model is exact, {facts[POSITIVE]}"
        if found.exchanged_pi is not None:
            other = estimate_in_words(found.exchanged_pi)
            facts[POSITIVE] += f"; with class and annotator swapped {other}"
        by = "" if self.data.in_memory else f" (judged by {self.data.n} rows at random)"
        facts["verdict"] = f"level {found.level} of 4{by}: {found.verdict}"
        return facts | {"rests on": ", ".join(found.carried_by)}


@stops_at_once
def load(path: str | Path, *, model: Factor | None = None, class_link: Factor | None = None) -> Fit:
    """Read a fit written by `Fit.save`.

    Parameters
    ----------
    path : str or Path
    model, class_link : Factor, optional
        The propensity and the class of the fit, if they have links of your own.

    Examples
    --------
    >>> import tempfile
    >>> import bayes_lepu as lepu
    >>> demo = lepu.load_demo()
    >>> fit = lepu.fit(demo.X, demo.l, model="scar", method="map", random_seed=1)
    >>> path = fit.save(tempfile.mkdtemp() + "/fit.nc")
    >>> bool((lepu.load(path).predict(demo.X) == fit.predict(demo.X)).all())
    True
    """
    from bayes_lepu.result.saved import read_fit

    return Fit(**read_fit(Path(path), model, class_link))
