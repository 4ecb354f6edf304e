"""`Fit`: a fitted model with everything one can ask of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.diagnostics.agreement import agreement_of
from bayes_lepu.diagnostics.bounds import bound_class_prior
from bayes_lepu.diagnostics.forms import FormRange
from bayes_lepu.diagnostics.identifiability import diagnose
from bayes_lepu.diagnostics.records import Identifiability
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.result import FittedModel
from bayes_lepu.result.facts import estimate_in_words
from bayes_lepu.result.saved import to_saved, write
from bayes_lepu.result.summaries import interval_level, summary_by_row, tail_probabilities
from bayes_lepu.result.without_rows import Remembered
from bayes_lepu.runtime.files import page_name
from bayes_lepu.runtime.interruption import stops_at_once
from bayes_lepu.settling.audits import AuditPlan, plan_with, suggest_audit
from bayes_lepu.settling.counting import count_missed
from bayes_lepu.settling.decisions import Decision, decide
from bayes_lepu.settling.groups import (
    By,
    Comparison,
    compare_groups,
    read_groups,
    shares_table,
)
from bayes_lepu.settling.plain_answer import Answer, answer
from bayes_lepu.settling.prediction_powered import audit_estimate
from bayes_lepu.settling.readings import UNNAMED_LEVEL, positive_given_labels


@dataclass(frozen=True, eq=False, repr=False)
class Fit(FittedModel):
    """The frozen answer of one call to `fit`."""

    @cached_property
    def identifiability(self) -> Identifiability:
        """What these data can and cannot say: level, verdict, and the checks behind them.

        Computed once; `bayes_lepu.diagnose` recomputes, and adds the slow checks on request. Of
        a Dask collection a random sample of the rows is judged (`sample`).
        """
        return diagnose(self.sample)

    @cached_property
    def sample(self) -> "Fit":
        """The same model fitted to the rows in memory, for what needs single rows.

        That is this fit, unless its rows are those of a Dask collection: then it is one to a random
        sample of them. Verdict and report are about it.
        """
        if self.data.in_memory:
            return self
        from bayes_lepu.refitting import fit_sample

        return fit_sample(self)

    def bounds(
        self,
        *,
        s_min: float | None = None,
        s_max: float | None = None,
        gamma: float | None = None,
        ci_prob: float | None = None,
    ) -> pd.DataFrame:
        """Bounds of the class prior that hold without any form of t and s.

        They need h = P(l=1 | x) alone, which can be checked, and what you are ready to assume on s.

        Parameters
        ----------
        s_min, s_max : float, optional
            Smallest and largest propensity of a positive row.
        gamma : float, optional
            The odds of being marked differ between positive rows by at most this factor, and the
            rows most often marked are surely positive. 1 is a constant s.
        ci_prob : float, optional
            Probability of the intervals of the ends; ArviZ's ``stats.ci_prob`` by default.

        Returns
        -------
        DataFrame
            One line per assumption (``nothing`` first): ``lower`` and ``upper``, and ``lowest`` and
            ``highest``, the outer ends of their intervals (missing for a point estimate).

        Examples
        --------
        >>> import bayes_lepu as lepu
        >>> demo = lepu.load_demo()
        >>> fit = lepu.fit(demo.X, demo.l, model="spm", method="map", random_seed=1)
        >>> list(fit.bounds(s_min=0.2).index)
        ['nothing', 's between 0.2 and 1']
        """
        return bound_class_prior(self, s_min=s_min, s_max=s_max, gamma=gamma, ci_prob=ci_prob)

    def audit_estimate(self, *, by: By | None = None, ci_prob: float | None = None) -> pd.DataFrame:
        """How many positives there are by the rows audited at random, whatever the model.

        The mean of the audited classes is corrected by the fit's predictions, each made without
        the row's own class (prediction-powered inference). The interval holds its level for any
        model, few audits and rare classes; the better the model, the shorter it is.

        Parameters
        ----------
        by : str, list of str, Series, array or function, optional
            Groups: a column of the fit, several of them, a value for every row (also of a column
            that is no feature), or a function of the table of columns.
        ci_prob : float, optional
            Probability of the intervals; ArviZ's ``stats.ci_prob`` by default.

        Returns
        -------
        DataFrame
            Lines ``missed`` (positives that nobody has marked or audited yet), ``positives`` and
            ``share``, for every group where asked for. Columns ``estimate``, ``lower``, ``upper``;
            ``alone_lower`` and ``alone_upper``, the interval without the model's help; ``model``,
            ``model_lower`` and ``model_upper``, what the fit gives; ``audits``, the rows used.

        Examples
        --------
        >>> import bayes_lepu as lepu
        >>> demo = lepu.load_demo()
        >>> fit = lepu.fit(demo.X, demo.l, model="scar", method="map", random_seed=1)
        >>> found = pd.Series(demo.y)[demo.l == 0].sample(100, random_state=1)
        >>> list(fit.update(y=found, audits="random").audit_estimate().index)
        ['missed', 'positives', 'share']
        """
        self._require_memory("audit_estimate")

        def again(y: Array) -> Parameters:
            return replace(self, data=replace(self.data, y=y)).update().draws

        groups = None if by is None else read_groups(self.data, by)
        return audit_estimate(self, groups, again, ci_prob=interval_level(ci_prob))

    def class_prior(self, *, by: By | None = None, ci_prob: float | None = None) -> pd.DataFrame:
        """π = E t(x), the class prior, and c = P(l=1 | y=1), the label frequency; or π by group.

        Several annotators have a label frequency each, and c is the mean of these. Draws come with
        the prior of both (rows ``prior of pi`` and ``prior of c``): a posterior as wide has learned
        nothing.

        Parameters
        ----------
        by : str, list of str, Series, array or function, optional
            Groups: a column of the fit, several of them, a value for every row (also of a column
            that is no feature), or a function of the table of columns.
        ci_prob : float, optional
            Probability of the intervals; ArviZ's ``stats.ci_prob`` by default.

        Returns
        -------
        DataFrame
            By group: share of positives given the labels, ``mean``, ``lower`` and ``upper`` if the
            form is exact, ``low`` and ``high`` over the alternative models that fit the labels as
            well, ``rows`` and ``marked``. ``.attrs["rests_on"]`` says what it rests on.
        """
        if by is None:
            return super().class_prior(ci_prob=ci_prob)
        self._require_memory("class_prior")
        return shares_table(self, self._forms, read_groups(self.data, by), ci_prob)

    def compare_groups(self, by: By, a: Any, b: Any, *, ci_prob: float | None = None) -> Comparison:
        """Ratio and difference of the shares of positives in two groups.

        The ratio can be known where the level of π is not: if positives are marked alike in both
        groups, or at one rate in each. ``rests_on`` says which of them this fit assumes.

        Parameters
        ----------
        by : str, list of str, Series, array or function
            Groups; see `class_prior`.
        a, b : object
            Names of the two groups.
        ci_prob : float, optional
            Probability of the intervals; ArviZ's ``stats.ci_prob`` by default.

        Returns
        -------
        Comparison

        Examples
        --------
        >>> import bayes_lepu as lepu
        >>> demo = lepu.load_demo()
        >>> fit = lepu.fit(demo.X, demo.l, model="scar", method="map", random_seed=1)
        >>> list(fit.compare_groups(demo.X["brightness"] > 100, True, False).table.index)
        ['ratio', 'difference', 'True', 'False', 'all']
        """
        self._require_memory("compare_groups")
        return compare_groups(self, self._forms, read_groups(self.data, by), a, b, ci_prob)

    @property
    def _forms(self) -> FormRange | None:
        evidence = self.identifiability.evidence
        return None if evidence is None else evidence.forms

    def suggest_audit(
        self,
        k: int,
        *,
        goal: str = "total",
        random_share: float | None = None,
        random_seed: int | None = None,
    ) -> AuditPlan:
        """Which k unlabelled rows to audit.

        Parameters
        ----------
        k : int
            How many rows can be audited.
        goal : {"total", "find", "orientation"}
            ``total``: rows at random, uncertain ones more often, for the number of positives.
            ``find``: the rows that are most probably positive. ``orientation``: the rows whose
            class tells most about which factor is the class.
        random_share : float, optional
            Share of the k rows that is drawn at random: 1 for the total, else 0.2.
        random_seed : int, optional
            Seed of the draw; by default the fit's own.

        Returns
        -------
        AuditPlan
            ``plan.to_csv(path)`` writes the rows; give the answers back by
            ``fit.update(audits=lepu.read_audit(path))`` or ``fit.update(y=answers, audits=plan)``.

        Examples
        --------
        >>> import bayes_lepu as lepu
        >>> demo = lepu.load_demo()
        >>> fit = lepu.fit(demo.X, demo.l, model="scar", method="map", random_seed=1)
        >>> len(fit.suggest_audit(20).rows)
        20
        """
        self._require_memory("suggest_audit")
        return suggest_audit(self, k, goal=goal, random_share=random_share, random_seed=random_seed)

    def plan_audit(self, *, width: float, ci_prob: float | None = None) -> pd.Series:
        """How many rows to audit at random, with and without the help of this fit.

        Parameters
        ----------
        width : float
            How wide the interval of the share of positives among the unlabelled rows may be, from
            end to end.
        ci_prob : float, optional
            Probability of the interval; ArviZ's ``stats.ci_prob`` by default.

        Returns
        -------
        Series
            Number of audits by themselves, and of those drawn by ``suggest_audit(goal="total")``
            and evaluated by `audit_estimate`, if the fit is right.
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
        self, X: Any = None, *, total: bool = False, ci_prob: float | None = None
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
            Count the positives among the rows instead of rating each row. The interval holds the
            uncertainty of the parameters and the chance of single rows. Weighted rows of the fit
            count as if they were repeated.
        ci_prob : float, optional
            Probability of the equal-tailed intervals; ArviZ's ``stats.ci_prob`` by default.

        Returns
        -------
        DataFrame
            One line per row of X; or, of the total, one line per reading: ``as named`` and, where
            the data do not say which factor is the class, ``exchanged``.
        """
        if total:
            return count_missed(self, X, ci_prob=ci_prob, both=self._unnamed)
        if X is not None:
            return super().missed(X, ci_prob=ci_prob)
        self._require_memory("missed")
        rows, positive = np.arange(self.data.n), positive_given_labels(self.data)
        return summary_by_row(self.draws, positive, rows, self.data.index, ci_prob)

    def agreement(self, *, ci_prob: float | None = None) -> pd.DataFrame:
        """Rows labelled by each pair, by nobody and by exactly k, against what the model expects.

        ``expected``, ``lower`` and ``upper`` come from labels replicated from the posterior, with
        annotators independent given x and the class; ``z`` is the deviation in their standard
        deviations. For several annotators.
        """
        if self.data.n_annotators == 1:
            raise ModelError("There is one annotator only, who agrees with himself.")
        evidence = self.identifiability.evidence
        kept = None if evidence is None else evidence.agreement
        return (kept or agreement_of(self)).to_frame(tail_probabilities(ci_prob))

    def decide(
        self,
        X: Any = None,
        *,
        budget: int | None = None,
        cost: tuple[float, float] | None = None,
        precision: float | None = None,
        ci_prob: float | None = None,
    ) -> Decision:
        """Which unlabelled rows to look at, and how many positives one will find there.

        Rows are taken by P(y=1 | x, l=0), the most probable first. Where the data do not say which
        factor is the class, what will be found is told for both namings. These are numbers of rows
        of the table, each counted once whatever its ``sample_weight``; ``missed(total=True)`` is
        weighted.

        Parameters
        ----------
        X : DataFrame or array, optional
            Rows that the annotator left unlabelled; by default those of the fit whose class nobody
            has checked.
        budget : int, optional
            Take so many rows.
        cost : (float, float), optional
            Cost of looking in vain and cost of an overlooked positive: take the rows that are
            worth it, those with P(y=1 | x, l=0) above fp / (fp + fn).
        precision : float, optional
            Take as many rows as leave the expected share of positives at least this high.
        ci_prob : float, optional
            Probability of the equal-tailed intervals; ArviZ's ``stats.ci_prob`` by default.

        Returns
        -------
        Decision
            ``rows``, ``outcome`` (positives, precision, recall with intervals) and ``draws``.

        Examples
        --------
        >>> import bayes_lepu as lepu
        >>> demo = lepu.load_demo()
        >>> fit = lepu.fit(demo.X, demo.l, model="scar", method="laplace", random_seed=1)
        >>> len(fit.decide(budget=100).rows)
        100
        """
        if X is None:
            self._require_memory("decide")
        return decide(
            self,
            X,
            budget=budget,
            cost=cost,
            precision=precision,
            ci_prob=ci_prob,
            both=self._unnamed,
        )

    def update(
        self,
        *,
        y: Any = None,
        audits: str | AuditPlan | None = None,
        class_features: Sequence[str | int] | None = None,
        selection_features: Sequence[str | int] | None = None,
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
            nothing new is known. They are added to those the fit has, and replace them where both
            speak of the same row.
        audits : AuditPlan or {"random", "chosen"}, optional
            The plan of `suggest_audit`, with the answers in its column y or in y here; or how all
            audited rows together were picked; see `fit`. By default "chosen" where y brings new
            ones, else as it was.
        class_features, selection_features : sequence, optional
            Other columns for t and for s; see `fit`.
        class_prior, label_frequency : (value, standard error), optional
            π or c, known from elsewhere by now; see `fit`.
        false_marks : bool, optional
            Whether negatives may be marked; see `fit`.
        method : {"nuts", "map", "laplace"}, optional
            Another method; priors that it cannot use are replaced by its defaults.
        random_seed : int, optional
            Another seed; by default the same.

        Returns
        -------
        Fit

        Examples
        --------
        >>> import numpy as np
        >>> import bayes_lepu as lepu
        >>> demo = lepu.load_demo()
        >>> fit = lepu.fit(demo.X, demo.l, model="scar", method="map", random_seed=1)
        >>> rows = demo.X.index[demo.l == 0][:3]
        >>> fit.update(y=pd.Series([0, 1, 0], index=rows)).data.n_audited
        3
        """
        from bayes_lepu.refitting import refit

        self._require_memory("update")
        return refit(
            self,
            y=y,
            audits=audits,
            class_features=class_features,
            selection_features=selection_features,
            learned={
                "class_prior": class_prior,
                "label_frequency": label_frequency,
                "false_marks": false_marks,
                "method": method,
                "random_seed": random_seed,
            },
        )

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

    @property
    def _judged(self) -> bool:
        """Whether the verdict has been asked for, and is there."""
        return "identifiability" in vars(self)

    @property
    def _unnamed(self) -> bool:
        return (self._printed or self.identifiability).level >= UNNAMED_LEVEL

    @property
    def _printed(self) -> Remembered | None:
        """What the fit printed before it was saved, unless it has been judged anew."""
        return None if self._judged else self.remembered

    @stops_at_once
    def save(self, path: str | Path, *, all_groups: bool = False, data: bool = True) -> Path:
        """Write the fit to one netCDF file; read it back with `load`.

        A fit that was printed prints the same after `load`, and computes nothing for it.

        Parameters
        ----------
        path : str or Path
        all_groups : bool
            Whether to write also what `load` makes again by itself and `arviz.from_netcdf` cannot:
            log-likelihood, log prior, prior and predicted labels, so that `arviz.loo` and the like
            work on the file. It grows by some 10 bytes for every row and draw.
        data : bool
            Whether to write the rows. Without them the file is small and holds nobody's data; it
            predicts new rows, and decides on them where the verdict names the factors (levels 1
            and 2); the verdict is made before saving and shown. What needs the rows (report,
            update, `tree`, another verdict) is an error then. A fit that was loaded without rows is
            saved without them.

        Returns
        -------
        Path
            The file written.
        """
        data = data and self.has_rows
        if not data and all_groups:
            raise ModelError("all_groups=True writes what belongs to the rows; data=False no rows.")
        remembered = self._printed
        if remembered is None and ("answer" in vars(self) or not data):
            remembered = self._remember()
        tree = to_saved(self, all_groups=all_groups, remembered=remembered, rows=data)
        return write(tree, Path(path))

    def _remember(self) -> Remembered:
        self.answer  # noqa: B018  the facts then tell the verdict
        prior = (np.zeros(0),) * 2 if self.is_point else self.prior_pi_and_c
        level = self.identifiability.level
        return Remembered(self.pi_draws, self.c_by_annotator, *prior, level, self._facts())

    def report(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        group_by: str | Sequence[str] = (),
        compare_with: Mapping[str, FittedModel] | None = None,
    ) -> Path:
        """Write a self-contained HTML page about this fit, to look at and to send on.

        Parameters
        ----------
        path : str or Path
            The file to write, with a name that ends in .html or .htm.
        title : str, optional
            Heading of the page.
        group_by : str or sequence of str
            Columns by which label rates are shown; by default those that matter most.
        compare_with : mapping of str to Fit, optional
            Fits of the same rows to compare with; by default quick fits of naive and SCAR.

        Returns
        -------
        Path
            The file written.
        """
        from bayes_lepu.report import write_report

        path = page_name(path)
        if not self.data.in_memory:
            sampled = f"A random sample of {self.data.n} of {self.data.n_all} rows"
            return self.sample.report(
                path, title=title or sampled, group_by=group_by, compare_with=compare_with
            )
        _ = self.answer  # kept, so that the page says what print(fit) says
        return write_report(
            self,
            path,
            identifiability=self.identifiability,
            title=title,
            group_by=(group_by,) if isinstance(group_by, str) else tuple(group_by),
            compare_with=compare_with,
        )

    def __str__(self) -> str:
        if self._printed is None:
            _ = self.answer  # judged first; repr() shows what is known and computes nothing
        return repr(self)

    def _facts(self) -> dict[str, str]:
        if self._printed is not None:
            return dict(self._printed.facts)
        if not self._judged:
            return super()._facts() | {"verdict": "not asked for yet: print(fit), or fit.answer"}
        found, facts = self.identifiability, self.answer.facts() | super()._facts()
        if found.exchanged_pi is not None:
            other = estimate_in_words(found.exchanged_pi)
            facts["class prior pi"] += f"; with the factors exchanged {other}"
        by = "" if self.data.in_memory else f" (judged by {self.data.n} rows at random)"
        facts["verdict"] = f"level {found.level}{by}: {found.verdict}"
        return facts | {"carried by": ", ".join(found.carried_by)}
