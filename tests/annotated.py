"""Small tables of several annotators and their densities, shared by several tests."""

import numpy as np
import pandas as pd

from bayes_lepu.data.reading import read_data
from bayes_lepu.links import sigmoid
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.options import choose_priors
from tools.row_formula import LOG_W_SPM

# The annotators are steeper than the class: any norm rule would exchange the factors.
PICKY = Parameters(
    a=np.array([1.6, 1.0, 0.0]),
    b=np.array(0.2),
    alpha=np.array([[0.0, 0.8, 2.6], [0.2, 0.4, 2.0], [0.0, 1.2, 3.0]]),
    beta=np.array([0.3, -0.3, 0.6]),
    log_w=np.tile(LOG_W_SPM, (3, 1)),
)


def simulate(n, *, point=PICKY, seed=0, hidden=0.0, difficulty=0.0):
    """X, classes and labels; ``hidden`` cells are not shown, ``difficulty`` is shared by all."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, point.a.size))
    y = rng.random(n) < point.t(X)
    hard = difficulty * rng.standard_normal(n)
    s = sigmoid(point.omega(X) - hard).T
    L = (y[:, None] & (rng.random(s.shape) < s)).astype(float)
    L[rng.random(L.shape) < hidden] = np.nan
    frame = pd.DataFrame(L, columns=["anna", "ben", "cleo", "dora", "emil"][: point.beta.size])
    return pd.DataFrame(X, columns=["heat", "motion", "light"]), y.astype(int), frame


def make_density(model="spm", *, priors=None, audited=False, masks=False, n=40, scale=1.0):
    """A density on few rows: rows seen by nobody, hidden cells, and audited rows if asked."""
    X, y, L = simulate(n, seed=3, hidden=0.3)
    L.iloc[:2] = np.nan
    checked = np.where(np.arange(n) % 3 == 0, y, np.nan) if audited else None
    keep = {"class_features": [0, 1], "selection_features": [1, 2]} if masks else {}
    data = read_data(scale * X, L, y=checked, standardize=False, **keep)
    spec = get_model(model)
    return LogDensity(spec, data, choose_priors(spec, data, priors=priors), jacobian=True)
