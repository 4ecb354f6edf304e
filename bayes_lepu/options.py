"""The options of a fit: one frozen object, and the model, data and priors that follow from it.

Functions decorated with `takes_options` take the fields of that object as their arguments.
"""

import json
import secrets
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from numbers import Real
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.dask import is_dask, read_dask
from bayes_lepu.data.learned import read_learner, with_learned
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.data.reading import read_data
from bayes_lepu.defaults import (
    default_penalties,
    default_priors,
    for_annotators,
    has_many_columns,
    levels_of_many,
    sparse_size,
    with_blocks,
)
from bayes_lepu.engines.engines import ENGINES, POINT, SAMPLERS, Request
from bayes_lepu.engines.nuts import LEAST_DRAWS, NutsOptions
from bayes_lepu.engines.orientation import check_rule
from bayes_lepu.engines.pooling import known_scales
from bayes_lepu.errors import OWN_CODE, DataWarning, ModelError
from bayes_lepu.factors import Factor, get_curve
from bayes_lepu.links import RowKind
from bayes_lepu.model import get_model
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import (
    DEFAULT_C,
    SLOPES,
    GivenPriors,
    Prior,
    Priors,
    penalty_priors,
    slope_masks,
)
from bayes_lepu.suggestions import did_you_mean, unknown

# Options with one value per row, or with names of columns of X.
OF_ROWS = ("X", "l", "y", "visits", "sample_weight")
# Options that determine how the columns are encoded.
OF_COLUMNS = (
    "class_prior",
    "label_frequency",
    "class_features",
    "selection_features",
    "exclude",
    "missing",
    "standardize",
)
BY_SUMS = ("map", "laplace")  # methods that need only a few dozen passes over the rows
PICKED = ("random", "chosen")
PRIOR = "Prior"  # marks a prior in a saved file
Columns = Sequence[str | int]
Known = tuple[float, float]


@dataclass(frozen=True)
class FitOptions:
    """The arguments of a call to `fit`, under the same names and defaults.

    A fit keeps them without the rows (`kept`). NumPy numbers become Python numbers, sequences
    become tuples, and ``random_seed`` is always a number.
    """

    X: Any
    l: Any
    _: KW_ONLY
    # The model
    model: str | Factor | ModelSpec = "auto"
    class_link: str | Factor | None = None
    class_learner: Any = "auto"
    method: str = "nuts"
    # Rows
    y: Any = None
    visits: Any = None
    sample_weight: Any = None
    # External knowledge
    class_prior: Known | None = None
    label_frequency: Known | None = None
    false_marks: bool | Prior = False
    audits: str | None = None
    # Columns
    class_features: Columns | str | None = None
    selection_features: Columns | str | None = None
    exclude: Sequence[str] = ()
    missing: str = "error"
    standardize: bool = True
    # Priors
    penalty: str | Mapping[str, str] | None = None
    C: float | Mapping[str, float] | None = None
    priors: GivenPriors | None = None
    orientation: str = "sigma-norm"
    # The sampler
    draws: int = 1000
    tune: int = 1000
    chains: int = 4
    cores: int | None = None
    target_accept: float = 0.9
    sampler: str = "nutpie"
    random_seed: int = None  # type: ignore[assignment]  # one is made where none is given
    progressbar: bool = True

    def __post_init__(self) -> None:
        for name, value in vars(self).copy().items():
            if name not in OF_ROWS or names_of_columns(value):
                object.__setattr__(self, name, _plain(value))
        object.__setattr__(self, "random_seed", read_seed(self.random_seed))
        object.__setattr__(self, "priors", self.priors or None)
        if str(self.selection_features).replace(" ", "") == "~1":  # as if a list were empty
            object.__setattr__(self, "selection_features", ())

    @property
    def kept(self) -> Self:
        """The options that a fit keeps: the model by name, and names of columns but no rows."""
        names = {name: names_of_columns(getattr(self, name)) for name in OF_ROWS}
        return replace(self, model=getattr(self.model, "name", self.model), **names)

    @property
    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        own = {field: getattr(self, field.name) for field in fields(self) if field.kw_only}
        return {field.name: value for field, value in own.items() if value != field.default}

    def request(self, spec: ModelSpec, data: PUData, priors: Priors) -> Request:
        """The request to an engine, from these options and a model, data and priors."""
        nuts = {field.name: getattr(self, field.name) for field in fields(NutsOptions)}
        return Request(spec, data, priors, self.orientation, NutsOptions(**nuts), self.sampler)

    def to_json(self) -> str:
        """The options as text, for saving."""
        return json.dumps({"l": self.l} | self.given, default=_as_json)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Inverse of `to_json`."""
        return cls(None, **json.loads(text, object_hook=_prior_or_mapping))


def takes_options[**P, R](
    like: Callable[P, FitOptions], *, without: Collection[str] = ()
) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Decorator: callers pass the fields of ``options`` as arguments of the function.

    ``like`` is `FitOptions`, or a function that makes them with other defaults. The fields
    ``without`` are left out. Other arguments of the function stay; positional ones come first.
    """
    shared = [p for name, p in signature(like).parameters.items() if name not in without]
    defaults = {p.name: p.default for p in shared if p.default is not p.empty}

    def decorate(function: Callable[..., R]) -> Callable[P, R]:
        own = [p for p in signature(function).parameters.values() if p.name != "options"]
        first = [p for p in own if p.kind is not Parameter.KEYWORD_ONLY]
        last = [p for p in own if p.kind is Parameter.KEYWORD_ONLY]
        returned = signature(function).return_annotation
        whole = Signature([*first, *shared, *last], return_annotation=returned)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                given = whole.bind(*args, **kwargs).arguments
            except TypeError as error:
                strange = [name for name in kwargs if name not in whole.parameters][:1]
                meant = "".join(did_you_mean(name, whole.parameters) for name in strange)
                raise TypeError(f"{function.__name__}(): {error}{meant and '.' + meant}") from None
            others = {p.name: given.pop(p.name) for p in own if p.name in given}
            return function(options=FitOptions(**defaults | given), **others)

        call.__signature__ = whole  # type: ignore[attr-defined]
        return call

    return decorate


