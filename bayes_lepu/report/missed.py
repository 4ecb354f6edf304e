"""The rows most likely to be missed positives."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayes_lepu.links import RowKind
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.plots.annotator import top_features
from bayes_lepu.plots.panels import thin
from bayes_lepu.report.tables import Table, from_frame, table
from bayes_lepu.result import FittedModel
from bayes_lepu.result.summaries import CI_PROB, mean_by_row, summary_by_row

DRAWS = 500
ALL_DRAWS = 5_000_000
SHOWN = 200
IN_FILE = 5000
FEATURES = 6
PROBABILITY = "P(y=1 | x, l=0)"


@dataclass(frozen=True)
class Missed:
    """Unlabelled rows by P(y=1 | x, l=0), the first of them as a table, more of them as CSV."""

    table: Table
    csv: str
    in_file: int
    total: int
    expected: float


def missed_rows(fit: FittedModel) -> Missed:
    """Rank the unlabelled rows whose class is unknown.

    Means and intervals are those of `Fit.missed` up to `ALL_DRAWS` rows x draws, and over 500
    evenly spaced draws beyond; the file holds at most the 5,000 most probable rows (`Fit.missed`
    gives any number).
    """
    data = fit.data
    rows = np.flatnonzero(data.kind == RowKind.UNLABELLED)
    few = len(rows) * fit.draws.b.size <= ALL_DRAWS
    draws = fit.draws if few else thin(fit.draws, DRAWS)
    if len(rows) == 0:  # every unlabelled row has been audited
        return Missed(table(("row", PROBABILITY), []), f'row,"{PROBABILITY}"\n', 0, 0, 0.0)
    probability = mean_by_row(draws, Parameters.missed, data.X[rows])
    first = rows[np.argsort(-probability, kind="stable")[:IN_FILE]]
    X = data.X[first]
    frame = summary_by_row(draws, Parameters.missed, X, data.index[first], CI_PROB)
    frame = frame.rename(columns={"mean": PROBABILITY})
    frame["class t"] = mean_by_row(draws, Parameters.t, X)
    frame["propensity s"] = mean_by_row(draws, Parameters.s, X)
    names = top_features(fit, FEATURES)
    columns = [fit.feature_names.index(name) for name in names]
    values = pd.DataFrame(
        X[:, columns] * data.scale[columns] + data.center[columns],
        columns=names,
        index=frame.index,
    )
    # Undo the rounding of the way to the internal scale and back.
    whole = pd.concat([frame, values.round(10)], axis=1)
    return Missed(
        table=from_frame(whole.head(SHOWN), index="row"),
        csv=whole.to_csv(index_label="row", float_format="%.6g"),
        in_file=len(first),
        total=len(rows),
        expected=float(probability.sum()),
    )
