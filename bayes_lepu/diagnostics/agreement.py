r"""Do the annotators label independently given x and the class: counts against the model's own.

Replicated labels are drawn from the posterior on the cells that were shown. Compared are the rows
labelled by both of each pair, by nobody, and by exactly k annotators. Pairs and nobody alone would
see little, because the propensities adapt to them; but if hard positives are missed by everybody,
the numbers of labels per row spread more than independent annotators make them (many rows with one
label and with all, few between), and π is estimated too low.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

REPLICATES = 500
LEAST_REPLICATES = 100
MAX_CELLS = 200_000_000
MOST_ROWS = 1_000_000


@dataclass(frozen=True, eq=False)
class Agreement:
    """Observed and replicated counts.

    Attributes
    ----------
    names : list of str
    observed : (k,) array
    replicated : (draw, k) array
    """

    names: list[str]
    observed: Array
    replicated: Array

    @property
    def z(self) -> Array:
        """Observed counts in standard deviations from the replicated mean."""
        return (self.observed - self.replicated.mean(axis=0)) / self._sd

    @property
    def p_value(self) -> float:
        """Share of replicates whose largest deviation is as large as the observed one."""
        deviations = np.abs(self.replicated - self.replicated.mean(axis=0)) / self._sd
        beyond = deviations.max(axis=1) >= np.abs(self.z).max()
        return float((1 + beyond.sum()) / (1 + len(beyond)))

    @property
    def alike(self) -> bool:
        """Whether the labels per labelled row spread more than those of independent annotators."""
        J = sum(name.startswith("exactly") for name in self.names)
        k = np.arange(1, J + 1)

        def spread(rows: Array) -> Array:
            share = rows / np.maximum(rows.sum(axis=-1, keepdims=True), 1.0)
            return share @ k**2 - (share @ k) ** 2

        return bool(spread(self.observed[-J:]) > spread(self.replicated[:, -J:]).mean())

    @property
    def _sd(self) -> Array:
        # A count that never varies is compared in units of one row.
        return np.maximum(self.replicated.std(axis=0, ddof=1), 0.5)

    def to_frame(self, tails: tuple[float, float]) -> pd.DataFrame:
        """The counts as a table."""
        lower, upper = np.quantile(self.replicated, tails, axis=0)
        return pd.DataFrame(
            {
                "observed": self.observed.astype(int),
                "expected": self.replicated.mean(axis=0),
                "lower": lower,
                "upper": upper,
                "z": self.z,
            },
            index=pd.Index(self.names, name="rows labelled by"),
        )


def agreement_of(fit: "Fit") -> Agreement:
    """The counts of a fit against labels replicated from its posterior."""
    rng = np.random.default_rng([fit.options.random_seed, 7])
    return compare_agreement(fit.draws, fit.data, rng)


def compare_agreement(draws: Parameters, data: PUData, rng: np.random.Generator) -> Agreement:
    """Counts of the data against counts of labels replicated from the posterior.

    A point estimate is replicated many times as it is.
    """
    data = data.as_counted(MOST_ROWS)
    X, shown, J = data.X, data.shown, data.n_annotators
    affordable = max(LEAST_REPLICATES, min(REPLICATES, MAX_CELLS // (data.n * J)))
    count = affordable if draws.b.size == 1 else min(affordable, draws.b.size)
    replicated = []
    for i in np.linspace(0, draws.b.size - 1, count).astype(int):
        _, labels = draws.take(i).simulate(X, rng, shown=shown)
        replicated.append(counts(labels == 1, shown))
    names = [f"{one} and {other}" for one, other in combinations(data.annotators, 2)]
    names += ["nobody"] + [f"exactly {k}" for k in range(1, J + 1)]
    return Agreement(names, counts(data.marked, shown), np.array(replicated))


def counts(labelled: NDArray[np.bool_], shown: NDArray[np.bool_]) -> Array:
    """Rows labelled by both of each pair, and by exactly 0, 1, ..., J; unseen rows left out."""
    J = labelled.shape[1]
    marks = labelled.astype(float)
    both = (marks.T @ marks)[np.triu_indices(J, 1)]
    per_row = labelled.sum(axis=1)[shown.any(axis=1)]
    return np.concatenate([both, np.bincount(per_row, minlength=J + 1)])