def read_seed(random_seed: int | None) -> int:
    """The seed of a fit: the given one, or a new one."""
    if random_seed is None:
        return secrets.randbits(31)
    whole = isinstance(random_seed, int | np.integer) and not isinstance(random_seed, bool)
    if not whole or not 0 <= random_seed < 2**63:
        raise ModelError(
            f"random_seed = {random_seed!r}; a whole number from 0 to 2**63 - 1, or None for one "
            "that is made and recorded, is expected."
        )
    return int(random_seed)


def names_of_columns(value: Any) -> Any:
    """The names of columns of X in an option; None if the option has values."""
    parts = value.values() if isinstance(value, Mapping) else [value]  # the columns of visits
    several = all(isinstance(v, list | tuple) and all(isinstance(w, str) for w in v) for v in parts)
    return value if isinstance(value, str) or several else None


def _plain(value: Any) -> Any:
    """NumPy numbers as Python numbers and sequences as tuples, to compare, write and print."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple | np.ndarray | pd.Index):
        return tuple(_plain(v) for v in value)
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return value


def _as_json(value: Any) -> Any:
    """Priors as mappings, arrays as lists, and any other object by its name."""
    if isinstance(value, Prior):
        return {PRIOR: value.to_dict()}
    if isinstance(value, Factor):
        return value.name
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else repr(value)


def _prior_or_mapping(value: dict[str, Any]) -> Any:
    if set(value) == {PRIOR} and isinstance(value[PRIOR], dict):
        return Prior.from_dict(value[PRIOR])
    return value


def check_options(options: FitOptions, *, audited: bool) -> None:
    """Refuse unknown values of options, and numbers that no engine can use."""
    if options.method not in ENGINES:
        raise ModelError(unknown("method", options.method, ENGINES))
    if options.sampler not in SAMPLERS:
        raise ModelError(unknown("sampler", options.sampler, SAMPLERS))
    check_rule(options.orientation)
    if options.audits is not None:
        if options.audits not in PICKED:
            raise ModelError(
                f"audits = {options.audits!r}; one of {', '.join(PICKED)} is expected."
            )
        if not audited:
            raise ModelError(
                f"audits={options.audits!r} is how the audited rows were picked, but none are "
                "given by y."
            )
    for name, value, least in (
        ("draws", options.draws, LEAST_DRAWS),
        ("tune", options.tune, 1),
        ("chains", options.chains, 1),
        ("cores", 1 if options.cores is None else options.cores, 1),
    ):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ModelError(f"{name} = {value!r}; a whole number of at least {least} is expected.")
    if not (isinstance(options.target_accept, Real) and 0 < options.target_accept < 1):
        raise ModelError(
            f"target_accept = {options.target_accept!r}; a number between 0 and 1 is expected."
        )


def read_model(options: FitOptions) -> tuple[ModelSpec, PUData, dict[str, Prior]]:
    """The model, data and priors from the options of `fit`, `build_model` or `from_trace`."""
    spec = spec_of(options.model, options)
    if not spec.has_selection and not options.selection_features:
        options = replace(options, selection_features=None)  # none enters anyway
    for name in ("selection_features", "visits"):
        if getattr(options, name) is not None and not spec.has_selection:
            raise ModelError(
                f"{name} is given, but no column enters the propensity of model={spec.name!r}. "
                "Leave the option out, or use model='spm' or 'psychm'."
            )
    if is_dask(options.X) and options.method not in BY_SUMS:
        raise ModelError(
            f"method={options.method!r} evaluates the posterior tens of thousands of times, and "
            "would go over all partitions of the Dask collection each time. Use "
            f"{' or '.join(f'method={name!r}' for name in BY_SUMS)} (laplace: a Gaussian at every "
            "mode, with a check of its own), or rows in memory: X.compute(), or a random part of "
            "it, X.sample(frac=0.01).compute()."
        )
    data = (read_dask if is_dask(options.X) else read_data)(
        options.X,
        options.l,
        y=options.y,
        sample_weight=options.sample_weight,
        visits=options.visits,
        false_marks=spec.false_marks,
        **{name: getattr(options, name) for name in OF_COLUMNS},
    )
    if learners := read_learner(options.class_learner):
        if is_dask(options.X):
            raise ModelError(
                "class_learner trains a classifier on all rows, which needs them in memory. Leave "
                "it out, or fit a random part of the rows."
            )
        data = with_learned(data, learners, options.random_seed)
    check_audit(spec, data)
    return spec, data, priors_of(spec, data, options)


def spec_of(model: str | Factor | ModelSpec, options: FitOptions) -> ModelSpec:
    """The model of this name with the class link and false marks of the options."""
    spec, marks = get_model(model), options.false_marks
    if not isinstance(marks, bool | Prior):
        raise ModelError(f"false_marks = {marks!r}; True, False or a Prior is expected.")
    if marks is not False:
        spec = replace(spec, false_marks=True)
    if options.class_link in (None, spec.of_class.name):
        return spec
    return replace(spec, of_class=get_curve(options.class_link))


def priors_of(spec: ModelSpec, data: PUData, options: FitOptions) -> dict[str, Prior]:
    """The priors of a model on these data, from the options."""
    priors, point = options.priors, options.method == POINT
    if isinstance(options.false_marks, Prior):
        priors = {**(priors or {}), "epsilon": options.false_marks}
    return choose_priors(
        spec, data, point=point, penalty=options.penalty, C=options.C, priors=priors
    )


def choose_priors(
    spec: ModelSpec,
    data: PUData,
    *,
    point: bool = False,
    penalty: str | Mapping[str, str] | None = None,
    C: float | Mapping[str, float] | None = None,
    priors: GivenPriors | None = None,
) -> dict[str, Prior]:
    """The priors of a model on these data: defaults or penalties, overridden by the user's own."""
    if point and penalty is None and C is None:
        base = default_penalties(data)
    elif point:
        many = data.is_sparse and has_many_columns(data)
        usual = sparse_size(data) if many else DEFAULT_C
        base = penalty_priors(penalty or "l2", usual if C is None else C)
        base |= {"c": levels_of_many()["c"]} if many else {}
    else:
        if penalty is not None or C is not None:
            raise ModelError(
                "penalty and C belong to method='map' (they leave the intercepts flat, which has "
                "no proper posterior). Give priors={'a': Prior(...), 'alpha': Prior(...)} instead."
            )
        base = default_priors(data)
    base = for_annotators(with_blocks(base, data), data)
    chosen = spec.complete_priors(base, by_column(priors, base, data) if priors else None, data)
    if point:
        chosen = known_scales(chosen, hierarchical=False)
    masks = slope_masks(data).items()
    names = [(name, mask) for stem, mask in masks for name in (stem, f"{stem}_mean")]
    flat = sum(int(m.sum()) for name, m in names if name in chosen and not chosen[name].proper)
    if data.n_all < flat:
        warnings.warn(
            f"{data.n_all} rows for {flat} unpenalised parameters: the estimate is not unique. Add "
            "a penalty (C > 0) or a proper prior, or use fewer columns.",
            DataWarning,
            skip_file_prefixes=OWN_CODE,
        )
    return chosen


