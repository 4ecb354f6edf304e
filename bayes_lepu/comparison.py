"""Compare models of the labelling on the same rows by PSIS-LOO and stacking."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.data.weights import evenly_by_weight, total_and_error
from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.fitted import Fit
from bayes_lepu.links import Array
from bayes_lepu.runtime.interruption import stops_at_once

if TYPE_CHECKING:
    import arviz as az
    import xarray as xr

Indices = NDArray[np.intp]
MANY_CELLS = 40_000_000  # rows x draws: 320 MB, of which ArviZ makes copies
FEWEST_DRAWS = 25  # ArviZ fits the tail to a fifth of the draws and needs five of them
SOME_ROWS = 4000  # rows of which 4000 draws are 128 MB


@stops_at_once
def compare(
    fits: Mapping[str, Fit], *, method: str = "stacking", round_to: int | str = "auto"
) -> pd.DataFrame:
    """Expected log predictive density of the labels under each model, best first.

    `arviz.compare` with PSIS-LOO on the log-likelihood of every row. A difference below
    ``max(4, 2 dse)`` shows nothing. Laplace draws are treated as posterior draws; ``fit.quality``
    shows whether this is justified. If rows x draws exceeds `MANY_CELLS`, LOO is computed for
    `SOME_ROWS` rows and extended to the others by their likelihood at the posterior mean
    (`arviz.loo_subsample`).

    Parameters
    ----------
    fits : mapping of str to Fit
        Fits with draws (``method="nuts"`` or ``"laplace"``) of the same rows. Other rows, labels,
        audited classes, or values in a column of the same name are refused; other columns of the
        same rows are allowed, so that formulas and choices of columns can be compared.
    method : {"stacking", "BB-pseudo-BMA", "pseudo-BMA"}
        How the weights are made.
    round_to : int or {"auto", "none"}
        Number of digits. By default `arviz.compare` rounds elpd by its standard error: to tens if
        this is above 5, to hundreds above 50. For small differences see ``elpd_diff`` or use
        "none".

    Returns
    -------
    DataFrame
        One row per model: rank, elpd, p, elpd_diff, weight, se, dse, warning.

    Examples
    --------
    >>> import bayes_lepu as lepu
    >>> demo = lepu.load_demo()
    >>> options = dict(method="laplace", draws=250, random_seed=1)
    >>> table = lepu.compare(
    ...     {m: lepu.fit(demo.X, demo.l, model=m, **options) for m in ("scar", "spm")}
    ... )
    >>> table.index[0]
    'spm'
    """
    import arviz as az

    refuse_other_rows(fits)
    with warnings.catch_warnings():  # the table has a column "warning" instead
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
        loos = {name: _loo(fit) for name, fit in fits.items()}
    return az.compare(loos, method=method, round_to=round_to)


def refuse_other_rows(fits: Mapping[str, Fit]) -> None:
    """Refuse fewer than two fits, point estimates, and fits with other rows than the first fit."""
    if not isinstance(fits, Mapping):
        raise ModelError(
            f"fits is a {type(fits).__name__}; fits by name are expected: "
            "{'scar': one_fit, 'spm': another_fit}."
        )
    if len(fits) < 2:
        raise ModelError(f"At least two fits are expected, got {len(fits)}.")
    first = next(iter(fits))
    for name, fit in fits.items():
        if fit.is_point:
            raise ModelError(
                f"{name!r} is a point estimate; draws are needed. Fit it with method='nuts'."
            )
        if fit.draws.b.size < FEWEST_DRAWS:
            raise ModelError(
                f"{name!r} has {fit.draws.b.size} draws; at least {FEWEST_DRAWS} are expected to "
                "estimate how well left-out labels are predicted. Fit it with more draws=."
            )
        _check_rows(fit.data, fits[first].data, name, first)


def _check_rows(one: PUData, other: PUData, name: str, first: str) -> None:
    if not (one.n == other.n and np.array_equal(one.labels, other.labels)):
        raise DataError(f"{name!r} was fitted to other labels than {first!r}.")
    if not np.array_equal(one.kind, other.kind):
        raise DataError(f"{name!r} was fitted to other audited classes than {first!r}.")
    if not np.array_equal(one.weight, other.weight):
        raise DataError(f"{name!r} was fitted with other weights (sample_weight=) than {first!r}.")
    for column in set(one.feature_names) & set(other.feature_names):
        mine, theirs = (
            d.X[:, j] * d.scale[j] + d.center[j]
            for d in (one, other)
            for j in [d.feature_names.index(column)]
        )
        if not np.allclose(mine, theirs, rtol=1e-6, atol=1e-9 * max(1.0, np.abs(theirs).max())):
            raise DataError(
                f"{name!r} has other values in the column {column!r} than {first!r}. Compare fits "
                "of the same rows, in the same order."
            )


def _loo(fit: Fit) -> "az.ELPDData":
    """PSIS-LOO of every row, or of a part of very many rows; a row of weight 2 counts as two."""
    import arviz as az
    import xarray as xr

    groups = {"posterior": fit.tree["posterior"].to_dataset()[["b"]]}
    of_rows = {g: fit.tree[g].to_dataset() for g in ("log_likelihood", "observed_data")}
    of_rows["log_likelihood"] = of_rows["log_likelihood"].map(_without_ties)
    weight, some = fit.data.weight, SOME_ROWS
    if fit.data.n * fit.draws.b.size > MANY_CELLS:
        rows = evenly_by_weight(weight, some)
        of_rows = {g: values.isel(obs=rows) for g, values in of_rows.items()}
        weight = np.full(some, weight.sum() / some)
    tree = xr.DataTree.from_dict(groups | of_rows)
    tree["log_likelihood"].load()  # ArviZ reads it several times
    found = az.loo(tree, pointwise=True, reff=1.0)
    if (weight == 1).all():
        return found
    return _weighted(found, tree["log_likelihood"].to_dataset()["l"], weight)


def _weighted(loo: "az.ELPDData", values: "xr.DataArray", weight: Array) -> "az.ELPDData":
    """The LOO result with every row counted by its weight."""
    own = loo.elpd_i.to_numpy()
    seen = logsumexp(values.to_numpy(), axis=(0, 1)) - np.log(values[..., 0].size)
    elpd, se = total_and_error(own, weight)
    p = float(weight @ (seen - own))
    return replace(loo, elpd=elpd, se=se, p=p, elpd_i=loo.elpd_i.copy(data=own * weight))


def _without_ties(values: "xr.DataArray") -> "xr.DataArray":
    """Log likelihoods in which equal smallest values of a row are set apart by 1e-9.

    ArviZ cannot fit a tail to equal values, which occur in rows far from the boundary.
    """
    from bayes_lepu.result.tree import computed

    def entries(chain: Indices, draw: Indices, row: Indices) -> Array:
        some = values[chain, draw, row].to_numpy()
        flat = some.reshape(-1, row.size)
        tail = max(1, int(min(0.2 * len(flat), 3 * len(flat) ** 0.5)))  # as ArviZ takes it
        tied = np.ptp(np.partition(flat, tail - 1, axis=0)[:tail], axis=0) == 0
        return some - np.linspace(0, 1e-9, draw.size)[:, None] * tied

    return values.copy(data=computed(("chain", "draw", "obs"), values.shape, float, entries))
