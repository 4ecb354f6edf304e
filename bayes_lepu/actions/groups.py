r"""Shares of positives by group of rows, and how two groups compare.

.. math:: \pi_g = \frac{1}{n_g} \sum_{i \in g} P(y_i = 1 \mid x_i, \text{labels})

If positives of group g are marked at a rate c_g whatever x, and P(y=1 | x) is common to the groups,
h_g(x) = c_g t(x): then c_A / c_B = h_A(x) / h_B(x) at every x that both groups have, so the ratio

.. math:: \pi_A / \pi_B = \frac{E_A h}{E_B h} \cdot \frac{c_B}{c_A}

is identified, though the level of π is not (relative prevalence: Shanmugam and others 2024,
doi:10.1038/s44294-024-00011-5). If s is common to the groups, the ratio moves with the shape of s
only. The range of every figure covers its value under each alternative model with the same fit, and
the posterior interval shifted by the difference between that model and the fitted one. Where the
data do not show which factor is the class, it also covers the figure with t and s swapped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.actions.missed import (
    MAX_DRAWS,
    UNNAMED_LEVEL,
    positive_given_labels,
    read,
    rows_of_forms,
    stream,
    weighted_sums,
)
from bayes_lepu.data.formulas import inverse_of, is_group, is_interaction, spline_argument
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array, RowKind
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.result.summaries import describe_draws, mean_by_row
from bayes_lepu.suggestions import some
from bayes_lepu.verdict.forms import FormRange, missed_between
from bayes_lepu.verdict.labels import LARGEST_Z
from bayes_lepu.verdict.records import Identifiability

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

FEW_ROWS = 10  # with fewer rows, single rows determine the share
IDENTIFIED = "under it the ratio is identified even where the level of π is not"
type By = str | Sequence[str] | pd.Series | pd.DataFrame | NDArray[Any]


class Groups(NamedTuple):
    """The grouping columns as a title, the names of the groups, and the group of each row."""

    title: str
    names: tuple[Any, ...]
    codes: NDArray[np.intp]


def read_groups(data: PUData, by: By) -> Groups:
    """Groups by columns of the fit, or by values for every row."""
    if callable(by) or (isinstance(by, list | tuple) and not by):
        raise DataError(
            f"by is {by!r}; columns of the fit, or a value for every row, are expected."
        )
    if isinstance(by, str):
        by = [by]
    if isinstance(by, list | tuple) and len(by) != data.n:  # columns, not a value for every row
        by = pd.concat([_column(data, name) for name in by], axis=1)
    if not isinstance(by, pd.Series | pd.DataFrame):
        by = pd.Series(np.asarray(by))
    elif not by.index.equals(data.index):
        if not data.index.isin(by.index).all() or by.index.has_duplicates:
            raise DataError("by has no value for some rows of the fit; one each is expected.")
        by = by.loc[data.index]
    if isinstance(by, pd.Series):
        by = by.to_frame("group" if by.name is None else by.name)
    if len(by) != data.n:
        raise DataError(f"by has {len(by)} values; one for each of {data.n} rows is expected.")
    if missing := int(by.isna().any(axis=1).sum()):
        raise DataError(f"by has {missing} missing values; fill them first.")
    title = ", ".join(str(name) for name in by)
    values = by.iloc[:, 0] if by.shape[1] == 1 else by.astype(str).agg(", ".join, axis=1)
    codes, names = pd.factorize(values, sort=True)
    if len(names) > data.n / 10:
        raise DataError(
            f"{title} has {len(names)} different values; groups of ten rows or more are expected. "
            f"Cut it first, for example by=pd.qcut(X[{title!r}], 4)."
        )
    return Groups(title, tuple(names), codes.astype(np.intp))


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Two groups of rows compared.

    Attributes
    ----------
    table : DataFrame
        Lines ``ratio`` and ``difference`` of the shares of positives, the two shares, and ``all``,
        the share among all rows. ``mean``, ``lower`` and ``upper`` if the form is exact; ``low``
        and ``high`` over the alternative models that fit the labels as well. A point estimate has
        ``mean`` alone.
    rests_on : str
        What the ratio rests on.
    doubts : tuple of str
        Reasons to doubt the ratio: groups that hardly overlap, or different slopes in one of them.
    """

    table: pd.DataFrame
    rests_on: str
    doubts: tuple[str, ...]

    def __repr__(self) -> str:
        lines = [self.table.round(3).to_string(), f"rests on: {self.rests_on}"]
        return "\n".join([*lines, *(f"but: {doubt}" for doubt in self.doubts)])


