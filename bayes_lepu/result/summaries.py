r"""Posterior summaries of functions of x, streamed so that memory stays bounded.

A function f(θ, x) is evaluated on all draws for one block of rows at a time. The size of the block
keeps at most `BLOCK_CELLS` numbers in memory, whatever the number of rows and draws.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.pu_data import PUData, Sums
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.model.parameters import Parameters, mean_of, stack
from bayes_lepu.rows import UNKNOWN, Rows
from bayes_lepu.suggestions import unknown

if TYPE_CHECKING:
    import xarray as xr

    from bayes_lepu.fitted import Fit

BLOCK_CELLS = 2_000_000  # in memory at a time: 16 MB
MANY_ROWS = 20_000  # suffice to estimate how draws differ to a hundredth of their sd

RowFunction = Callable[[Parameters, NDArray[Any]], Array]


def row_blocks(n_rows: int, n_draws: int, cells: int | None = None) -> Iterator[slice]:
    """Slices of rows such that rows x draws stays below `BLOCK_CELLS`, and below ``cells``."""
    size = max(1, min(BLOCK_CELLS, cells or BLOCK_CELLS) // max(1, n_draws))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def mean_by_row(draws: Parameters, function: RowFunction, X: NDArray[Any]) -> Array:
    """Posterior mean of f(θ, x) for every row."""
    blocks = row_blocks(X.shape[0], draws.b.size)
    parts = [function(draws, X[rows]).mean(axis=0) for rows in blocks]
    return np.concatenate(parts) if parts else np.empty(0)


def summary_by_row(
    draws: Parameters,
    function: RowFunction,
    X: NDArray[Any],
    index: pd.Index,
    ci_prob: float | None,
) -> pd.DataFrame:
    """Posterior mean of f(θ, x) for every row; of draws, with its equal-tailed interval.

    ``X`` has the rows, or whatever else ``function`` takes by row, such as positions.
    """
    if draws.b.size == 1:
        return pd.DataFrame({"mean": mean_by_row(draws, function, X)}, index=index)
    tails, out = tail_probabilities(ci_prob), np.empty((X.shape[0], 3))
    for rows in row_blocks(len(out), draws.b.size, 400_000):  # small enough to sort in the cache
        values = np.ascontiguousarray(function(draws, X[rows]).T)
        out[rows, 0] = values.mean(axis=1)
        values.sort(axis=1)  # much faster than np.quantile, with the same result
        for side, tail in enumerate(tails, 1):
            below, part = divmod(tail * (draws.b.size - 1), 1)
            least, next_up = values[:, int(below)], values[:, int(np.ceil(below + part))]
            out[rows, side] = least + part * (next_up - least)
    return pd.DataFrame(out, columns=["mean", "lower", "upper"], index=index)


def over_all_rows(data: PUData, sums: Callable[..., Sums], draws: Parameters) -> tuple[Array, ...]:
    r"""Sums over all rows, for every draw.

    Evaluating every draw on every row would be slow. With many rows the sums are exact at the mean
    of the draws, and a part of the rows, of weight W_h, gives the deviation of each draw from it:

    .. math:: S(\theta_k) \approx S(\bar\theta) + [S_h(\theta_k) - S_h(\bar\theta)]\, W / W_h
    """
    some = data.some(MANY_ROWS)
    if some is data or draws.b.size == 1:
        return data.total(partial(sums, draws=draws))
    center = stack([mean_of(draws)])
    exact = data.total(partial(sums, draws=center))
    grown = float(data.kind_weights.sum() / some.kind_weights.sum())
    here, there = (some.total(partial(sums, draws=d)) for d in (draws, center))
    return tuple(e + (h - t) * grown for e, h, t in zip(exact, here, there, strict=True))


def positive_sums(rows: Rows, draws: Parameters) -> Sums:
    """Σ w t and Σ w s t over the rows, for every draw (and annotator), and Σ w."""
    positive: Any = 0.0
    marked: Any = 0.0
    for block in row_blocks(rows.X.shape[0], draws.b.size):
        X = rows.X[block]
        w = rows.weight[block]
        t, s = draws.t(X), draws.s(X)
        positive = positive + t @ w
        marked = marked + (s * (t[..., None, :] if draws.several else t)) @ w
    total = rows.weight.sum()
    return positive, marked, float(total)


def open_sums(rows: Rows, draws: Parameters) -> Sums:
    """Σ w m and Σ w m (1 - m) over the unlabelled rows that nobody checked, for every draw.

    m = P(y=1 | x, l=0): the mean and the variance of the number of positives among them.
    """
    is_open = (rows.labels[0] == 0) & (rows.known == UNKNOWN)
    X = rows.X[is_open]
    weight = rows.weight[is_open]
    mean, variance = np.zeros(draws.b.size), np.zeros(draws.b.size)
    for block in row_blocks(X.shape[0], draws.b.size):
        m = draws.missed(X[block])
        mean += m @ weight[block]
        variance += (m * (1 - m)) @ weight[block]
    return mean, variance


def interval_level(ci_prob: float | None = None) -> float:
    """Probability of an interval: the argument, or ArviZ's ``rcParams["stats.ci_prob"]``."""
    if ci_prob is None:
        # ArviZ takes a second to import. If nobody has imported it, its settings are the defaults.
        settings = getattr(sys.modules.get("arviz_base.rcparams"), "rcParams", {})
        ci_prob = float(settings.get("stats.ci_prob", 0.89))
    if not 0 < ci_prob < 1:
        raise ModelError(f"ci_prob = {ci_prob!r}; a number between 0 and 1 is expected.")
    return ci_prob


