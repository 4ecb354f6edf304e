r"""A plan of which rows to audit, and the check that its random share allows.

The random rows tell π without any logistic form: of n rows, n₁ are known to be positive and u are
unlabelled with unknown class; a share m of the u is positive, told by the random audits alone:

.. math:: \hat\pi = (n_1 + u\,\hat m) / n, \qquad \hat m \sim \mathrm{Beta}(k_1 + ½, k_0 + ½)
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array, RowKind
from bayes_lepu.result.summaries import describe_draws, tail_probabilities


@dataclass(frozen=True, eq=False, repr=False)
class AuditPlan:
    """Rows to audit, most telling first, then those drawn at random.

    Attributes
    ----------
    rows : DataFrame
        By row label: ``missed`` = P(y=1 | x, l=0) over both namings of the factors, with ``lower``
        and ``upper``; ``sd of pi after`` this row and all above it are audited; ``picked``
        (chosen or random); ``why``.
    positions : array of int
        The same rows by their position in the table.
    goal : str
    sd_before, sd_after : float
        Standard deviation of π over both namings, now and to be expected after the audits.
    sd_random : float
        What as many rows drawn at random would leave.
    data : PUData
    pi : array
        Draws of π under both namings.
    """

    rows: pd.DataFrame
    positions: NDArray[np.intp]
    goal: str
    sd_before: float
    sd_after: float
    sd_random: float
    data: PUData = field(repr=False)
    pi: Array = field(repr=False)

    def __repr__(self) -> str:
        n_random = int(np.sum(self.rows["picked"] == "random"))
        return (
            f"{len(self.rows)} rows to audit (goal {self.goal}; {n_random} of them drawn at random)"
            f"\n  sd of the class prior: {self.sd_before:.3g} now, {self.sd_after:.3g} expected"
            f" after them; {self.sd_random:.3g} after as many random rows"
            "\n  then: fit.update(y=pd.Series(answers, index=plan.rows.index))"
        )

    def check(self, y: pd.Series, *, ci_prob: float | None = None) -> pd.DataFrame:
        """π from the random share alone, without the logistic form, beside the model's.

        Parameters
        ----------
        y : Series
            Classes found, 0 or 1, by row label; only those of the random share are used.
        ci_prob : float, optional
            Probability of the equal-tailed intervals; ArviZ's ``stats.ci_prob`` by default.

        Returns
        -------
        DataFrame
            Lines ``random rows`` and ``model``. Intervals that do not meet speak against the model.
        """
        from scipy.stats import beta  # a quarter of the time that the library takes to load

        random = self.rows.index[self.rows["picked"] == "random"]
        answered = y.reindex(random).dropna()
        if len(answered) == 0 or not answered.isin([0, 1]).all():
            raise DataError(
                f"y holds {len(answered)} usable answers (0 or 1) for the {len(random)} rows drawn "
                "at random; at least one is expected, by row label."
            )
        positive = int(answered.sum())
        share = beta(positive + 0.5, len(answered) - positive + 0.5)
        weights = self.data.kind_weights
        known = float(weights[[RowKind.LABELLED, RowKind.MISSED]].sum())
        unknown, total = float(weights[RowKind.UNLABELLED]), float(weights.sum())
        lower, upper = share.ppf(tail_probabilities(ci_prob))

        def pi(m: float) -> float:
            return (known + unknown * float(m)) / total

        lines = {
            "random rows": {
                "mean": pi(share.mean()),
                "sd": unknown * float(share.std()) / total,
                "lower": pi(lower),
                "upper": pi(upper),
            },
            "model": describe_draws(self.pi, ci_prob),
        }
        return pd.DataFrame.from_dict(lines, orient="index")