class Shares(NamedTuple):
    """Shares of positives by group, the last axis of all arrays."""

    draws: Array
    swapped: Array  # with t and s swapped, where the data do not show which is the class
    forms: Array  # by the alternative models with the same fit; the fitted model comes first
    known: Array  # share of rows that are known to be positive
    weight: Array
    ends: tuple[float, float] | None  # range of π over the alternative models

    def share(self, combine: Array, ci_prob: float | None) -> dict[str, float]:
        """The share in one group, or in several of them together.

        The range of π (``ends``) can be wider than that of the alternative models, for example by
        the width of the likelihood. The missed positives of every group are scaled accordingly.
        """
        of = (shares @ combine for shares in (self.draws, self.forms, self.swapped))
        out = describe(*of, ci_prob=ci_prob)
        if self.ends is None:
            return out
        forms = self.forms if len(self.forms) else self.draws.mean(axis=0, keepdims=True)
        whole, known = self.weight / self.weight.sum(), float(self.known @ combine)
        missed, level = forms @ combine - known, float(self.known @ whole)
        least, most = (forms @ whole - level).min(), (forms @ whole - level).max()
        low = known + missed.min() * np.clip((self.ends[0] - level) / max(least, 1e-12), 0, 1)
        high = known + missed.max() * max((self.ends[1] - level) / max(most, 1e-12), 1)
        low, high = np.fmin(out["low"], low), np.fmax(out["high"], high)
        return out | {"low": max(float(low), 0.0), "high": min(float(high), 1.0)}


def group_shares(
    fit: "Fit", verdict: Identifiability, groups: Groups, *, of_open: bool = False
) -> Shares:
    """Shares of positives by group, among all rows or among those whose class is unknown."""
    data, count = fit.data, len(groups.names)
    positive, rng = positive_given_labels(data), stream(fit)
    weight, counted = np.zeros((data.n, count)), (not of_open) | (data.kind == RowKind.UNLABELLED)
    weight[np.arange(data.n), groups.codes] = data.weight * counted
    total = np.maximum(weight.sum(axis=0), 1e-300)

    def shares(draws: Parameters) -> Array:
        out, variance = weighted_sums(positive, draws, np.arange(data.n), weight)
        if draws.b.size > 1:  # the classes of single rows are uncertain too
            out += np.sqrt(variance) * rng.standard_normal(out.shape)
        return np.clip(out / total, 1e-12, 1.0)

    both = verdict.level >= UNNAMED_LEVEL
    other = [r.draws for r in read(fit, np.arange(data.n), both=both)[1:]]
    found = None if verdict.evidence is None else verdict.evidence.forms
    sure = (data.y == 1) | ((data.l == 1) & (not fit.spec.false_marks))
    ends = None if found is None else (found.low, found.high)
    if of_open and verdict.pi_range is not None:
        low, high = missed_between(data, *verdict.pi_range)
        ends = low / total.sum(), high / total.sum()
    return Shares(
        draws=shares(fit.draws.thin(MAX_DRAWS)),
        swapped=shares(other[0]) if other else np.zeros((0, count)),
        forms=_by_forms(data, found, weight),
        known=sure @ weight / total,
        weight=total,
        ends=ends,
    )


def _by_forms(data: PUData, found: FormRange | None, weight: Array) -> Array:
    """Shares by every alternative model, over the rows to which these models were fitted."""
    rows = rows_of_forms(data, found)
    if found is None or rows is None:
        return np.zeros((0, weight.shape[1]))
    y, w, unmarked = data.y[rows], weight[rows], data.l[rows] == 0
    m = np.ones((len(found.missed), len(rows)))
    m[:, unmarked] = np.where(np.isnan(y[unmarked]), found.missed, y[unmarked])
    return np.maximum(m @ w / np.maximum(w.sum(axis=0), 1e-300), 1e-12)


