"""`fit`: fit a model to a table and labels; `refit`: again, with more known about the same rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.actions.audits import (
    CHOSEN,
    PLANNED,
    RANDOM,
    AuditPlan,
    match_rows,
    with_answers,
)
from bayes_lepu.choosing import ANNOTATORS, choose, classes_to_compare, held_out
from bayes_lepu.data.labels import as_numbers, read_classes, read_outside, read_vector
from bayes_lepu.data.learned import (
    AUTO_LEARNERS,
    of_few_kinds,
    read_learner,
    with_learned,
    without_learned,
)
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines.engines import ENGINES, POINT
from bayes_lepu.engines.nuts import refuse_improper
from bayes_lepu.errors import DataError, ModelError, announced
from bayes_lepu.fitted import Fit
from bayes_lepu.links import Array
from bayes_lepu.model import AUTO, get_model
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.options import (
    FitOptions,
    check_audit,
    check_options,
    priors_of,
    read_model,
    spec_of,
    takes_options,
)
from bayes_lepu.priors.prior import GivenPriors, Prior, Priors
from bayes_lepu.result.facts import Provenance
from bayes_lepu.runtime.interruption import stops_at_once


@takes_options(FitOptions)
@stops_at_once
@np.errstate(all="ignore")  # a search meets infinities and leaves them
def fit(options: FitOptions) -> Fit:
    r"""Learn the classifier t(x) = P(y=1 | x) and the propensity s(x) = P(l=1 | y=1, x).

    .. math:: P(l=1 \mid x) = s(x)\,t(x), \qquad t(x) = \sigma(a\cdot x + b)

    Parameters
    ----------
    X : DataFrame (pandas, polars, pyarrow, ...), array or sparse matrix of shape (n, p)
        Features: numbers, flags, and categories or text, which become one column per level except
        a reference level. Columns are matched by name in predictions. For rows that do not fit in
        memory, or are on a cluster: a Dask DataFrame or array, with ``method="map"`` or
        ``"laplace"``; see ``docs/large-data.md``. A sparse matrix (scipy, or a pandas frame of
        sparse columns) is fitted by ``method="map"`` and stays sparse; see ``docs/tables.md``.
    l : sequence of 0/1 or bool, table of them, or names of columns of X
        Visible labels: 1 only for positives. Where 1 is the only value, an empty cell means 0. A
        table with one column per annotator (1 marked, 0 seen and not marked, NaN not shown)
        identifies the class by the agreement of the annotators, if they label independently given
        x and the class; their propensities are partially pooled.
    model : {"auto", "naive", "scar", "spm", "psychm"}, Factor
        How the annotator marks; see `list_models`. ``auto`` compares scar, spm and psychm, with a
        straight and with a learned class, by how well they predict held-out labels, and fits the
        simplest one that is as good as the best (`bayes_lepu.choosing`; ``fit.choice`` has the
        figures). Also the name of another propensity, such as "probit", or a `Factor` from a file
        of your own.
    class_link : {"logistic", "probit", "cloglog", "loglog", "cauchit"}, Factor
        The curve of the class over its linear predictor, logistic by default. Also a `Factor` whose
        rates are known: ``bayes_lepu.factors.ceiling(0.9)`` for a class probability that never
        exceeds .9, or one with a link from a file of your own.
    class_learner : {"auto", "boosting", "kernel", "trees"}, list, classifier of scikit-learn, None
        Classifiers for a class that is not linear in the columns. Their log-odds, trained on the
        labels and cross-fitted, enter t as further columns (see `bayes_lepu.data.learned`); s
        depends on the given columns only. None: t is linear in the columns. ``auto``: with
        ``model="auto"`` held-out labels decide; a model that you name is linear, as in the paper.
    method : {"nuts", "map", "laplace"}
        ``nuts``: posterior draws; ``map``: the mode of the posterior (the paper's penalised MLE
        if ``C`` is given); ``laplace``: a quick Gaussian approximation at the modes.
    y : sequence or the name of a column of X, optional
        Audited classes (0 or 1), NaN where unknown.
    visits : mapping of str to table, optional
        Columns that differ between the annotators of a row, such as the weather at a visit: each a
        table with one row per row of X and one column per annotator, whose names are those of the
        label columns; or the names of columns of X, one per annotator in the order of the labels,
        which then are no features. They enter the propensities with slopes ``delta`` that all
        annotators share; predictions are those of an average visit. With
        ``selection_features=[]`` they alone do: the usual occupancy model.
    sample_weight : sequence of numbers >= 0 or the name of a column of X, optional
        How often every row counts; the same as repeating rows.
    class_prior : (value, standard error), optional
        π = P(y=1) known from an external source, as one more observation.
    label_frequency : (value, standard error), optional
        The same of c = P(l=1 | y=1), the share of positives that is marked.
    false_marks : bool or Prior
        Whether negatives may be marked, at a rate ε of each annotator; by default ~ Beta(1, 99).
    audits : {"random", "chosen"}, optional
        How the audited rows were picked: at random among the unlabelled ones, or by choice
        (default). Random ones identify the class prior without the model (`Fit.audit_estimate`).
        For rows of `Fit.suggest_audit` use ``fit.update(audits=plan)``: the plan has the
        probabilities with which they were drawn.
    class_features, selection_features : sequence of columns, or formula, optional
        Columns that may enter t and s (naive and SCAR: t only); all by default. Different ones
        identify which factor is the class. Or a formula that starts with ``~``, such as
        ``"~ bs(amount, df=5) + country + log(age) + (1 | merchant)"``; where only one factor has
        columns or terms, the other one has the same formula. Splines keep their value outside the
        range of these rows. The coefficients of a spline, and those of the groups, share an
        unknown scale (``sigma_a``); a point estimate maximises its marginal likelihood.
    exclude : sequence of str
        Columns of X that are no features; new rows may have them too.
    missing : {"error", "indicator", "impute"}
        What to do about missing cells of X: refuse them (``error``); fill in the mean and add a
        column that marks the filled cells, or for a category a level of its own (``indicator``,
        without a formula); or fill in the mean or the most frequent level (``impute``). The values
        are computed from these rows and used for new rows too.
    standardize : bool
        Standardise the columns; penalties and priors refer to that scale. The columns of a sparse
        matrix are divided by their largest values, and those mostly empty are not centred.
    penalty : {"l2", "l1", "none"} or mapping with keys "a", "alpha"
        The paper's penalty on each factor's slopes, with free intercepts; "l2" where only ``C`` is
        given. Without both, the default priors apply (`bayes_lepu.defaults`), which keep s smoother
        than t; ``fit.priors`` has them, and they are printed.
    C : float or mapping with keys "a", "alpha"
        The paper's penalty coefficients; 0.01 where only ``penalty`` is given (more for a sparse
        matrix of more than 100 columns; see ``docs/tables.md``).
    priors : mapping of str to Prior, optional
        Priors by parameter name, on top of the defaults; of slopes also by column:
        ``{"alpha": {"brightness": Prior("negative", scale=1.0)}}``.
    orientation : {"sigma-norm", "norm", "none"}
        Rule that decides which of SPM's two factors is the class where the data do not.
    draws : int
        Draws of every chain, four at least. Laplace makes ``draws * chains`` draws.
    tune : int
        Warm-up draws before those of every chain.
    chains : int
        Number of chains.
    cores : int
        How many chains run at a time; all cores by default.
    target_accept : float
        Acceptance rate that the step size of NUTS aims at.
    sampler : {"nutpie", "pymc"}
        ``nutpie`` on the compiled density, or `pymc.sample` on the PyMC model itself.
    random_seed : int, optional
        Seed of every random draw; by default a new one, which the fit records.
    progressbar : bool
        A bar in a terminal or a notebook; otherwise a log line at doubling intervals, from ten
        seconds on.

    Returns
    -------
    Fit

    Examples
    --------
    >>> import bayes_lepu as lepu
    >>> demo = lepu.load_demo()
    >>> fit = lepu.fit(demo.X, demo.l, model="psychm", method="map", random_seed=1)
    >>> fit.predict_proba(demo.X).shape
    (2500, 2)
    """
    check_options(options, audited=options.y is not None)
    with announced(f"Fitting by {options.method}", aloud=options.progressbar):
        if options.model == AUTO:
            return _fit_chosen(options)
        get_model(options.model, besides=(AUTO,))  # "auto" is among the suggestions for a typo
        return fit_data(*read_model(options), options.kept)


def fit_data(spec: ModelSpec, data: PUData, chosen: Priors, options: FitOptions) -> Fit:
    """Fit a model with its priors to data that have been read."""
    _refuse_sparse(data, options.method)
    if options.method != POINT:
        refuse_improper(chosen)
    found = ENGINES[options.method](options.request(spec, data.distinct, chosen))
    result = Fit(
        spec=spec,
        data=data,
        priors=chosen if found.priors is None else found.priors,
        parameters=found.parameters,
        modes=found.modes,
        orientation=found.orientation,
        options=options,
        provenance=Provenance.now(options, found.seconds),
        stats=found.stats,
        quality=found.quality,
    )
    _ = result.level_draws  # computed now so that repr() is instant
    return result


def _refuse_sparse(data: PUData, method: str) -> None:
    if data.is_sparse and method != POINT:
        raise ModelError(
            f"method={method!r} needs the curvature of all columns at once, and X is a "
            f"sparse matrix of {data.n} x {data.p}. Use method={POINT!r}, or dense columns: "
            f"X.toarray() ({8e-9 * data.n * data.p:.2g} GB), or fewer of them (TruncatedSVD, or "
            "those that a point estimate with penalty='l1' keeps)."
        )


def _fit_chosen(options: FitOptions) -> Fit:
    """Fit the model that predicts held-out labels best (``model="auto"``)."""
    _, data, _ = read_model(replace(options, model=ANNOTATORS[-1], priors=None))
    _refuse_sparse(data, options.method)
    names: tuple[str, ...] = ANNOTATORS
    if options.selection_features is not None or options.visits is not None:
        names = names[1:]  # columns were given for the annotator, so s is not constant
    elif data.n_annotators == 1 and of_few_kinds(data):
        names = names[:1]
    compared = []
    for one in classes_to_compare(data, options.class_learner, options.random_seed):
        for name in names:
            own = _for_model(options.kept, name)
            spec = spec_of(name, own)
            point = priors_of(spec, one.part, replace(own, method="map"))
            found = held_out(spec, one, point, options.random_seed)
            compared.append((found, (spec, own, one.data)))
    choice, (spec, own, data) = choose(compared)
    if data.learned is not None and options.class_learner == "auto":
        own = replace(own, class_learner=AUTO_LEARNERS)
    chosen = fit_data(spec, data, priors_of(spec, data, own), own)
    return replace(chosen, choice=choice)


def _for_model(options: FitOptions, name: str) -> FitOptions:
    """The options with a model in place of ``auto``, without priors that it does not have."""
    known = get_model(name).parameters
    priors = {k: v for k, v in (options.priors or {}).items() if k in known}
    return replace(options, model=name, priors=priors or None)


@stops_at_once
@np.errstate(all="ignore")  # a search meets infinities and leaves them
def refit(fit: Fit, y: Any, audits: str | AuditPlan | None, news: dict[str, Any]) -> Fit:
    """Fit the same rows again with changed options and more audited classes (see `Fit.update`)."""
    data, learners = fit.data, ()
    if data.learned is not None:  # they are learned again, from the classes known now
        data, learners = without_learned(data), read_learner(fit.options.class_learner)
    plan = audits if isinstance(audits, AuditPlan) else None
    if plan is not None and y is None:
        rows = data.index[match_rows(data, plan.rows.index)]
        y = pd.Series(plan.rows["y"].to_numpy(), index=rows)
    elif plan is None and data.drawn.size and y is not None and audits is None:
        plan = AuditPlan(fit.data.index[:0].to_frame().assign(probability=1.0))
    classes = data.y if y is None else add_classes(fit, y)
    known = not bool(np.isnan(classes).all())
    if isinstance(audits, str):
        picked: str | None = audits
    else:
        picked = fit.options.audits if y is None else CHOSEN
    if plan is not None:
        picked, data = PLANNED, with_answers(data, fit.options.audits, plan, classes)
    elif picked in (RANDOM, CHOSEN):
        data = replace(data, drawn=data.drawn[:0])
    options = replace(fit.options, **news, audits=picked if known else None)
    if y is not None:  # classes no longer equal the column of this name
        options = replace(options, y=None)
    other = options.method != fit.method
    if other:
        priors = _usable(fit, options.method)
        options = replace(options, penalty=None, C=None, priors=priors)
    check_options(options if picked != PLANNED else replace(options, audits=None), audited=known)
    spec = spec_of(replace(fit.spec, false_marks=False), options)
    data = replace(
        data,
        y=read_classes(classes, data.labels, None, false_marks=spec.false_marks),
        outside=read_outside(options.class_prior, options.label_frequency),
    )
    check_audit(spec, data)
    data = with_learned(data, learners, options.random_seed)
    priors = dict((options.priors if other else _as_chosen(fit)) or {})
    if not spec.false_marks:
        priors.pop("epsilon", None)
    asked = replace(options, penalty=None, C=None, priors=priors)
    new = fit_data(spec, data, priors_of(spec, data, asked), replace(asked, progressbar=False))
    made = replace(new.provenance, made_by="update")
    found = replace(new, options=options, provenance=made)
    _ = found.level_draws
    return found


@stops_at_once
@np.errstate(all="ignore")
def fit_sample(fit: Fit) -> Fit:
    """Fit the same model with the same options to the rows in memory only (see `Fit.sample`)."""
    options, data = replace(fit.options, progressbar=False), fit.data.held
    return fit_data(fit.spec, data, priors_of(fit.spec, data, options), options)


def _as_chosen(fit: Fit) -> GivenPriors:
    """The priors of a fit, with unknown scales as before a point estimate estimated them."""
    priors: dict[str, Any] = dict(fit.priors)
    if fit.is_point and (fit.data.blocks or fit.options.priors):
        chosen = priors_of(fit.spec, fit.data, fit.options)
        priors |= {name: prior for name, prior in chosen.items() if prior.hierarchical}
    return priors


def _usable(fit: Fit, method: str) -> GivenPriors | None:
    """The user's priors, without those that another method cannot use."""
    given = fit.options.priors or {}
    if method != POINT:
        given = {k: v for k, v in given.items() if not isinstance(v, Prior) or v.proper}
    return given or None


def add_classes(fit: Fit, y: Any) -> Array:
    """The audited classes of a fit, updated by new ones."""
    data = fit.data
    if isinstance(y, pd.Series) and not y.index.equals(data.index):
        at = data.index.get_indexer_for(y.index)
        if len(at) != len(y) or (at < 0).any():
            unknown = [label for label in y.index if label not in data.index]
            what = f"the row {unknown[0]!r}, which this fit has not" if unknown else "a row twice"
            raise DataError(f"y has {what}; labels of the fit's own rows are expected.")
        values = as_numbers("y", y.to_numpy(), "0, 1 or NaN (unknown) is")
        known, new = ~np.isnan(values), np.full(data.n, np.nan)
        new[at[known]] = values[known]
        against = known & (new[at] != values)
        if against.any():
            row = y.index[against][0]
            raise DataError(f"y has the row {row!r} twice, with different classes; correct one.")
    else:
        values = y.to_numpy() if isinstance(y, pd.Series) else y
        vector = read_vector("y", values, data.n, None)
        new = as_numbers("y", vector, "0, 1 or NaN (unknown) is")
    return np.where(np.isnan(new), data.y, new)
