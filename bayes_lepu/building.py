"""`build_model`: the PyMC model of a table and labels, to extend or to sample by other means."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.data.reading import read_data
from bayes_lepu.models import get_model
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.options import (
    check_audit,
    check_columns,
    check_terms,
    choose_priors,
    with_marks,
    with_sampling,
)
from bayes_lepu.priors.prior import GivenPriors, Prior
from bayes_lepu.propensities import Propensity

if TYPE_CHECKING:
    import pymc as pm


def build_model(
    X: Any,
    l: Any,
    *,
    model: str | Propensity | ModelSpec = "psychm",
    y: Any = None,
    visits: Any = None,
    sample_weight: Any = None,
    class_prior: tuple[float, float] | None = None,
    label_frequency: tuple[float, float] | None = None,
    false_marks: bool | Prior = False,
    sampling: str = "joint",
    class_features: Sequence[str | int] | None = None,
    selection_features: Sequence[str | int] | None = None,
    class_formula: str | None = None,
    selection_formula: str | None = None,
    exclude: Sequence[str] = (),
    missing: str = "error",
    unseen: str = "error",
    feature_names: Sequence[str] | None = None,
    standardize: bool = True,
    priors: GivenPriors | None = None,
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
    spec, data, chosen = read_model(
        X,
        l,
        model=model,
        y=y,
        visits=visits,
        sample_weight=sample_weight,
        class_prior=class_prior,
        label_frequency=label_frequency,
        false_marks=false_marks,
        sampling=sampling,
        class_features=class_features,
        selection_features=selection_features,
        class_formula=class_formula,
        selection_formula=selection_formula,
        exclude=exclude,
        missing=missing,
        unseen=unseen,
        feature_names=feature_names,
        standardize=standardize,
        priors=priors,
    )
    return spec.build(data, chosen, check_terms(terms))


def read_model(
    X: Any,
    l: Any,
    *,
    model: str | Propensity | ModelSpec,
    priors: GivenPriors | None,
    false_marks: bool | Prior,
    sampling: str,
    **rows: Any,
) -> tuple[ModelSpec, PUData, dict[str, Prior]]:
    """The model, data and priors that the arguments of `build_model` stand for."""
    spec, priors = with_marks(get_model(model), false_marks, priors)
    spec = with_sampling(spec, sampling, label_frequency=rows["label_frequency"])
    check_columns(spec, rows["selection_features"], rows["selection_formula"], rows["visits"])
    data = read_data(X, l, false_marks=spec.false_marks, cases=spec.cases, **rows)
    check_audit(spec, data)
    return spec, data, choose_priors(spec, data, priors=priors)
