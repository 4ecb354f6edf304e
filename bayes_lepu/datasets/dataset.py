"""The value every simulator and loader of this package returns."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class PUDataset:
    r"""A positive-unlabelled data set, with the truth where it is known.

    A learner sees ``X`` and ``l`` only; everything else is for checking its answer. Always
    :math:`l_i = 1 \Rightarrow y_i = 1` (no false positives).

    Parameters
    ----------
    name : str
        Short name.
    description : str
        What the rows and columns are, where they come from, and whether they are simulated.
    X : DataFrame, shape (n, p)
        Features, one named column each.
    l : ndarray of int, shape (n,), or None
        Visible label, 0 or 1; None for a test set that was never labelled.
    y : ndarray of int, shape (n,), or None
        True class, 0 or 1.
    s, t : ndarray of float, shape (n,), or None
        True propensity P(l=1 | y=1, x) and true class probability P(y=1 | x).
    truth : dict
        Parameters of a simulated data set (``a, b, alpha, beta, gamma, lam`` and more).
    rows : DataFrame, shape (n, k), or None
        What is known about each row besides its features (image, subject, response time, ...).
    """

    name: str
    description: str
    X: pd.DataFrame
    l: NDArray[np.int64] | None
    y: NDArray[np.int64] | None = None
    s: NDArray[np.float64] | None = None
    t: NDArray[np.float64] | None = None
    truth: dict[str, Any] = field(default_factory=dict)
    rows: pd.DataFrame | None = None

    def __repr__(self) -> str:
        n, p = self.X.shape
        parts = [f"{n} rows", f"{p} columns"]
        if self.l is not None:
            parts.append(f"{int(self.l.sum())} labelled ({self.l.mean():.1%})")
        if self.y is not None:
            parts.append(f"{int(self.y.sum())} truly positive ({self.y.mean():.1%})")
        return f"<PUDataset {self.name!r}: {', '.join(parts)}>"