def describe(
    draws: Array, forms: Array, swapped: Array, *, ci_prob: float | None
) -> dict[str, float]:
    """Mean and interval, and the range over alternative models and both orientations."""
    out = describe_draws(draws, ci_prob)
    if not len(forms):
        return out | {"low": np.nan, "high": np.nan}
    shift = forms - forms[0]
    ends = [*forms, out.get("lower", out["mean"]) + shift.min()]
    ends += [out.get("upper", out["mean"]) + shift.max()]
    if len(swapped):
        other = describe_draws(swapped, ci_prob)
        ends += [value for name, value in other.items() if name != "sd"]
    return out | {"low": float(min(ends)), "high": float(max(ends))}


def shares_table(
    fit: "Fit",
    verdict: Identifiability,
    groups: Groups,
    ci_prob: float | None = None,
    *,
    missed: bool = False,
) -> pd.DataFrame:
    """Share of positives in every group with its rows and marks; or the number of missed ones."""
    found = group_shares(fit, verdict, groups, of_open=missed)
    lines = [found.share(one, ci_prob) for one in np.eye(len(groups.names))]
    table = pd.DataFrame(lines, index=pd.Index(groups.names, name=groups.title))
    if missed:
        table = table[["low", "high", *table.columns.drop(["low", "high"])]]
        return table.mul(found.weight, axis=0).assign(open=found.weight)
    counts = np.bincount(groups.codes)
    marked = np.bincount(groups.codes, weights=fit.data.l).astype(int)
    table.attrs["rests_on"] = rests_on(fit, groups)
    return table.assign(rows=counts, marked=marked)


def compare_groups(
    fit: "Fit", verdict: Identifiability, groups: Groups, a: Any, b: Any, ci_prob: float | None
) -> Comparison:
    """Ratio and difference of the shares of two groups."""
    at, names = [], [str(name) for name in groups.names]
    for name in (a, b):
        if str(name) not in names:
            known = f"one of {some(names)} is expected"
            raise DataError(f"{groups.title} has no group {name!r}; {known}.")
        at.append(names.index(str(name)))
    found, each = group_shares(fit, verdict, groups), np.eye(len(names))
    pairs = [shares[:, at].T for shares in (found.draws, found.forms, found.swapped)]
    ratio = describe(*(np.log(one / other) for one, other in pairs), ci_prob=ci_prob)
    lines = {
        "ratio": {k: float(np.exp(v)) for k, v in ratio.items() if k != "sd"},
        "difference": describe(*(one - other for one, other in pairs), ci_prob=ci_prob),
        str(a): found.share(each[at[0]], ci_prob),
        str(b): found.share(each[at[1]], ci_prob),
        "all": found.share(found.weight / found.weight.sum(), ci_prob),
    }
    table = pd.DataFrame.from_dict(lines, orient="index").drop(columns="sd", errors="ignore")
    doubts = _doubts(fit, groups, at)
    if len(found.swapped):
        swapped = np.exp(np.mean(np.log(found.swapped[:, at[0]] / found.swapped[:, at[1]])))
        doubts += (f"with t and s swapped, which fits the labels as well, it is {swapped:.2f}",)
    if fit.is_point:  # its range would not include the sampling error
        table = table.drop(columns=["low", "high"])
        doubts += ("a point estimate has no interval; fit.update(method='laplace') has one",)
    return Comparison(table, rests_on(fit, groups), doubts)


def rests_on(fit: "Fit", groups: Groups) -> str:
    """What the model assumes of the marking in the groups, and whether this identifies ratios."""
    data, inside = fit.data, fit.data.selection_mask
    if not fit.spec.has_selection or not inside.any():
        return f"positives are marked at the same rate everywhere; {IDENTIFIED}"
    first = np.unique(groups.codes, return_index=True)[1]
    apart = np.asarray(abs(data.X - data.X[first[groups.codes]]).sum(axis=0)).ravel()
    of_group = apart == 0  # columns that are the same in all rows of a group
    if of_group[inside].all():
        text = "positives are marked at one rate in each group, whatever else is known of them"
        common = not data.class_mask[of_group].any()
        return f"{text}; P(y=1 | x) is common to the groups; {IDENTIFIED}" if common else text
    if not of_group[inside].any():
        text = "given their columns, positives are marked alike in all groups"
        return f"{text}: the ratio moves with the shape of s, not with its level"
    return "the form of the propensity, which depends on the group and on other columns"


