"""`Fit`: a fitted model with everything one can ask of it; `load`: a fit read from its file."""

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
    """The frozen answer of one call to `fit`: draws or point estimate, data, and what redoes it.

    ``ci_prob`` of a method is the probability of its equal-tailed intervals, by default ArviZ's
    ``stats.ci_prob``. ``by`` makes groups: a column of the fit, a list of several, or values for
    every row, also of columns that are no features.

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
        By what and when it was computed.
    stats : mapping of str to array
        Sampler statistics of shape ``(chain, draw)``, and what else belongs to single draws.
    quality : Quality
        How well the engine did, by its own measure.
    levels : pair of arrays, optional
        π (draw,) and c (draw, J), where computing them would take a pass over rows out of memory.
    remembered : Remembered, optional
        What was known of the rows when the fit was saved after its verdict, or without rows.
    log_likelihood : array, optional
        ``(chain, draw, row)``, of a trace that was sampled from another density than the model's.
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
        """Lines of Python that give the same numbers, from the table ``X`` and the labels ``l``."""
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
        """Whether the rows are there: a fit can be saved without them."""
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
        """Label frequency c, for every draw; of several annotators their mean."""
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

        Where a few draws have t and s swapped, they can pull the mean out of a narrow interval;
        ``fit.orientation.probability`` is the share of the others.
        """
        return self._summarise(Parameters.t, X, ci_prob)

    def propensity(
        self, X: Any, *, visits: Mapping[str, Any] | None = None, ci_prob: float | None = None
    ) -> pd.DataFrame:
        """s(x) = P(l=1 | y=1, x) with its interval.

        Several annotators have one line per row and annotator: ``.xs("anna", level="annotator")``
        picks one, ``["mean"].unstack()`` makes one column of each. ``visits`` of `fit` are those of
        an average visit unless given here by name: a number, one per row, or a table as in `fit`.
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

        `fit` computes them, so that showing a fit computes nothing.
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
        """A thousand draws of the prior along one axis."""
        if flat := [name for name, prior in self.priors.items() if not prior.proper]:
            raise ModelError(
                f"The prior of {', '.join(flat)} is flat and cannot be sampled. Fit with "
                "method='nuts' or 'laplace', or pass proper priors."
            )
        rng = np.random.default_rng([self.options.random_seed, 3])
        return self.density.unpack(self.density.sample_prior(1000, rng))

    @cached_property
    def prior_pi_and_c(self) -> tuple[Array, Array]:
        """π and c of the draws of the prior, over 2,000 of the rows."""
        if self.remembered is not None:
            return self.remembered.prior_pi, self.remembered.prior_c
        some = replace(self, data=self.data.some(2000))
        pi, c = some.class_prior_draws(self.prior_draws)
        return pi, c.mean(axis=1)

    def annotators(self, *, ci_prob: float | None = None) -> pd.DataFrame:
        """One line per annotator: rows seen and labelled, label frequency, what sets them apart.

        ``shared`` counts the rows that somebody else labelled too; ``mean``, ``lower`` and
        ``upper`` are of c_j = P(l_j=1 | y=1); ``differs_in`` names the columns whose slope is
        higher (+) or lower (-) than the average annotator's with 95 % probability.
        """
        return summaries.annotator_table(self, ci_prob)

    def accept_unseen(self) -> Self:
        """The same fit, which takes new rows with levels that no training row had.

        The most frequent level stands in for them.
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

        One line per column, the most important first; columns ``t`` and, where it varies, ``s``:
        the mean square that shuffling the column changes the factor by, over twice the factor's
        variance. 0: the column has no effect; 1: nothing else matters. Columns that act together or
        are alike share what they explain, so the sum need not be 1.
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

        Estimates are on the scale of the fit, and as ``a_original`` on that of your columns.
        ``var_names`` picks variables of the PyMC model. ``round_to`` is the number of digits, as
        many as the Monte-Carlo error allows by default; "none" leaves all.
        """
        from bayes_lepu.result.tree import stored_groups

        # The tree has the variables of a trace too, and needs the rows.
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

    # Verdict, groups and audits ----------------------------------------------------------------

    @cached_property
    def identifiability(self) -> Identifiability:
        """What these data can and cannot say: level, verdict, and the checks behind them.

        Computed once. Of a Dask collection a random sample of the rows is judged (`sample`).
        """
        with announced("Judging what the labels identify", aloud=self.options.progressbar):
            return diagnose(self.sample)

    @cached_property
    def sample(self) -> "Fit":
        """The same model fitted to the rows in memory, for what needs single rows.

        That is this fit, unless its rows are those of a Dask collection: then it is one to a random
        sample of them. Verdict and report are about it.
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
        """Bounds of the class prior that hold without any form of t and s.

        They need h = P(l=1 | x) alone, which can be checked, and what you assume about s: its
        smallest and largest value for a positive row. One line per assumption (``nothing`` first):
        ``lower`` and ``upper``, and ``lowest`` and ``highest``, the outer ends of their intervals
        (missing for a point estimate).
        """
        return bound_class_prior(self, s_min=s_min, s_max=s_max, ci_prob=ci_prob)

    def audit_estimate(self, *, by: By | None = None, ci_prob: float | None = None) -> pd.DataFrame:
        """How many positives there are by the rows audited at random, whatever the model.

        The mean of the audited classes is corrected by the fit's predictions, each made without
        the row's own class (prediction-powered inference). The interval holds its level for any
        model, few audits and rare classes; the better the model, the shorter it is.

        Lines ``missed`` (positives that nobody has marked or audited yet), ``positives`` and
        ``share``, for every group. Columns ``estimate``, ``lower``, ``upper``; ``alone_lower`` and
        ``alone_upper``, the interval without the model's help; ``model``, ``model_lower`` and
        ``model_upper``, what the fit gives; ``audits``, the rows used.
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
        label frequency each, and c is the mean of these. Draws come with the prior of both (rows
        ``prior of pi`` and ``prior of c``): a posterior as wide as that has learned nothing.

        By group it is the share of positives given the labels, with ``rows`` and ``marked``;
        ``.attrs["rests_on"]`` says what it rests on.
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

        The ratio can be known where the level of π is not: if positives are marked alike in both
        groups, or at one rate in each. ``rests_on`` says which of them this fit assumes. ``a`` and
        ``b`` are the names of the groups.
        """
        self._require_memory("compare_groups")
        groups = read_groups(self.data, by)
        return compare_groups(self, self.identifiability, groups, a, b, ci_prob)

    def suggest_audit(
        self, k: int, *, goal: str = "total", random_seed: int | None = None
    ) -> AuditPlan:
        """Which k unlabelled rows to audit.

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

        ``plan.to_csv(path)`` writes the rows; give the answers back by
        ``fit.update(audits=lepu.read_audit(path))`` or ``fit.update(y=answers, audits=plan)``.
        """
        self._require_memory("suggest_audit")
        return suggest_audit(self, k, goal=goal, random_seed=random_seed)

    def plan_audit(self, *, width: float, ci_prob: float | None = None) -> pd.Series:
        """How many rows to audit at random by themselves, and with this fit's help if it is right.

        ``width`` is how wide the interval of the share of positives among the unlabelled rows may
        be, from end to end. With its help: rows drawn by ``suggest_audit(goal="total")`` and
        evaluated by `audit_estimate`.
        """
        self._require_memory("plan_audit")
        return plan_with(self, width, ci_prob)

    @cached_property
    def answer(self) -> Answer:
        """The fit in plain sentences: how many were missed, where to look, whether to trust it.

        Computed once, from the verdict; the report and the command line say the same.
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
            Rows that were left unlabelled: P(y=1 | x, l=0). By default the rows of the fit with
            all that is known of them: P(y=1 | x, labels), which is 1 where a mark is proof, and
            the class itself where it was checked. For the total by default those of the fit that
            nobody marked and whose class nobody has checked.
        total : bool
            Count the positives among the rows instead of rating each row: one line ``as named``
            and, where the data do not show which factor is the class, ``swapped`` with t and s
            swapped. Of the rows of the fit ``low`` and ``high`` come first: the range over
            all models that predict the labels as well. ``lower`` and ``upper`` hold if this model
            is exact: the uncertainty of the parameters, and the chance of single rows. Weighted
            rows of the fit count as if they were repeated.
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
        """How the answer moves with how much the annotator may vary.

        Parameters
        ----------
        scales : sequence of float
            Values of S: the columns together may change the log-odds of a positive being marked by
            so much (prior standard deviation). 0 is a constant propensity.
        budget : int
            How many rows would be reviewed first.

        Returns
        -------
        DataFrame
            One line per S, by point estimates: ``class_prior``, ``missed``, ``same_rows`` (share of
            the first ``budget`` rows that this fit also puts first), and ``behind``, how many
            log-likelihood units S predicts these labels worse than the best one. A larger S always
            fits the labels at hand a little better; a difference below 2 units says nothing.
        """
        self._require_memory("sensitivity")
        return sensitivity(self, scales, budget)

    def agreement(self, *, ci_prob: float | None = None) -> pd.DataFrame:
        """Rows labelled by each pair, by nobody and by exactly k, against what the model expects.

        ``expected``, ``lower`` and ``upper`` come from labels replicated from the posterior, with
        annotators independent given x and the class; ``z`` is the deviation in their standard
        deviations. For several annotators.
        """
        if self.data.n_annotators == 1:
            raise ModelError("There is one annotator only, who agrees with himself.")
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

        Rows are taken by P(y=1 | x, l=0), the most probable first. Where the data do not show which
        factor is the class, the outcome is given also with t and s swapped; at level 4, where they
        identify P(l=1 | x) alone, rows are taken by that. Rows count once,
        whatever their ``sample_weight``.

        Parameters
        ----------
        X : DataFrame or array, optional
            Rows that the annotator left unlabelled; by default those of the fit whose class nobody
            has checked.
        budget : int, optional
            Take so many rows.
        cost : (float, float), optional
            Cost of a review in vain and cost of an overlooked positive: take the rows that are
            worth it, those with P(y=1 | x, l=0) above fp / (fp + fn).
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
        """Fit again with what has been learned since, everything else as it was.

        Parameters
        ----------
        y : Series or array, optional
            Newly audited classes, 0 or 1: by row label, or one value per row with NaN where
            nothing new is known. They are added to those the fit has, or replace them.
        audits : AuditPlan or {"random", "chosen"}, optional
            The plan of `suggest_audit`, with the answers in its column y or in y here; or how all
            audited rows together were picked; see `fit`. By default "chosen" where y brings new
            ones, else as it was.
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
        """Whether the verdict has been asked for, and is there."""
        return "identifiability" in vars(self)

    @property
    def _printed(self) -> "Remembered | None":
        """What the fit printed before it was saved, unless it has been judged anew."""
        return None if self._judged else self.remembered

    @property
    def _level(self) -> int:
        """What the data identify, as the verdict has it."""
        return (self._printed or self.identifiability).level

    @property
    def _alternatives(self) -> Alternatives:
        """What the models give that predict the labels as well."""
        if self._printed is not None:
            return Alternatives(self._printed.pi_range, self._printed.hits)
        return alternatives_of(self, self.identifiability)

    def _remember(self) -> "Remembered":
        from bayes_lepu.result.saved import Remembered

        facts = (self.answer, self._facts())[1]  # which then have the verdict
        prior = (np.zeros(0),) * 2 if self.is_point else self.prior_pi_and_c
        level = self.identifiability.level
        return Remembered(
            self.pi_draws, self.c_by_annotator, *prior, level, *self._alternatives, facts
        )

    @stops_at_once
    def save(self, path: str | Path, *, data: bool = True) -> Path:
        """Write the fit to one netCDF file; read it with `load`.

        A fit that was printed prints the same after `load`, and computes nothing for it. ArviZ
        reads the draws from the same file; ``fit.tree.to_netcdf(path)`` writes all groups for it.

        ``data=False`` leaves the rows out. The file is then small and holds nobody's data; it has
        the verdict and predicts new rows, and decides on them where the verdict names the factors
        (levels 1 and 2). What needs the rows (report, update, `tree`, another verdict) is an error.
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
        """What is not computed from the rest, for pickling."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __repr__(self) -> str:
        return facts_as_text(self._headline(), self._facts())

    def _repr_html_(self) -> str:
        return facts_as_html(self._headline(), self._facts())

    def __str__(self) -> str:
        if self._printed is None:
            _ = self.answer  # judged first; repr() shows what is known and computes nothing
        return repr(self)

    def _headline(self) -> str:
        count = self.data.n_annotators
        who = f", {count} annotators" if count > 1 else ""
        return f"bayes_lepu fit: {self.spec.name}{who}, method={self.method}"

    def _facts(self) -> dict[str, str]:
        if self._printed is not None:
            return dict(self._printed.facts)
        if not self._judged:
            return facts_of(self) | {"verdict": "not asked for yet: print(fit), or fit.answer"}
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
        The propensity and the class of the fit, where their links are your own.

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
