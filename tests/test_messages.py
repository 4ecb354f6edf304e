"""What people get wrong, and what they are told: what was got, what is expected, what to do."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import bayes_lepu as lepu
from bayes_lepu import LepuError

N = 60
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["height", "width", "depth"])
A = X.to_numpy()
L = np.arange(N) % 3 == 0
PRIOR = lepu.Prior("normal", scale=1.0)


@pytest.fixture(scope="module")
def fitted():
    return lepu.fit(X, L, model="scar", method="map", random_seed=1)


def fitting(table=X, labels=L, **options):
    """A call of `fit` with everything right but what is given."""
    right = {"model": "scar", "method": "map", "random_seed": 1}
    return lambda fitted: lepu.fit(table, labels, **(right | options))


# Each mistake with the parts its message must have, in this order. Those in tables, labels and
# formulas stand in `data/test_refused.py`.
MISTAKES = {
    "mistyped model": (fitting(model="pscyhm"), "'pscyhm'", "Did you mean 'psychm'", "Known"),
    "mistyped auto": (fitting(model="atuo"), "'atuo'", "Did you mean 'auto'", "psychm, auto"),
    "auto elsewhere": (
        lambda fitted: lepu.build_model(X, L, model="auto"),
        "model='auto'",
        "lepu.fit alone",
        "Name one model here: naive",
    ),
    "mistyped method": (fitting(method="nut"), "'nut'", "Did you mean 'nuts'", "laplace"),
    "mistyped rule": (fitting(orientation="sigma_norm"), "Did you mean 'sigma-norm'"),
    "unknown sampler": (fitting(method="nuts", sampler="stan"), "'stan'", "nutpie, pymc"),
    "unknown penalty": (fitting(penalty="l3"), "'l3'", "l2, l1, none"),
    "penalty of no factor": (fitting(penalty={"A": "l2"}), "'A'", "'a'", "expected"),
    "negative strength": (fitting(C=-1.0), "C = -1.0", "no penalty.*is expected"),
    "strength as text": (fitting(C="0.1"), "C = '0.1'", "a finite number"),
    "penalty of a posterior": (fitting(method="nuts", penalty="l1"), "method='map'", "priors="),
    "mistyped parameter": (
        fitting(model="spm", priors={"alfa": PRIOR}),
        "'alfa'",
        "Did you mean 'alpha'",
        "parameters: a, b",
    ),
    "a number as prior": (fitting(priors={"a": 2.0}), "2.0", "Prior is expected", "for example"),
    "unknown family": (lambda fitted: lepu.Prior("norml", scale=1.0), "Did you mean 'normal'"),
    "negative scale": (lambda fitted: lepu.Prior("normal", scale=-1.0), "positive", "-1.0"),
    "half a draw": (fitting(method="nuts", draws=10.5), "draws = 10.5", "whole number"),
    "certain acceptance": (fitting(method="nuts", target_accept=1.0), "target_accept = 1.0"),
    "too few draws": (fitting(method="laplace", draws=3, chains=1), "draws = 3", "at least 4"),
    "large seed": (fitting(random_seed=2**63), "random_seed = .*; a whole number from 0"),
    "half a seed": (fitting(random_seed=1.5), "random_seed = 1.5", "whole number", "expected"),
    "swapped arguments": (fitting(L, A), r"\(60,\)", "table comes first", r"fit\(X, l\)"),
    "the label among the columns": (fitting(X.assign(copy=L)), "'copy'", "label itself", "drop"),
    "a single row": (
        lambda fitted: fitted.predict_proba(A[0]),
        r"shape \(3,\)",
        "expected",
        r"reshape\(1, -1\)",
    ),
    "a dict": (fitting({"a": [1, 2]}), "dict", "table is expected", r"pd.DataFrame\(X\)"),
    "a file name": (fitting("table.csv"), "'table.csv'", "a table is expected", "read_csv"),
    "a sparse matrix for NUTS": (
        fitting(scipy.sparse.csr_matrix(A), method="nuts"),
        "method='nuts'",
        "sparse matrix of 60 x 3",
        "Use method='map'",
        "toarray",
    ),
    "a mistyped column of new rows": (
        lambda fitted: fitted.predict_proba(X.rename(columns={"width": "widht"})),
        "missing column.* width",
        "unknown column.* widht",
        "Rename 'widht' to 'width'",
    ),
    "too few columns of new rows": (
        lambda fitted: fitted.predict_proba(A[:, :2]),
        "2 columns",
        "fitted on 3",
        "same columns",
    ),
    "a missing cell of new rows": (
        lambda fitted: fitted.predict_proba(X.mask(X.iloc[0, 0] == X)),
        r"height \(1\)",
        "fit again with missing=",
    ),
    "text in new rows": (
        lambda fitted: fitted.predict_proba(X.assign(width="wide")),
        "Text among numbers",
        "width",
        "to_numeric",
    ),
    "a name in an array": (
        fitting(A, class_features=["height"]),
        "'height'",
        r"pd.DataFrame\(X, columns=\[...\]\)",
    ),
    "columns of a constant propensity": (
        fitting(selection_features=["height"]),
        "model='scar'",
        "Leave the option out",
    ),
    "mistyped excluded column": (fitting(exclude=["dept"]), "'dept'", "Did you mean 'depth'"),
    "a file that is none": (lambda fitted: lepu.load("absent.nc"), "absent.nc", "Fit.save"),
    "one cost": (lambda fitted: fitted.decide(cost=5), "cost = 5", "two positive numbers"),
    "fits without names": (lambda fitted: lepu.compare([fitted]), "list", "'scar': one_fit"),
    "mistyped variable": (
        lambda fitted: fitted.summary(var_names=["pii"]),
        "'pii'",
        "Did you mean 'pi'",
        "Known: a, b",
    ),
    "a page that is none": (lambda fitted: fitted.report("x.pdf"), "x.pdf", "ends in .html"),
    "estimates without draws": (
        lambda fitted: lepu.compare({"a": fitted, "b": fitted}),
        "point estimate",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_every_mistake_is_told_what_to_do(fitted, name):
    mistake, *parts = MISTAKES[name]
    with pytest.raises(LepuError, match="(?s)" + ".*".join(parts)):
        mistake(fitted)
