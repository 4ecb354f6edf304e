"""One simulated table that the tests of the diagnosis share."""

import numpy as np
import pandas as pd

import bayes_lepu as lepu

TRUTH = lepu.Parameters.of(
    a=[3.0, -2.0, 0.0], b=0.4, alpha=[0.0, 0.5, 1.5], beta=0.3, gamma=0.1, lam=0.05
)


def simulated_rows():
    """Columns u, v, w and labels."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1500, 3))
    _, l = TRUTH.simulate(X, rng)
    return pd.DataFrame(X, columns=["u", "v", "w"]), l
