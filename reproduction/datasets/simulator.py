r"""The paper's synthetic experiment, with an option for everything its text leaves open.

.. math::
    a, \alpha \sim N_p(0, \rho_1^2 I) + K R, \qquad b, \beta \sim N(0, \rho_2^2), \qquad
    R_j = \pm 1 \text{ with probability } 1/2,

    y \sim B(t(x)), \quad l \mid y=1 \sim B(s(x)), \quad l \mid y=0 = 0,

    t = \sigma(a \cdot x + b), \qquad
    s = \gamma + (1-\gamma-\lambda)\,\sigma(\alpha \cdot x + \beta).
"""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.datasets import PUDataset
from bayes_lepu.errors import DataError
from bayes_lepu.factors.curves import LOGISTIC
from bayes_lepu.links import sigmoid

Distribution = Literal["uniform", "normal", "unit"]
Ordering = Literal["class-steeper"]

_FEATURES: dict[str, Callable[[np.random.Generator, int, int], NDArray[np.float64]]] = {
    "uniform": lambda rng, n, p: rng.uniform(-1.0, 1.0, size=(n, p)),
    "normal": lambda rng, n, p: rng.standard_normal((n, p)),
    "unit": lambda rng, n, p: rng.uniform(0.0, 1.0, size=(n, p)),
}


def simulate_paper(
    n: int = 5000,
    *,
    p: int = 5,
    gamma: float = 0.05,
    lam: float = 0.05,
    rho1: float = 10.0,
    rho2: float = 1.0,
    K: float = 5.0,
    distribution: Distribution = "uniform",
    shared_rademacher: bool = False,
    ordering: Ordering | None = None,
    random_seed: int | np.random.Generator | None = None,
) -> PUDataset:
    r"""One data set of the paper's synthetic experiment.

    Parameters and features are drawn afresh on every call, in the order a, α, b, β, X, y, l.

    Parameters
    ----------
    n, p : int
        Rows and columns.
    gamma, lam : float
        Guess and lapse rate. The text says .05 and .05, the caption of Table 2 says .05 and 0;
        both 0 is SPM.
    rho1, rho2, K : float
        Scale of the slopes, of the intercepts, and of the Rademacher shift.
    distribution : {"uniform", "normal", "unit"}
        p(X), which the paper does not state: U(-1, 1), N(0, 1) or U(0, 1) in every column. The
        first comes closest to the printed scores of the classifier trained on the truth.
    shared_rademacher : bool
        One vector R for both factors, instead of one each. The paper writes a single symbol; a
        shared R with a small ``rho1`` makes classifier and annotator nearly parallel.
    ordering : {None, "class-steeper"}
        None as in the paper: a and α have one distribution, so the annotator is steeper than the
        class in half of all data sets, against the paper's own Assumption 3. "class-steeper"
        conditions on |a| > |α| (by exchanging the two, which is exact as they are exchangeable).
    random_seed : int or Generator or None
        Seed of every draw.

    Returns
    -------
    PUDataset
        With ``truth`` = a, b, alpha, beta, gamma, lam.
    """
    n, p = _positive_int("n", n), _positive_int("p", p)
    gamma, lam = _rates(gamma, lam)
    for name, scale in (("rho1", rho1), ("rho2", rho2), ("K", K)):
        if not (np.isfinite(scale) and scale >= 0):
            raise DataError(f"{name} is {scale!r}; expected a finite number, zero or above.")
    if distribution not in _FEATURES:
        raise DataError(f"distribution is {distribution!r}; choose one of {sorted(_FEATURES)}.")
    if ordering is not None and ordering not in get_args(Ordering):
        raise DataError(f"ordering is {ordering!r}; choose None or one of {get_args(Ordering)}.")

    rng = np.random.default_rng(random_seed)
    shift_a = rng.choice([-1.0, 1.0], size=p)
    shift_alpha = shift_a if shared_rademacher else rng.choice([-1.0, 1.0], size=p)
    a = rho1 * rng.standard_normal(p) + K * shift_a
    alpha = rho1 * rng.standard_normal(p) + K * shift_alpha
    if ordering == "class-steeper" and np.linalg.norm(a) < np.linalg.norm(alpha):
        a, alpha = alpha, a
    b, beta = (float(z) for z in rho2 * rng.standard_normal(2))

    X = _FEATURES[distribution](rng, n, p)
    t = sigmoid(X @ a + b)
    with np.errstate(divide="ignore"):  # a rate of exactly zero is a legitimate limit
        log_w = np.log([gamma, lam, 1.0 - gamma - lam])
    s = LOGISTIC.mixed_value(X @ alpha + beta, log_w)
    y = rng.random(n) < t
    l = y & (rng.random(n) < s)
    return PUDataset(
        name="paper",
        description=(
            f"Simulated by the paper's generator: X {distribution}, gamma={gamma:g}, "
            f"lambda={lam:g}, rho1={rho1:g}, rho2={rho2:g}, K={K:g}, Rademacher vectors "
            f"{'shared' if shared_rademacher else 'independent'}, ordering {ordering}."
        ),
        X=pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(p)]),
        l=l.astype(np.int64),
        y=y.astype(np.int64),
        s=s,
        t=t,
        truth={"a": a, "b": b, "alpha": alpha, "beta": beta, "gamma": gamma, "lam": lam},
    )


def _positive_int(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise DataError(f"{name} is {value!r}; expected a whole number, one or above.")
    return int(value)


def _rates(gamma: float, lam: float) -> tuple[float, float]:
    if not (gamma >= 0 and lam >= 0 and gamma + lam < 1):
        raise DataError(
            f"gamma is {gamma!r} and lam is {lam!r}; expected both zero or above and a sum "
            "below 1 (at 1 the annotator no longer looks at x)."
        )
    return float(gamma), float(lam)
