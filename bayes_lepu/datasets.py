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

from bayes_lepu.links import Array, sigmoid

__all__ = ["PUDataset", "load_demo"]

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
    r"""A positive-unlabelled data set: ``X`` and ``l`` for the fit, and the truth.

    ``X`` has one named column per feature, ``l`` and ``y`` are 0 or 1, ``s`` and ``t`` are the true
    P(l=1 | y=1, x) and P(y=1 | x), ``truth`` has the parameters of a simulation, and ``rows``
    further information about each row. Unknown fields are None.
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
        parts = ["{} rows, {} columns".format(*self.X.shape)]
        for labels, what in ((self.l, "labelled"), (self.y, "truly positive")):
            if labels is not None:
                parts.append(f"{int(labels.sum())} {what} ({labels.mean():.1%})")
        return f"<PUDataset {self.name!r}: {', '.join(parts)}>"


def load_demo() -> PUDataset:
    """Camera-trap photographs judged by a volunteer: 2500 rows, 6 columns, and the whole truth.

    Generated from a fixed seed, the same on every call and machine. On the standardised columns
    the class slopes have norm 4.0 and the annotator's 3.0, in nearly orthogonal directions, so
    that PsychM can separate the two factors. ``truth`` has a, b, alpha, beta, gamma, lam, pi (mean
    of t) and c, P(l=1 | y=1).

    Examples
    --------
    >>> import bayes_lepu as lepu
    >>> demo = lepu.load_demo()
    >>> int(demo.l.sum()), int(demo.y.sum())
    (790, 1262)
    """
    return draw_photographs(seed=1)


def draw_photographs(seed: int) -> PUDataset:
    """The demo with other photographs and marks: new data from the same truth."""
    rng = np.random.Generator(np.random.PCG64(seed))
    X = _photographs(rng)
    values = X.to_numpy(dtype=float)
    # Slopes on the standardised columns. An animal is warmer than the background and moves, while
    # wind triggers the camera on grass; the volunteer finds what is bright, sharp and near.
    a, alpha = np.array([3.0, 1.6, -2.1, 0.0, 0.0, 0.2]), np.array([0.2, 0.6, 0.0, 1.9, 1.2, -1.9])
    truth = {"a": a, "b": 0.0, "alpha": alpha, "beta": 0.6, "gamma": 0.10, "lam": 0.05}
    Z = (values - values.mean(axis=0)) / values.std(axis=0)
    t = sigmoid(Z @ a)
    s = 0.10 + 0.85 * sigmoid(Z @ alpha + 0.6)
    y = rng.random(len(X)) < t
    l = y & (rng.random(len(X)) < s)
    truth |= {"pi": float(t.mean()), "c": float((s * t).sum() / t.sum())}
    return PUDataset("camera_trap", _DESCRIPTION, X, l * 1, y * 1, s, t, truth)


def _photographs(rng: np.random.Generator) -> pd.DataFrame:
    """Draw the six columns, mildly correlated, in natural units and rounded as recorded."""
    # Normal draws by inversion of uniforms: NumPy may change its normal sampler between
    # versions, never the uniform stream of PCG64, so the table cannot change under the user.
    e: Array = ndtri(rng.random((2500, 6)))
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
