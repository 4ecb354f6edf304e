"""What the options of `fit` mean: checked, and turned into priors and forms."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.defaults import default_penalties, default_priors, for_annotators
from bayes_lepu.engines.engines import ENGINES, SAMPLERS
from bayes_lepu.engines.nuts import LEAST_DRAWS
from bayes_lepu.engines.orientation import check_rule
from bayes_lepu.engines.pooling import known_scales
from bayes_lepu.errors import OWN_CODE, DataWarning, ModelError
from bayes_lepu.links import RowKind
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
from bayes_lepu.priors.term_priors import with_blocks
from bayes_lepu.result.origin import FitOptions
from bayes_lepu.suggestions import unknown

PICKED = ("random", "chosen")
PREDICTORS = ("tau", "omega")


def choose_priors(
    spec: ModelSpec,
    data: PUData,
    *,
    point: bool = False,
    penalty: str | Mapping[str, str] | None = None,
    C: float | Mapping[str, float] | None = None,
    priors: GivenPriors | None = None,
) -> dict[str, Prior]:
    """The priors of a model on these data: defaults or penalties, the user's own on top."""
    if point and penalty is None and C is None:
        base = default_penalties(data)
    elif point:
        base = penalty_priors(penalty or "l2", DEFAULT_C if C is None else C)
    else:
        if penalty is not None or C is not None:
            raise ModelError(
                "penalty and C belong to method='map' (they leave the intercepts flat, which has "
                "no proper posterior). Give priors={'a': Prior(...), 'alpha': Prior(...)} instead."
            )
        base = default_priors(data)
    base = for_annotators(with_blocks(base, data), data)
    several = data.n_annotators > 1
    if priors:
        priors = by_column(priors, base, data, several=several)
    chosen = spec.complete_priors(
        base, priors, annotators=data.n_annotators, visits=bool(data.visit_names)
    )
    if point:
        chosen = known_scales(chosen, hierarchical=False)
    masks = slope_masks(data).items()
    names = [(name, mask) for stem, mask in masks for name in (stem, f"{stem}_mean")]
    flat = sum(int(m.sum()) for name, m in names if name in chosen and not chosen[name].proper)
    if flat:
        warn_if_small(data, flat)
    return chosen


def warn_if_small(data: PUData, n_parameters: int) -> None:
    """Warn when an unpenalised fit has more parameters than rows."""
    if data.n_all < n_parameters:
        warnings.warn(
            f"{data.n_all} rows for {n_parameters} unpenalised parameters: the estimate is not "
            "unique. Add a penalty (C > 0) or a proper prior, or use fewer columns.",
            DataWarning,
            skip_file_prefixes=OWN_CODE,
        )


def by_column(
    priors: Mapping[str, Any], base: Priors, data: PUData, *, several: bool
) -> dict[str, Any]:
    """Priors given by the names of columns as one for each column, the default for the others."""
    if not isinstance(priors, Mapping):
        raise ModelError(
            f"priors = {priors!r}; a mapping of parameters to priors is expected, for example "
            'priors={"a": Prior("normal", scale=2.0)}.'
        )
    out, pooled = dict(priors), SLOPES[1]
    for stem, mask in slope_masks(data).items():
        name = f"{stem}_mean" if several and stem == pooled else stem
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


def check_columns(
    spec: ModelSpec,
    selection_features: Sequence[str | int] | str | None,
    visits: Any = None,
) -> None:
    """Refuse columns of s in a model whose s has none."""
    for option, value in (
        ("selection_features", selection_features),
        ("visits", visits),
    ):
        if value is not None and not spec.has_selection:
            raise ModelError(
                f"{option} is given, but no column enters the propensity of "
                f"model={spec.name!r}. Leave the option out, or use model='spm' or 'psychm'."
            )


def refuse_by_products(method: str, data: PUData) -> None:
    """Say why an engine cannot work on a sparse matrix."""
    able = [name for name, engine in ENGINES.items() if engine.by_products]
    raise ModelError(
        f"method={method!r} needs the curvature of all columns at once, and X is a sparse matrix "
        f"of {data.n} x {data.p}. Use {' or '.join(f'method={name!r}' for name in sorted(able))}, "
        f"or dense columns: X.toarray() ({8e-9 * data.n * data.p:.2g} GB), or fewer of them "
        "(TruncatedSVD, or those that a point estimate with penalty='l1' keeps)."
    )


def with_marks(
    spec: ModelSpec, false_marks: bool | Prior, priors: GivenPriors | None
) -> tuple[ModelSpec, GivenPriors | None]:
    """The model with false marks where they are asked for, and their prior among the others."""
    if isinstance(false_marks, Prior):
        return replace(spec, false_marks=True), {**(priors or {}), "epsilon": false_marks}
    if not isinstance(false_marks, bool):
        raise ModelError(f"false_marks = {false_marks!r}; True, False or a Prior is expected.")
    return (replace(spec, false_marks=True) if false_marks else spec), priors


def check_audit(spec: ModelSpec, data: PUData) -> None:
    """Refuse rows that a model rules out: missed positives where s = 1."""
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


def check_picking(audits: str | None, *, audited: bool) -> None:
    """Refuse unknown words for how audited rows were picked."""
    if audits is None:
        return
    if audits not in PICKED:
        raise ModelError(f"audits = {audits!r}; one of {', '.join(PICKED)} is expected.")
    if not audited:
        raise ModelError(
            f"audits={audits!r} says how the audited rows were picked, but none are given (y=)."
        )


def check_options(options: FitOptions, *, audited: bool) -> None:
    """Refuse unknown words, and numbers that no engine can use."""
    if options.method not in ENGINES:
        raise ModelError(unknown("method", options.method, ENGINES))
    check_rule(options.orientation)
    check_picking(options.audits, audited=audited)
    _check_sampler(options)


def _check_sampler(options: FitOptions) -> None:
    """Refuse an unknown sampler and numbers it cannot work with."""
    if options.sampler not in SAMPLERS:
        raise ModelError(unknown("sampler", options.sampler, SAMPLERS))
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


def check_terms(terms: Any) -> Any:
    """Terms of the predictors, or an error that lists the predictors."""
    for name, term in (terms or {}).items():
        if name not in PREDICTORS:
            raise ModelError(unknown("predictor", name, PREDICTORS))
        if not callable(term):
            raise ModelError(
                f"terms[{name!r}] is {type(term).__name__}; a function without arguments is "
                "expected, which makes its variables inside the model."
            )
    return terms
