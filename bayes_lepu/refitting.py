"""Fitting again with the options of a fit, after more has been learned about its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu._fit import fit_rows
from bayes_lepu.building import Rows
from bayes_lepu.errors import DataError
from bayes_lepu.fitted import Fit
from bayes_lepu.links import Array
from bayes_lepu.result.origin import BY_COLUMN, OF_ROWS, FitOptions
from bayes_lepu.suggestions import some
from bayes_lepu.tables.labels import as_numbers, read_vector

PLAIN = FitOptions(random_seed=0)  # the options of a table of numbers
UNPENALISED: dict[str, Any] = {"priors": None, "penalty": None, "C": None}
NAMING = ("item", "annotator", "label", *BY_COLUMN)  # what a table of numbers does not have


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
    masks = {"class_features": data.class_mask, "selection_features": data.selection_mask}
    places = {
        name: tuple(_places(fit, name, features[name]) or np.flatnonzero(mask).tolist())
        for name, mask in masks.items()
        if features[name] is not None or not mask[: data.given_width].all()
    }
    rows = Rows(
        data.given_table,
        data.given_labels,
        classes if known else None,
        visits=data.given_visits,
        sample_weight=data.row_weights,
    )
    # The rows go in as plain numbers; what the user calls them stays as it was.
    numbers: dict[str, Any] = {name: getattr(PLAIN, name) for name in (*OF_ROWS, *NAMING)}
    numbers |= {**places, **UNPENALISED, "progressbar": False}
    if options.method == fit.method:
        numbers["priors"] = fit.priors
    new = fit_rows(rows, fit.spec, replace(options, **numbers))
    names = ("feature_names", "named", "index", "encoding", "annotators")
    kept = {name: getattr(data, name) for name in names}
    found = replace(
        new,
        data=replace(new.data, **kept),
        options=options,
        provenance=replace(new.provenance, made_by="update"),
    )
    _ = found.level_draws
    return found


def _places(fit: Fit, option: str, columns: Sequence[str | int] | None) -> list[int]:
    """Positions of columns given by name (the user's, or those of a category's levels)."""
    if columns is None:
        return []
    names = fit.feature_names
    known: dict[Any, tuple[int, ...]] = {j: (j,) for j in range(len(names))}
    known |= {name: (j,) for j, name in enumerate(names)} | fit.data.terms
    unknown = [c for c in columns if c not in known]
    if unknown or not columns:
        raise DataError(
            f"{option} names {unknown or 'no column'}; columns of this fit are expected: "
            f"{some(names)}."
        )
    return sorted({place for c in columns for place in known[c]})


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
