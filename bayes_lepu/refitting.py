"""Fitting again with the options of a fit, after more has been learned about its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu._fit import fit_data
from bayes_lepu.actions.audits import (
    CHOSEN,
    PLANNED,
    RANDOM,
    AuditPlan,
    match_rows,
    with_answers,
)
from bayes_lepu.building import priors_of, spec_of
from bayes_lepu.data.labels import as_numbers, read_classes, read_outside, read_vector
from bayes_lepu.data.learned import read_learner, with_learned, without_learned
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines.engines import ENGINES
from bayes_lepu.errors import DataError
from bayes_lepu.fitted import Fit
from bayes_lepu.links import Array
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.options import check_audit, check_columns, check_options
from bayes_lepu.priors.prior import SLOPES, GivenPriors, Prior
from bayes_lepu.runtime.interruption import stops_at_once
from bayes_lepu.suggestions import some


@stops_at_once
@np.errstate(all="ignore")  # a search meets infinities and leaves them
def refit(
    fit: Fit,
    *,
    y: Any,
    audits: str | AuditPlan | None,
    class_features: Sequence[str | int] | None,
    selection_features: Sequence[str | int] | None,
    learned: Mapping[str, Any],
) -> Fit:
    """The same rows, labels and options, with what is given here on top (see `Fit.update`)."""
    data, learners = fit.data, ()
    if data.learned is not None:  # learned again: the columns and classes may be others now
        data, learners = without_learned(data), read_learner(fit.options.class_learner)
    plan = audits if isinstance(audits, AuditPlan) else None
    if plan is not None and y is None:
        rows = data.index[match_rows(data, plan.rows.index)]
        y = pd.Series(plan.rows["y"].to_numpy(), index=rows)
    elif plan is None and data.drawn.size and y is not None and audits is None:
        plan = AuditPlan(fit.data.index[:0].to_frame().assign(probability=1.0), "find")
    classes = data.y if y is None else add_classes(fit, y)
    known = not bool(np.isnan(classes).all())
    features = {"class_features": class_features, "selection_features": selection_features}
    if audits is None:
        audits = fit.options.audits if y is None else CHOSEN
    if plan is not None:
        audits, data = PLANNED, with_answers(data, fit.options.audits, plan, classes)
    elif audits in (RANDOM, CHOSEN):
        data = replace(data, drawn=data.drawn[:0])
    news: dict[str, Any] = {"audits": audits if known else None}
    if y is not None:
        news["y"] = None  # no longer what the column of this name says
    other = learned["method"] not in (None, fit.method)
    if other:
        news |= {"penalty": None, "C": None, "priors": _usable(fit, learned["method"])}
    options = replace(fit.options.but(**features, **learned), **news)
    check_options(options if audits != PLANNED else replace(options, audits=None), audited=known)
    spec = spec_of(replace(fit.spec, false_marks=False), options)
    check_columns(spec, selection_features)
    data = replace(
        data,
        y=read_classes(classes, data.labels, None, false_marks=spec.false_marks),
        outside=read_outside(options.class_prior, options.label_frequency),
        class_mask=_mask(data, "class_features", class_features, data.class_mask),
        selection_mask=_mask(data, "selection_features", selection_features, data.selection_mask),
    )
    check_audit(spec, data)
    data = with_learned(data, learners, options.random_seed)
    priors = options.priors if other else _as_chosen(fit)
    asked = replace(options, penalty=None, C=None, priors=_left(priors, fit.data, data, spec))
    new = fit_data(spec, data, priors_of(spec, data, asked), replace(asked, progressbar=False))
    made = replace(new.provenance, made_by="update")
    found = replace(new, options=options, provenance=made)
    _ = found.level_draws
    return found


@stops_at_once
@np.errstate(all="ignore")
def fit_sample(fit: Fit) -> Fit:
    """The same model and options for the rows in memory alone (see `Fit.sample`)."""
    options, data = replace(fit.options, progressbar=False), fit.data.held
    return fit_data(fit.spec, data, priors_of(fit.spec, data, options), options)


def _as_chosen(fit: Fit) -> GivenPriors:
    """The priors of a fit, unknown scales as they were before a point estimate found them."""
    priors: dict[str, Any] = dict(fit.priors)
    if fit.is_point and (fit.data.blocks or fit.options.priors):
        chosen = priors_of(fit.spec, fit.data, fit.options)
        priors |= {name: prior for name, prior in chosen.items() if prior.hierarchical}
    return priors


def _usable(fit: Fit, method: str) -> GivenPriors | None:
    """The priors that the user gave, those aside that another method cannot take."""
    given = fit.options.priors or {}
    if method in ENGINES and not ENGINES[method].point:
        given = {k: v for k, v in given.items() if not isinstance(v, Prior) or v.proper}
    return given or None


def _left(
    priors: GivenPriors | None, before: PUData, now: PUData, spec: ModelSpec
) -> GivenPriors | None:
    """Priors of what the model has; those given by column, of the columns that are left."""
    out: dict[str, Any] = dict(priors or {})
    if not spec.false_marks:
        out.pop("epsilon", None)
    masks = ((d.class_mask, d.selection_mask) for d in (before, now))
    for stem, old, new in zip(SLOPES, *masks, strict=True):
        gone = {now.feature_names[j] for j in np.flatnonzero(old & ~new)}
        for name in {stem, f"{stem}_mean"} & set(out):
            given = out[name]
            parts = given.parts if isinstance(given, Prior) else ()
            if parts and not np.array_equal(old, new):
                names = np.array(now.feature_names)[old].tolist()
                given = dict(zip(names, parts, strict=True))
            if isinstance(given, Mapping):
                given = {column: prior for column, prior in given.items() if column not in gone}
            out[name] = given
    return {name: given for name, given in out.items() if given} or None


def _mask(
    data: PUData, option: str, columns: Sequence[str | int] | None, own: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Columns of X by name (the user's, or those of a category's levels); by default the same."""
    if columns is None:
        return own
    if data.encoding.design is not None or isinstance(columns, str):
        raise DataError(
            f"{option} is given, and the columns of this fit, or the new ones, are terms of a "
            f"formula. Fit again with another {option}=."
        )
    names = data.feature_names[: data.given_width]
    known: dict[Any, tuple[int, ...]] = {name: (j,) for j, name in enumerate(names)}
    known |= data.terms
    if not data.named:  # an array: the user's columns are these
        known |= {j: (j,) for j in range(len(names))}
    unknown = [c for c in columns if c not in known]
    if unknown or not columns:
        raise DataError(
            f"{option} names {unknown or 'no column'}; columns of this fit are expected: "
            f"{some(names)}."
        )
    out = np.zeros_like(own)
    out[[place for c in columns for place in known[c]]] = True
    return out


def add_classes(fit: Fit, y: Any) -> Array:
    """The audited classes of a fit with new ones on top."""
    data = fit.data
    if isinstance(y, pd.Series) and not y.index.equals(data.index):
        at = data.index.get_indexer_for(y.index)
        if len(at) != len(y) or (at < 0).any():
            unknown = [label for label in y.index if label not in data.index]
            what = f"the row {unknown[0]!r}, which this fit has not" if unknown else "a row twice"
            raise DataError(f"y names {what}; labels of the fit's own rows are expected.")
        values = as_numbers("y", y.to_numpy(), "0, 1 or NaN (unknown) is")
        known, new = ~np.isnan(values), np.full(data.n, np.nan)
        new[at[known]] = values[known]
        against = known & (new[at] != values)
        if against.any():
            row = y.index[against][0]
            raise DataError(f"y names the row {row!r} twice, with different classes; correct one.")
    else:
        values = y.to_numpy() if isinstance(y, pd.Series) else y
        vector = read_vector("y", values, data.n, None)
        new = as_numbers("y", vector, "0, 1 or NaN (unknown) is")
    return np.where(np.isnan(new), data.y, new)