def by_column(priors: Mapping[str, Any], base: Priors, data: PUData) -> dict[str, Any]:
    """Expand priors by names of columns to one prior per column; the others keep the default."""
    if not isinstance(priors, Mapping):
        raise ModelError(
            f"priors = {priors!r}; a mapping of parameters to priors is expected, for example "
            'priors={"a": Prior("normal", scale=2.0)}.'
        )
    out = dict(priors)
    for stem, mask in slope_masks(data).items():
        name = f"{stem}_mean" if data.n_annotators > 1 and stem == SLOPES[1] else stem
        prior, count = priors.get(name), int(mask.sum())
        if isinstance(prior, Mapping):
            out[name] = _parts(name, prior, base[stem], data, mask)
        elif isinstance(prior, Prior) and prior.parts and len(prior.parts) != count:
            raise ModelError(
                f"priors[{name!r}] has {len(prior.parts)} parts; one for each of the {count} "
                "columns is expected. Give them by name: {'size': Prior(...)}."
            )
    return out


def _parts(
    name: str, given: Mapping[Any, Any], rest: Prior, data: PUData, mask: NDArray[np.bool_]
) -> Prior:
    names, terms = np.array(data.feature_names), data.terms
    columns = {n: {n} for n in names[mask]}
    columns |= {t: set(names[list(at)]) & set(names[mask]) for t, at in terms.items()}
    chosen: dict[str, Prior] = {}
    for column, prior in given.items():
        if not columns.get(column):
            raise ModelError(unknown(f"column in priors[{name!r}]", column, columns))
        if not isinstance(prior, Prior):
            raise ModelError(
                f"priors[{name!r}][{column!r}] is {prior!r}; a Prior is expected, for example "
                "Prior('positive', scale=1.0)."
            )
        if prior.hierarchical:
            prior = replace(prior, block=str(column))
        chosen |= dict.fromkeys(columns[column], prior)
    rests = rest.parts or (rest,) * int(mask.sum())
    parts = (chosen.get(n, own) for n, own in zip(names[mask], rests, strict=True))
    return Prior("columns", parts=tuple(parts))


def check_audit(spec: ModelSpec, data: PUData) -> None:
    """Refuse audits with probability zero: missed positives in a model with s = 1."""
    if not spec.certain:
        return
    missed = int(np.sum(data.kind == RowKind.MISSED))
    if missed:
        raise ModelError(
            f"{missed} unlabelled row(s) are audited as positive, which the naive model (s = 1) "
            "rules out. Use model='scar', 'spm' or 'psychm'."
        )
    torn = int(np.sum(data.marked.any(axis=1) & (data.labels == 0).any(axis=1)))
    if torn:
        raise ModelError(
            f"{torn} row(s) are marked by one annotator and not by another who saw them, which the "
            "naive model (s = 1) rules out. Use model='scar', 'spm' or 'psychm'."
        )
