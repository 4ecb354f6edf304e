"""A small fit with column names that try to break a page, shared by the tests of the report."""

import numpy as np
import pandas as pd

import bayes_lepu as lepu
from bayes_lepu.model.parameters import Parameters

SCRIPT = "<script>alert(1)</script>"
QUOTE = 'a"b'
MATHS = "$x^2$ & 100%"
LONG = "a_very_long_column_name_without_any_space_" * 3
NAMES = [SCRIPT, QUOTE, MATHS, LONG]


def hostile_fit(*, n: int = 800, seed: int = 3, **options: object) -> lepu.Fit:
    """A Laplace fit of PsychM to four columns with such names, rows named r0, r1, ..."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=NAMES, index=[f"r{i}" for i in range(n)])
    truth = Parameters.of(
        a=[3.0, 1.5, 0, 0], b=0.3, alpha=[0, 0, 1.5, -1], beta=0.5, gamma=0.1, lam=0.05
    )
    _, l = truth.simulate(X.to_numpy(), rng)
    settings = {"model": "psychm", "method": "laplace", "draws": 250, "random_seed": seed}
    return lepu.fit(X, l, **{**settings, **options})
