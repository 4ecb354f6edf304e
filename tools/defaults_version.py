"""The version of the default priors: a name that changes when one of them does.

Stored results carry it, so that a test can say which of them have to be made again;
``docs/stored-results.json`` has it for those that are tables, pictures or notebooks.
"""

import hashlib
import re

import numpy as np
from scipy.special import expit

from bayes_lepu.data.learned import with_learned
from bayes_lepu.data.reading import read_data
from bayes_lepu.defaults import default_priors_of
from bayes_lepu.model import get_model


def defaults_version(*, learned: bool = False) -> str:
    """Eight letters for the default priors of four tables, with few labels for a column and many.

    With ``learned``, those of the propensity beside a learned class too. Numbers are rounded to
    three digits, so that no computer differs.
    """
    said = []
    for n in (120, 3000):
        rng = np.random.default_rng(n)
        X = rng.normal(size=(n, 4))
        l = (rng.random(n) < 0.5 * expit(2 * X[:, 0] - X[:, 1])).astype(int)
        for columns in (None, [0]):
            data = read_data(X, l, selection_features=columns)
            for model in ("scar", "spm", "psychm"):
                said.append(f"{model} {default_priors_of(get_model(model), data)}")
        if learned:
            bent = with_learned(read_data(X, l), ("kernel",), 0)
            said.append(str(default_priors_of(get_model("spm"), bent)["alpha"]))
    rounded = re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.3g}", "\n".join(said))
    return hashlib.sha256(rounded.encode()).hexdigest()[:8]