def tail_probabilities(ci_prob: float | None = None) -> tuple[float, float]:
    """Lower and upper tail of an equal-tailed interval."""
    level = interval_level(ci_prob)
    return (1 - level) / 2, (1 + level) / 2


def describe_draws(values: Array, ci_prob: float | None = None) -> dict[str, float]:
    """Mean, sd and interval of a scalar's draws (only the mean for a point estimate)."""
    values = np.ravel(values)
    if values.size == 1:
        return {"mean": float(values[0])}
    lower, upper = np.quantile(values, tail_probabilities(ci_prob))
    return {
        "mean": float(values.mean()),
        "sd": float(values.std(ddof=1)),
        "lower": float(lower),
        "upper": float(upper),
    }


def coefficient_table(fit: "Fit", ci_prob: float | None) -> pd.DataFrame:
    """Slopes and intercepts of both factors, on the internal and on the original scale."""
    draws, records = fit.draws, []
    factors = [("t", draws.a, draws.b)]
    if fit.spec.has_selection and fit.data.n_annotators == 1:
        factors.append(("s", draws.alpha, draws.beta))
    elif fit.spec.has_selection:
        for j, name in enumerate(fit.data.annotators):
            factors.append((f"s[{name}]", draws.alpha[:, j], draws.beta[:, j]))
    for _, *internal in factors:
        for slope, intercept in (internal, fit.data.original_scale(*internal)):
            columns = np.column_stack([slope, intercept]).T
            records += [describe_draws(values, ci_prob) for values in columns]
    levels = {
        "factor": [label for label, _, _ in factors],
        "scale": ["internal", "original"],
        "feature": [*fit.feature_names, "(intercept)"],
    }
    # With levels in this order the index counts as sorted; from_product would sort the names.
    codes = np.indices([len(names) for names in levels.values()]).reshape(len(levels), -1)
    index = pd.MultiIndex(levels=list(levels.values()), codes=codes, names=list(levels))
    return pd.DataFrame(records, index=index)


def checked_names(
    var_names: str | Sequence[str] | None, known: Iterable[object]
) -> list[str] | None:
    """The requested names of variables; ``"~b"`` means all except b, as in ArviZ."""
    if var_names is None:
        return None
    names = [var_names] if isinstance(var_names, str) else list(var_names)
    there = list(dict.fromkeys(map(str, known)))
    if wrong := [name for name in names if name.removeprefix("~") not in there]:
        raise ModelError(unknown("name in var_names", wrong[0], there))
    others = [name for name in there if f"~{name}" not in names]
    return names if len(others) == len(there) else others


def estimate_table(variables: "xr.Dataset", names: Sequence[str]) -> pd.DataFrame:
    """One line per entry of these variables of a point estimate, with ArviZ's names."""
    found = {}
    for name in names:
        own = variables[name].isel(chain=0, draw=0)
        for at in np.ndindex(own.shape):
            labels = [str(own[dim].to_numpy()[i]) for dim, i in zip(own.dims, at, strict=True)]
            found[f"{name}[{', '.join(labels)}]" if labels else name] = own.to_numpy()[at]
    return pd.DataFrame({"mean": found})


def summary_by_annotator(
    fit: "Fit",
    function: Callable[[Parameters, Array], Array],
    X: Array,
    index: pd.Index,
    ci_prob: float | None,
) -> pd.DataFrame:
    """Posterior summary of f(θ, x) ``(..., J, n)``, one line per row and annotator."""

    def of(j: int) -> pd.DataFrame:
        return summary_by_row(
            fit.draws, lambda draws, rows: function(draws, rows)[..., j, :], X, index, ci_prob
        )

    parts = {name: of(j) for j, name in enumerate(fit.data.annotators)}
    table = pd.concat(parts, names=["annotator"])
    order = np.arange(len(table)).reshape(len(parts), -1).T.ravel()
    return table.swaplevel().iloc[order]


def annotator_table(fit: "Fit", ci_prob: float | None) -> pd.DataFrame:
    """One line per annotator: rows seen and marked, label frequency, unusual slopes."""
    data = fit.data
    marked = data.marked
    table = pd.DataFrame(
        {
            "seen": data.shown.sum(axis=0),
            "labelled": marked.sum(axis=0),
            "shared": (marked & (marked.sum(axis=1) > 1)[:, None]).sum(axis=0),
        },
        index=pd.Index(data.annotators, name="annotator"),
    )
    figures = [describe_draws(column, ci_prob) for column in fit.c_by_annotator.T]
    for name in ("mean", "lower", "upper"):
        if name in figures[0]:
            table[name] = [figure[name] for figure in figures]
    if data.n_annotators > 1 and not fit.is_point:
        table["differs_in"] = [_differences(fit, j) for j in range(len(table))]
    return table


def _differences(fit: "Fit", j: int) -> str:
    """Columns whose slope differs for annotator j with 95 % probability, and the direction."""
    gap = fit.draws.alpha[:, j] - fit.draws.alpha.mean(axis=1)
    lower, upper = np.quantile(gap, tail_probabilities(0.95), axis=0)
    apart = np.flatnonzero(fit.data.selection_mask & (lower * upper > 0))
    return ", ".join(f"{fit.feature_names[k]} {'+' if lower[k] > 0 else '-'}" for k in apart)
