"""Comparing models of the labelling on the same rows by PSIS-LOO and stacking."""

import warnings
from collections.abc import Mapping

import numpy as np
import pandas as pd

from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.fitted import Fit
from bayes_lepu.interruption import stops_at_once


@stops_at_once
def compare(fits: Mapping[str, Fit], *, method: str = "stacking") -> pd.DataFrame:
    """Expected log predictive density of the labels under each model, best first.

    `arviz.compare` with PSIS-LOO on the log-likelihood of every row. A difference below
    ``max(4, 2 dse)`` says nothing; where SCAR is not beaten, its simpler answer is the honest one.

    Parameters
    ----------
    fits : mapping of str to Fit
        Fits with draws (``method="nuts"`` or ``"laplace"``) of the same rows and labels.
    method : {"stacking", "BB-pseudo-BMA", "pseudo-BMA"}
        How the weights are made.

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

    if len(fits) < 2:
        raise ModelError(f"compare needs at least two fits, got {len(fits)}.")
    first = next(iter(fits.values()))
    for name, fit in fits.items():
        if fit.is_point:
            raise ModelError(
                f"{name!r} is a point estimate; LOO needs draws. Fit it with method='nuts'."
            )
        if not np.array_equal(fit.data.kind, first.data.kind):
            raise DataError(f"{name!r} was fitted to other labels than {next(iter(fits))!r}.")
    with warnings.catch_warnings():  # the table's column "warning" says it, model by model
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
        loos = {name: az.loo(fit.tree, pointwise=True, reff=1.0) for name, fit in fits.items()}
    return az.compare(loos, method=method)
