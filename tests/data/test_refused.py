"""What the data door refuses: every message says what was got, what is expected, what to do."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from annotated import simulate

import bayes_lepu as lepu
from bayes_lepu.data.reading import read_data

N = 60
X, _, L = simulate(N, seed=5, hidden=0.2)
X = X.reset_index(drop=True)
L = L.reset_index(drop=True)
ROWS = np.arange(N)
MARKS = (ROWS % 3 == 0).astype(int)
SPARSE = sp.csr_array(np.where(ROWS[:, None] % 4 == 1, X.to_numpy(), 0.0))
VISITS = pd.DataFrame(np.outer(ROWS + 1.0, [1, 2, 3]), columns=L.columns)
BROKEN = pd.Index(["a", "b\ud800", "c"], dtype=object)
FORMULA = X.assign(country=np.resize(["DE", "FR", "US"], N), marked=MARKS)


def column(values, name="kind"):
    return {"X": X.assign(**{name: values})}


def formula(text, **options):
    return {"X": FORMULA, "l": "marked", "class_features": text, **options}


TABLES = {
    "missing": ({"X": X.where(X > -1)}, "without a value", "dropna(subset="),
    "infinite": ({"X": X.replace(X.iloc[3, 1], np.inf)}, "Infinite", "(1)", "np.nan"),
    "many": ({"X": np.full((N, 27), np.nan)}, "without any value: x0, x1", "x19 and 7 more"),
    "no rows": ({"X": X[:0], "l": []}, "empty", "At least one row and one column"),
    "no columns": ({"X": X[[]]}, "empty", "At least one row and one column"),
    "constant": (column(1e9 + 0.1, "one"), "Constant column", "one", "drop them"),
    "one level": (column("a"), "Constant", "kind", "no information"),
    "same names": ({"X": X.set_axis(["a", "a", "b"], axis=1)}, "duplicate column names: a"),
    "1 and '1'": ({"X": X.set_axis([1, "1", 2], axis=1)}, "duplicate column names: 1"),
    "half a letter": ({"X": X.set_axis(BROKEN, axis=1)}, "half of a character", "Rename"),
    "a word": (column(np.resize([1, "x", 3], N).astype(object)), "Text among numbers", "'x'"),
    "numbers as text": (column(np.resize(["1", "2", "3"], N)), "written as text", "to_numeric"),
    "decimal comma": (column([f"{i},5" for i in ROWS]), "decimal comma", "'0,5'", "decimal=','"),
    "thousands": (column(np.resize(["1.234,5", "7", "x,y"], N)), "decimal comma", "'1.234,5'"),
    "dates": (column(pd.date_range("2020", periods=N)), "Dates", "kind", "2020-01-01", "dt.days"),
    "dates as text": (column([f"2020-01-{d % 30 + 1:02}" for d in ROWS]), "Dates", "as text"),
    "durations": (column(pd.timedelta_range("1h", periods=N)), "Durations", "total_seconds"),
    "complex": (column(1j * ROWS), "neither numbers nor categories", "kind"),
    "names": (column([f"a{i}" for i in ROWS]), "Identifiers", "kind", "set_index"),
    "lists": (column([[1, 2]] * N), "neither numbers nor categories", "kind", "exclude"),
    "nothing": (column([None] * N), "without any value", "kind", "exclude"),
    "text array": ({"X": X.to_numpy().astype(str)}, "X holds", "numbers are expected", "astype"),
    "lazy": ({"X": pl.from_pandas(X).lazy()}, "lazy frame", "collect"),
    "a vector": ({"X": X["heat"].to_numpy(), "l": L}, "1 dimension(s)", "fit(X, l)"),
    "a number": ({"X": 1.0}, "X has 0 dimension(s)"),
    "texts": ({"X": ["a text", "another"]}, "TfidfVectorizer"),
    "ragged": ({"X": [[1, 2], [3]]}, "differ in length"),
    "missing how": ({"X": X.where(X > 0), "missing": "omit"}, "Unknown missing 'omit'", "impute"),
    "standardize": ({"standardize": "no"}, "standardize='no'", "True or False is expected"),
    "too large": ({"X": X * 1e300, "standardize": False}, "too large", "standardize=True"),
    "mask unknown": ({"class_features": ["heta"]}, "'heta'", "Did you mean 'heat'", "Columns"),
    "mask place": ({"selection_features": [3]}, "selection_features names 3", "not a column"),
    "mask empty": ({"selection_features": []}, "no column", "no visits", "scar"),
    "mask text": ({"class_features": "heat"}, "single value", "['heat']", "'~ heat'"),
    "mask number": ({"class_features": 1}, "single value", "[1]"),
    "mask flags": ({"class_features": [True, False]}, "True", "boolean mask", "flatnonzero"),
    "sparse gaps": ({"X": SPARSE * np.nan}, "missing or infinite cell(s)", "X.data"),
    "sparse zeros": ({"X": sp.hstack([SPARSE, sp.csr_array((N, 1))])}, "Constant", "x3", "indptr"),
    "sparse complex": ({"X": SPARSE.astype(complex)}, "complex128 values; numbers are expected"),
    "sparse vector": ({"X": sp.coo_array(np.arange(5.0))}, "shape (5,)"),
    "sparse, several": ({"X": SPARSE, "l": L}, "l has several annotators", "X.toarray()"),
    "sparse label": ({"X": sp.hstack([SPARSE, 3.0 * MARKS[:, None]])}, "'x3' is the label itself"),
    "sparse formula": ({"X": SPARSE, "class_features": "~ x0"}, "X has none", "DataFrame"),
}
LABELS = {
    "none marked": ({"l": MARKS * 0}, "No row is labelled", "nothing to learn"),
    "all marked": ({"l": MARKS * 0 + 1}, "Every row is labelled", "add the background"),
    "1 and 2": ({"l": MARKS + 1}, "values 1, 2", "(l == 2).astype(int)"),
    "a score": ({"l": ROWS / N}, "If it is a score", "(l > 0.5)"),
    "0, 1, nan": ({"l": np.where(ROWS == 3, np.nan, MARKS)}, "1 missing value", "l.fillna(0)"),
    "a word": ({"l": np.where(MARKS, "yes", None)}, "l holds 'yes'; 0/1", "(l == 'yes')"),
    "y a word": ({"y": np.where(MARKS, "yes", None)}, "0, 1 or NaN", "y.map({'yes': 1})"),
    "y twice": ({"y": np.zeros((N, 2))}, "y has shape (60, 2); one value per row"),
    "y other": ({"y": MARKS * 2}, "y holds the values 0, 2"),
    "y contradicts": ({"y": 1.0 - MARKS}, "labelled (l=1) but audited", "false_marks=True"),
    "weights huge": ({"sample_weight": np.full(N, 1e300)}, "sums to", "to 1e+12 in all"),
    "weights tiny": ({"sample_weight": np.full(N, 1e-300)}, "sums to 6e-299", "1e-12 to"),
    "weights 1": ({"sample_weight": MARKS}, "Every unmarked row has sample_weight 0"),
    "weights 0": ({"sample_weight": 1 - MARKS}, "Every marked row has sample_weight 0"),
    "weights": ({"sample_weight": -X["heat"]}, "sample_weight holds negative", ">= 0"),
    "short": ({"l": MARKS[1:]}, "X has 60 rows but l has 59 values"),
    "no labels": ({"l": None}, "l is None"),
    "order": ({"l": pd.Series(MARKS)[::-1]}, "index of l differs", "l.loc[X.index]"),
    "no column": ({"l": "heta"}, "l names 'heta'", "Did you mean 'heat'"),
    "no names": ({"X": X.to_numpy(), "l": "marked"}, "without column names"),
    "one column twice": ({"l": "heat", "y": "heat"}, "y names 'heat', which is l or y already"),
    "exclude text": ({"exclude": "heat"}, "single value", "['heat']"),
    "two to ben": ({"l": L.assign(ben=L["ben"] * 2)}, "l['ben']", "2", "NaN (not shown)"),
    "yes to ben": ({"l": L.assign(ben="yes")}, "l['ben']", "'yes'", "Recode"),
    "blind": ({"l": L.assign(cleo=np.nan)}, "cleo saw no row", "l.drop(columns=['cleo'])"),
    "silent": ({"l": L.assign(cleo=0.0)}, "cleo labelled none", "l.drop(columns=['cleo'])"),
    "no zeros": ({"l": L.where(L == 1)}, "l holds no 0", "l.fillna(0)"),
    "turned": ({"l": L.to_numpy().T}, "use l.T"),
    "three axes": ({"l": L.to_numpy()[..., None]}, "l has shape (60, 3, 1)"),
    "nobody": ({"l": L[[]]}, "l has shape (60, 0)"),
    "same names": ({"l": L.set_axis(["a", "a", "b"], axis=1)}, "duplicate annotator names: a"),
    "ben in X": (column(3 - 2 * L.fillna(0)["ben"]) | {"l": L.fillna(0)}, "ben's", "Drop it"),
    "known": ({"class_prior": 0.3}, "class_prior = 0.3", "(0.12, 0.02)"),
    "known exactly": ({"class_prior": (0.3, 1e-9)}, "of at least 1e-05"),
    "an interval": ({"label_frequency": (0.1, 0.9)}, "=(0.5, 0.2)", "all shares possible"),
    "visits as list": ({"l": L, "visits": ["hours"]}, "is expected as", "table.pivot("),
    "visits of two": ({"l": L, "visits": {"h": VISITS.iloc[:, :2]}}, "the annotators"),
    "visits short": ({"l": L, "visits": {"h": VISITS.to_numpy()[:5]}}, "shape (5, 3)"),
    "visits lack": ({"l": L, "visits": {"h": VISITS * np.nan}}, "lacks", "a number for every"),
    "visits constant": ({"l": L, "visits": {"h": VISITS * 0}}, "Constant column(s): visits['h']"),
    "visits by text": ({"l": L, "visits": {1: VISITS, "1": VISITS}}, "the same as text"),
    "visits in text": ({"l": L, "visits": {"h": VISITS.astype(str)}}, "numbers are expected"),
    "visits alone": ({"visits": {"h": VISITS}}, "there is one annotator"),
}
FORMULAS = {
    "a typing mistake": (formula("~ log(haet)"), "'haet'", "Did you mean 'heat'", "Columns"),
    "a function": (formula("~ lgo(heat)"), "class_features: 'lgo'", "Did you mean 'log'"),
    "of s": (formula("~ heat", selection_features="~ lgo(heat)"), "selection_features: 'lgo'"),
    "numpy": (formula("~ np.log(heat)"), "log, not np.log"),
    "code": (formula("~ __import__('os').system('true')"), "is not a formula"),
    "unfinished": (formula("~ heat +"), "is not a formula", "joined by"),
    "left side": (formula("marked ~ heat"), "left-hand side", "fit(df, 'marked'"),
    "no number": (formula("~ log(heat - heat)"), "no finite number", "log1p"),
    "no column": (formula("~ 1"), "no column", "expected"),
    "no intercept": (formula("~ 0 + heat"), "intercept", "belongs to the model"),
    "an attribute": (formula("~ {heat.shape}"), "attribute", "expected"),
    "a list": (formula("~ I([heat])"), "cannot be evaluated"),
    "a comment": (formula("~ heat # all of it"), "Unknown operator '#'"),
    "excluded": (formula("~ heat", exclude=["heat"]), "exclude names heat", "a formula needs"),
    "indicators": (formula("~ heat", missing="indicator"), "formulas name theirs", "assign"),
    "list of numbers": (formula("~ heat", selection_features=[1]), "names of columns"),
    "one name": (formula("~ heat", selection_features="heat"), "is a single value"),
}
EVERY = {**{f"X: {k}": v for k, v in TABLES.items()}, **{f"l: {k}": v for k, v in LABELS.items()}}
EVERY |= {f"~: {k}": v for k, v in FORMULAS.items()}


@pytest.mark.parametrize("what", EVERY)
def test_refused(what):
    given, *parts = EVERY[what]
    with pytest.raises(lepu.DataError, match="(?s)" + ".*".join(map(re.escape, parts))):
        read_data(**{"X": X, "l": MARKS} | given)


@pytest.mark.parametrize("known", [(0.1, 0.2), (0.05, 0.25)])
def test_an_interval_instead_of_a_standard_error_warns(known):
    with pytest.warns(lepu.DataWarning, match=r"a standard error of .* write class_prior="):
        read_data(X, MARKS, class_prior=known)
