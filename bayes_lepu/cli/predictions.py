"""The table of predictions the commands write."""

import pandas as pd

from bayes_lepu.fitted import Fit


def prediction_table(fit: Fit, X: pd.DataFrame) -> pd.DataFrame:
    """P(y=1 | x) and P(y=1 | x, l=0) with intervals, s(x) and P(l=1 | x), one row per row of X.

    Several annotators have a column each of s and P(l=1 | x).
    """
    parts = {
        "class_probability": fit.class_probability(X),
        "missed_if_unlabelled": fit.missed(X),
        "propensity": _means(fit.propensity(X)),
        "label_probability": _means(fit.label_probability(X)),
    }
    return pd.concat(
        [
            table.rename(columns=lambda c, name=name: name if c == "mean" else f"{name}_{c}")
            for name, table in parts.items()
        ],
        axis=1,
    )


def _means(table: pd.DataFrame) -> pd.DataFrame:
    if table.index.nlevels == 1:
        return table[["mean"]]
    each = table["mean"].groupby("annotator", sort=False)
    return pd.DataFrame({name: means.droplevel("annotator") for name, means in each})
