"""Fitting again with the options of a fit, after more has been learned about its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu._fit import fit_data
from bayes_lepu.building import priors_of, spec_of
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import DataError
from bayes_lepu.fitted import Fit
from bayes_lepu.links import Array
from bayes_lepu.options import check_audit, check_columns, check_options
from bayes_lepu.priors.prior import SLOPES, GivenPriors
from bayes_lepu.runtime.interruption import stops_at_once
from bayes_lepu.suggestions import some
from bayes_lepu.tables.labels import as_numbers, read_classes, read_outside, read_vector

UNPENALISED: dict[str, Any] = {"priors": None, "penalty": None, "C": None}


@stops_at_once
@np.errstate(all="ignore")  # a search meets infinities and leaves them
def refit(
    fit: Fit,
    *,
    y: Any,
    audits: str,
    class_features: Sequence[str | int] | None,
    selection_features: Sequence[str | int] | None,
    learned: Mapping[str, Any],
) -> Fit:
    """The same rows, labels and options, with what is given here on top (see `Fit.update`)."""
    data = fit.data
    classes = data.y if y is None else add_classes(fit, y)
    known = not bool(np.isnan(classes).all())
    features = {"class_features": class_features, "selection_features": selection_features}
    news: dict[str, Any] = {"audits": audits if known else None}
    if y is not None:
        news["y"] = None  # no longer what the column of this name says
    if learned["method"] not in (None, fit.method):
        news |= UNPENALISED
    options = replace(fit.options.but(**features, **learned), **news)
    check_options(options, audited=known)
    spec = spec_of(fit.spec, options)
    check_columns(spec, selection_features, None)
    data = replace(
        data,
        y=read_classes(classes, data.labels, None, false_marks=spec.false_marks),
        outside=read_outside(options.class_prior, options.label_frequency),
    ).with_masks(
        _mask(fit, "class_features", class_features, data.class_mask),
        _mask(fit, "selection_features", selection_features, data.selection_mask),
    )
    check_audit(spec, data)
    asked = replace(options, **UNPENALISED)
    if options.method == fit.method:
        asked = replace(asked, priors=_kept(fit, data))
    new = fit_data(spec, data, priors_of(spec, data, asked), replace(asked, progressbar=False))
    made = replace(new.provenance, made_by="update")
    found = replace(new, options=options, provenance=made)
    _ = found.level_draws
    return found


def _kept(fit: Fit, data: PUData) -> GivenPriors:
    """The priors of a fit; those given by column, for the columns that are left."""
    priors: dict[str, Any] = dict(fit.priors)
    masks = ((d.class_mask, d.selection_mask) for d in (fit.data, data))
    for name, before, now in zip(SLOPES, *masks, strict=True):
        parts = priors[name].parts if name in priors else ()
        if parts and not np.array_equal(before, now):
            by_place = dict(zip(np.flatnonzero(before).tolist(), parts, strict=True))
            priors[name] = {fit.feature_names[j]: by_place[j] for j in by_place if now[j]}
    return priors


def _mask(
    fit: Fit, option: str, columns: Sequence[str | int] | None, own: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Columns of X by name (the user's, or those of a category's levels); by default the same."""
    if columns is None:
        return own
    if fit.data.encoding.design is not None:
        raise DataError(
            f"{option} is given, but the columns of this fit are those of formulas. Fit again with "
            f"another {option.replace('features', 'formula')}=."
        )
    names = fit.feature_names[: fit.data.given_width]
    known: dict[Any, tuple[int, ...]] = {j: (j,) for j in range(len(names))}
    known |= {name: (j,) for j, name in enumerate(names)} | fit.data.terms
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
