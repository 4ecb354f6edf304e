r"""Which columns t and s depend on, by shuffling each of them.

.. math:: T_j = \frac{\mathrm{E}\,[f(x) - f(x^{(j)})]^2}{2\,\mathrm{Var}\,f(x)}

where :math:`x^{(j)}` has column j of another row. It is 0 for a column without effect and 1 where
nothing else matters; of independent columns it is Sobol's total index (Jansen, 1999,
doi:10.1016/S0010-4655(98)00154-4). Of a learned class the user's columns are shuffled and the
classifiers rate the rows anew: scores are no columns of the user's.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.suggestions import some

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

ROWS = 2_000  # good to a hundredth
DRAWS = 30  # of which t and s are averaged: their mean hardly moves with more


def importance(fit: "Fit", features: Sequence[str] | None) -> pd.DataFrame:
    """One row per column of the user's, the most important first; columns t and s."""
    data, draws = fit.data, fit.draws.thin(DRAWS).average()
    names = list(data.terms) if features is None else list(features)
    if unknown := [name for name in names if name not in data.terms]:
        raise DataError(
            f"Unknown column(s) {unknown} in features; of {some(list(data.terms))} is expected."
        )
    X = data.cells(range(data.p), evenly_spaced(data.n, ROWS))
    order = np.random.default_rng([fit.options.random_seed, 11]).permutation(len(X))

    def factors(rows: Array) -> Array:
        return np.array([draws.t(rows).mean(axis=0), draws.s(rows).mean(axis=0)])

    own, found = factors(X), []
    scale = 2 * own.var(axis=1)
    for name in names:
        places = list(data.terms[name])
        moved = X.copy()
        moved[:, places] = X[order][:, places]
        change = np.mean((factors(data.rated(moved)) - own) ** 2, axis=1)
        found.append(np.divide(change, scale, out=np.zeros(2), where=scale > 1e-12))
    table = pd.DataFrame(found, index=pd.Index(names, name="column"), columns=["t", "s"])
    table = table if fit.spec.has_selection else table[["t"]]
    return table.sort_values("t", ascending=False, kind="stable")
