"""`build_model`: the PyMC model of a table and labels, to extend or to sample by other means."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bayes_lepu.dask import is_dask, read_dask
from bayes_lepu.data.learned import read_learner, with_learned
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.data.reading import read_data
from bayes_lepu.engines.engines import ENGINES
from bayes_lepu.errors import ModelError
from bayes_lepu.factors import Factor, get_curve
from bayes_lepu.model import get_model
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.options import (
    check_audit,
    check_columns,
    check_terms,
    choose_priors,
    with_marks,
)
from bayes_lepu.priors.prior import GivenPriors, Prior
from bayes_lepu.result.origin import FitOptions

if TYPE_CHECKING:
    import pymc as pm

BY_SUMS = ("map", "laplace")  # methods that go over all rows a few dozen times


def build_model(
    X: Any,
    l: Any,
    *,
    model: str | Factor | ModelSpec = "psychm",
    class_link: str | Factor | None = None,
    class_learner: Any = None,
    y: Any = None,
    visits: Any = None,
    sample_weight: Any = None,
    class_prior: tuple[float, float] | None = None,
    label_frequency: tuple[float, float] | None = None,
    false_marks: bool | Prior = False,
    class_features: Sequence[str | int] | str | None = None,
    selection_features: Sequence[str | int] | str | None = None,
    exclude: Sequence[str] = (),
    missing: str = "error",
    standardize: bool = True,
    priors: GivenPriors | None = None,
    random_seed: int | None = None,
    terms: Mapping[str, Callable[[], Any]] | None = None,
) -> "pm.Model":
    """The PyMC model, to inspect, extend, or sample by other means.

    Columns and labels are `pymc.Data` (``X``, ``labels``), the linear predictors of t and s the
    named variables ``tau`` and ``omega``. A plain `pymc.sample` does not know that the factors of
    SPM can be exchanged: its chains may end in different orders of t and s without a warning. `fit`
    takes care of that. Arguments that are not listed here are those of `fit`.

    Parameters
    ----------
    priors : mapping of str to Prior, optional
        Priors by parameter name, on top of the defaults of NUTS.
    terms : mapping of str to function, optional
        What is added to the predictors ``"tau"`` and ``"omega"``: functions without arguments that
        are called inside the model and give a value per row.

    Examples
    --------
    >>> import bayes_lepu as lepu
    >>> demo = lepu.load_demo()
    >>> [v.name for v in lepu.build_model(demo.X, demo.l, model="scar").free_RVs]
    ['a', 'b', 'c']
    """
    options = FitOptions(
        l=l,
        model=model,
        class_link=class_link,
        class_learner=class_learner,
        y=y,
        sample_weight=sample_weight,
        class_prior=class_prior,
        label_frequency=label_frequency,
        false_marks=false_marks,
        class_features=class_features,
        selection_features=selection_features,
        exclude=exclude,
        missing=missing,
        standardize=standardize,
        priors=priors,
        random_seed=random_seed,
    )
    rows = Rows(X, l, y=y, visits=visits, sample_weight=sample_weight)
    spec, data, chosen = read_model(rows, model, options)
    return spec.build(data, chosen, check_terms(terms))


@dataclass(frozen=True, eq=False)
class Rows:
    """What a call to `fit` is about: the table, its labels and what else has a value per row."""

    X: Any
    l: Any
    y: Any = None
    visits: Any = None
    sample_weight: Any = None


def read_model(
    rows: Rows,
    model: str | Factor | ModelSpec,
    options: FitOptions,
) -> tuple[ModelSpec, PUData, dict[str, Prior]]:
    """The model, data and priors that the arguments of `fit` and of its relatives stand for."""
    spec = spec_of(model, options)
    check_columns(spec, options.selection_features, rows.visits)
    if is_dask(rows.X) and options.method not in BY_SUMS:
        raise ModelError(
            f"method={options.method!r} evaluates the posterior tens of thousands of times, and "
            "would go over all partitions of the Dask collection each time. Use "
            f"{' or '.join(f'method={name!r}' for name in BY_SUMS)} (laplace: a Gaussian at every "
            "mode, with a check of its own), or rows in memory: X.compute(), or a random part of "
            "it, X.sample(frac=0.01).compute()."
        )
    data = (read_dask if is_dask(rows.X) else read_data)(
        rows.X,
        rows.l,
        y=rows.y,
        sample_weight=rows.sample_weight,
        visits=rows.visits,
        false_marks=spec.false_marks,
        **options.of_columns,
    )
    if learners := read_learner(options.class_learner):
        if is_dask(rows.X):
            raise ModelError(
                "class_learner trains a classifier on all rows, which needs them in memory. Leave "
                "it out, or fit a random part of the rows."
            )
        data = with_learned(data, learners, options.random_seed)
    check_audit(spec, data)
    return spec, data, priors_of(spec, data, options)


def spec_of(model: str | Factor | ModelSpec, options: FitOptions) -> ModelSpec:
    """The model by the options of a call."""
    spec = with_marks(get_model(model), options.false_marks, options.priors)[0]
    if options.class_link in (None, spec.of_class.name):
        return spec
    return replace(spec, of_class=get_curve(options.class_link))


def priors_of(spec: ModelSpec, data: PUData, options: FitOptions) -> dict[str, Prior]:
    """The priors of a model on these data, by the options of a call."""
    _, priors = with_marks(spec, options.false_marks, options.priors)
    point = ENGINES[options.method].point
    return choose_priors(
        spec, data, point=point, penalty=options.penalty, C=options.C, priors=priors
    )