def _doubts(fit: "Fit", groups: Groups, at: list[int]) -> tuple[str, ...]:
    """Groups whose scores hardly overlap, or whose labels follow the score with another slope."""
    data, draws, doubts = fit.data, fit.draws.thin(MAX_DRAWS), []
    masks = [groups.codes == g for g in at]
    for g, m in zip(at, masks, strict=True):
        if m.sum() < FEW_ROWS:
            doubts.append(f"{groups.names[g]!r} has only {m.sum()} rows: mostly chance")
    t = mean_by_row(draws, Parameters.t, data.X)
    score = np.log(np.maximum(t, 1e-12)) - np.log(np.maximum(1 - t, 1e-12))
    ends = [np.quantile(score[m], (0.01, 0.99)) for m in masks]
    for g, m, (low, high) in zip(at, masks, ends[::-1], strict=True):
        shared = float(np.mean((score[m] >= low) & (score[m] <= high)))
        if shared < 0.5:
            doubts.append(
                f"only {shared:.0%} of the rows of {groups.names[g]!r} have scores in the range of "
                "the other group"
            )
    if data.n_annotators > 1:
        return tuple(doubts)
    h = mean_by_row(draws, Parameters.h, data.X)
    slopes = []
    for m in masks:  # score test of h = c t^θ at θ = 1, the rate c free
        log_t, odds = np.log(np.maximum(t[m], 1e-12)), h[m] / np.maximum(1 - h[m], 1e-12)
        spread = log_t - np.average(log_t, weights=odds)
        error = (data.l[m] - h[m]) / np.maximum(1 - h[m], 1e-12)
        slopes.append(np.sum(error * spread) / np.sqrt(max(np.sum(odds * spread**2), 1e-300)))
    z = (slopes[0] - slopes[1]) / np.sqrt(2)
    if abs(z) > LARGEST_Z:
        flat, steep = (groups.names[g] for g in (at if z < 0 else at[::-1]))
        doubts.append(
            f"labels rise less steeply with the class in {flat!r} than in {steep!r} ({abs(z):.1f} "
            "standard errors): P(y=1 | x) differs, or the marking depends on more than the group"
        )
    return tuple(doubts)


def _column(data: PUData, name: str) -> pd.Series:
    """A column of the user's table, recovered from the encoded columns."""
    rows = np.arange(data.n)
    found = own_values(data, name, rows) or own_values(data, f"1 | {name}", rows)
    if found is None:
        raise DataError(
            f"{name!r} is no column of this fit ({some(list(data.terms))}). Pass its values, one "
            f"per row: by=X[{name!r}]."
        )
    return pd.Series(found[1], index=data.index, name=name)


def _rounded(values: Array) -> Array:
    """Rounded to ten decimals; numbers too large for that stay as they are."""
    with np.errstate(over="ignore"):
        found = np.round(values, 10)
    return np.where(np.isfinite(found), found, values)


def own_values(data: PUData, name: str, rows: NDArray[np.intp]) -> tuple[str, NDArray[Any]] | None:
    """Name and values of a column in the user's table: numbers in their units, levels by name.

    A spline is shown by its argument and a group by its level. None for other terms of several
    columns, such as interactions, and for names that are no term.
    """
    if name not in data.terms:
        return None
    design = data.encoding.design
    places = list(data.terms[name])
    raw = data.cells(places, rows) * data.scale[places] + data.center[places]
    raw = _rounded(raw) + 0.0  # removes the rounding errors of the internal scale
    if design is not None and (spline := spline_argument(name)):
        values = design.argument(name, raw)
        of, inverse = inverse_of(spline[0])
        return None if values is None else (of, inverse(_rounded(values)))
    if is_group(name):
        levels = [data.feature_names[j].split("=", 1)[1] for j in places]
        return name.removeprefix("1 | "), np.array(levels, dtype=object)[np.argmax(raw, axis=1)]
    column = next((c for c in data.encoding.columns if c.name == name), None)
    if column is not None and column.levels is not None and len(column.names) == len(places):
        at = np.where(raw.max(axis=1) > 0.5, 1 + np.argmax(raw, axis=1), 0)
        return name, np.array(column.levels, dtype=object)[at]
    if column is not None and column.indicator and len(places) == 2:
        return name, np.where(raw[:, 1] > 0.5, np.nan, raw[:, 0])
    if len(places) > 1 or (design is not None and is_interaction(name)):
        return None
    of, inverse = inverse_of(name)
    return of, inverse(raw[:, 0])
