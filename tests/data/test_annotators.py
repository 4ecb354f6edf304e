"""Labels of several annotators: what is accepted, and what is refused in which words."""

import re

import numpy as np
import pytest
from annotated import simulate

import bayes_lepu as lepu
from bayes_lepu.data.reading import read_data
from bayes_lepu.links import RowKind
from bayes_lepu.model import get_model
from bayes_lepu.options import choose_priors

N = 60
X, Y, L = simulate(N, seed=5, hidden=0.2)


def refused(*words, error=lepu.DataError):
    return pytest.raises(error, match=".*".join(re.escape(w) for w in words))


def test_kinds_of_rows():
    y = np.full(N, np.nan)
    labelled = L.max(axis=1).to_numpy() == 1
    y[np.flatnonzero(~labelled)[:4]] = [1, 1, 0, 0]
    kind = read_data(X, L, y=y).kind
    assert (kind[labelled] == RowKind.LABELLED).all()
    rows = np.flatnonzero(~labelled)[:4]
    expected = [RowKind.MISSED, RowKind.MISSED, RowKind.NEGATIVE, RowKind.NEGATIVE]
    assert kind[rows].tolist() == expected


def test_one_column_is_one_annotator():
    for one in (L["anna"].fillna(0), L[["anna"]].fillna(0), L[["anna"]].fillna(0).to_numpy()):
        data = read_data(X, one)
        assert data.n_annotators == 1
        np.testing.assert_array_equal(data.labels[:, 0], data.l)


def long_table():
    long = L.rename_axis("frame").reset_index().melt("frame", var_name="who", value_name="mark")
    return long.dropna().sample(frac=1.0, random_state=1)


def test_a_long_table_is_refused_with_the_line_that_turns_it():
    long = long_table()
    with refused("one for every 'frame' and 'who'") as caught:
        read_data(X, long)
    code = re.search(r"Use (l\.pivot.*?\(X\.index\))", str(caught.value))[1]
    turned = eval(code, {"l": long, "X": X})
    np.testing.assert_array_equal(read_data(X, turned).labels, read_data(X, L).labels)


def test_naive_annotators_who_differ_are_refused():
    with refused("marked by one annotator and not by another", error=lepu.ModelError):
        lepu.fit(X, L, model="naive", method="map")


def test_priors_are_checked():
    spm, scar = get_model("spm"), get_model("scar")
    own = {"sigma_beta": lepu.Prior("halfnormal", scale=0.2)}
    data = read_data(X, L)
    assert choose_priors(spm, data, priors=own)["sigma_beta"] == own["sigma_beta"]
    with refused("'alpha'", "alpha_mean", error=lepu.ModelError):
        choose_priors(spm, data, priors={"alpha": lepu.Prior("normal", scale=1.0)})
    with refused("'alpha_mean'", "not a parameter of scar", error=lepu.ModelError):
        choose_priors(scar, data, priors={"alpha_mean": lepu.Prior("normal", scale=1.0)})
    with refused("sigma_beta cannot have a normal prior", "halfnormal", error=lepu.ModelError):
        choose_priors(spm, data, priors={"sigma_beta": lepu.Prior("normal", scale=1.0)})
    with refused("a Prior is expected", error=lepu.ModelError):
        choose_priors(spm, data, priors={"a": 2.5})
