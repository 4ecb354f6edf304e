r"""The embedded demo: camera-trap photographs and a volunteer with a known bias.

.. math::
    P(l=1 \mid x) = \bigl[\gamma + (1-\gamma-\lambda)\,\sigma(\alpha \cdot z + \beta)\bigr]\,
    \sigma(a \cdot z + b), \qquad z_j = (x_j - \bar x_j) / \mathrm{sd}(x_j).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from bayes_lepu.links import sigmoid

__all__ = ["PUDataset", "load_demo"]
# Slopes on the standardised columns. An animal is warmer than the background and moves, while
# wind triggers the camera on grass; the volunteer finds what is bright, sharp and near.
_TRUTH: dict[str, Any] = {
    "a": (3.0, 1.6, -2.1, 0.0, 0.0, 0.2),
    "b": 0.0,
    "alpha": (0.2, 0.6, 0.0, 1.9, 1.2, -1.9),
    "beta": 0.6,
    "gamma": 0.10,
    "lam": 0.05,
}

_DESCRIPTION = """\
Simulated, not observed: 2500 photographs of a motion-triggered camera trap. y is 1 where an
animal is in the picture (grass moving in the wind triggers the camera too), l is 1 where a
volunteer marked one. The volunteer never marks an empty picture, but overlooks animals in dark,
blurred or distant ones: the labelling is biased by what the picture looks like (PsychM with
guess rate .10 and lapse rate .05), and naive learning takes dark pictures for empty ones.
Columns: heat_contrast_c (moving region against background, degrees C), motion_area_pct (share of
the frame that moved), wind_ms (wind speed), brightness (mean grey level 0-255), sharpness
(variance of the Laplacian, log10), distance_m (to the moving region).
Slopes in `truth` are for columns standardised by their own mean and standard deviation."""


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


def load_demo() -> PUDataset:
    """Camera-trap photographs judged by a volunteer: a table with a known biased annotator.

    Generated from a fixed seed, the same on every call and machine. The class slopes have norm
    4.0 and the annotator's 3.0 on the standardised columns, in nearly orthogonal directions, so
    PsychM can tell the two factors apart.

    Returns
    -------
    PUDataset
        2500 rows, 6 columns, ``y``, ``s``, ``t``, and ``truth`` = a, b, alpha, beta, gamma, lam,
        pi (mean of t) and c (P(l=1 | y=1)).
    """
    return draw_photographs(seed=1)


def draw_photographs(seed: int) -> PUDataset:
    """The demo with other photographs and marks: new data from the same truth."""
    rng = np.random.Generator(np.random.PCG64(seed))
    X = _photographs(rng)
    values = X.to_numpy(dtype=float)
    Z = (values - values.mean(axis=0)) / values.std(axis=0)
    truth: dict[str, Any] = {
        k: np.array(v) if isinstance(v, tuple) else v for k, v in _TRUTH.items()
    }
    t = sigmoid(Z @ truth["a"] + truth["b"])
    looked = sigmoid(Z @ truth["alpha"] + truth["beta"])
    s = truth["gamma"] + (1.0 - truth["gamma"] - truth["lam"]) * looked
    y = rng.random(len(X)) < t
    l = y & (rng.random(len(X)) < s)
    return PUDataset(
        name="camera_trap",
        description=_DESCRIPTION,
        X=X,
        l=l.astype(np.int64),
        y=y.astype(np.int64),
        s=s,
        t=t,
        truth=truth | {"pi": float(t.mean()), "c": float((s * t).sum() / t.sum())},
    )


def _photographs(rng: np.random.Generator) -> pd.DataFrame:
    """Draw the six columns, mildly correlated, in natural units and rounded as recorded."""
    # Normal draws by inversion of uniforms: NumPy may change its normal sampler between
    # versions, never the uniform stream of PCG64, so the table cannot change under the user.
    e: NDArray[np.float64] = ndtri(rng.random((2500, 6)))
    motion = np.exp(1.2 + 0.5 * (0.25 * e[:, 0] + 0.97 * e[:, 1]))
    sharpness = 2.4 + 0.35 * (0.3 * e[:, 3] - 0.2 * e[:, 2] + 0.93 * e[:, 4])
    return pd.DataFrame(
        {
            "heat_contrast_c": (4.0 + 3.0 * e[:, 0]).round(1),
            "motion_area_pct": motion.round(1),
            "wind_ms": np.exp(1.1 + 0.45 * e[:, 2]).round(1),
            "brightness": np.clip(120.0 + 45.0 * e[:, 3], 5.0, 250.0).round(0),
            "sharpness": sharpness.round(2),
            "distance_m": np.exp(2.2 + 0.5 * e[:, 5]).round(1),
        }
    )
