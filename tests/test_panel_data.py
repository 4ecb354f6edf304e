"""Labels of several annotators: what is accepted, and what is refused in which words."""

import re

import numpy as np
import pandas as pd
import pytest
from panels import simulate

import bayes_lepu as lepu
from bayes_lepu.data import read_data
from bayes_lepu.links import RowKind
from bayes_lepu.panel.data import NOT_SHOWN, read_panel
from bayes_lepu.panel.specification import complete_priors, get_form

N = 60
X, Y, L = simulate(N, seed=5, hidden=0.2)


def refused(*words, error=lepu.DataError):
    return pytest.raises(error, match=".*".join(re.escape(w) for w in words))


def test_frames_and_arrays_say_the_same():
    named, plain = read_panel(X, L), read_panel(X.to_numpy(), L.to_numpy())
    np.testing.assert_array_equal(named.labels, plain.labels)
    assert named.annotators == ("anna", "ben", "cleo")
    assert plain.annotators == ("annotator_0", "annotator_1", "annotator_2")
    assert (named.shown == L.notna().to_numpy()).all()
    assert set(np.unique(named.labels)) == {NOT_SHOWN, 0, 1}
    assert named.recaptures == int((L.sum(axis=1) > 1).sum())


@pytest.mark.parametrize(
    "make",
    [
        lambda L: L.astype("Int64"),
        lambda L: L.astype(object).where(L.notna(), None),
        lambda L: L.astype("boolean"),
        lambda L: L.to_numpy(dtype=object),
        lambda L: L.to_numpy().tolist(),
    ],
)
def test_ways_to_write_not_shown(make):
    np.testing.assert_array_equal(read_panel(X, make(L)).labels, read_panel(X, L).labels)


def test_kinds_of_rows():
    y = np.full(N, np.nan)
    labelled = L.max(axis=1).to_numpy() == 1
    y[np.flatnonzero(~labelled)[:4]] = [1, 1, 0, 0]
    kind = read_panel(X, L, y=y).table.kind
    assert (kind[labelled] == RowKind.LABELLED).all()
    rows = np.flatnonzero(~labelled)[:4]
    expected = [RowKind.MISSED, RowKind.MISSED, RowKind.NEGATIVE, RowKind.NEGATIVE]
    assert kind[rows].tolist() == expected


def test_one_annotator_is_sent_to_fit():
    for one in (L["anna"].fillna(0), L[["anna"]], L[["anna"]].to_numpy()):
        with refused("one annotator", "lepu.fit(X, l)"):
            read_panel(X, one)


def test_several_annotators_are_sent_to_fit_panel():
    for several in (L.fillna(0), L.fillna(0).to_numpy(), L.fillna(0).to_numpy().tolist()):
        with refused("l has shape (60, 3)", "lepu.fit_panel(X, l)"):
            read_data(X, several)
    with refused("lepu.fit_panel"):
        lepu.fit(X, L.fillna(0), model="spm", method="map")


def test_other_values():
    with refused("L['ben']", "2.0", "NaN (not shown)"):
        read_panel(X, L.assign(ben=L["ben"] * 2))
    with refused("L['ben']", "'yes'", "Recode"):
        read_panel(X, L.assign(ben="yes"))
    with refused("L['ben']", "inf"):
        read_panel(X, L.assign(ben=np.inf))


def test_idle_annotators():
    with refused("cleo saw no row", "L.drop(columns=['cleo'])"):
        read_panel(X, L.assign(cleo=np.nan))
    with refused("cleo labelled none", "L.drop(columns=['cleo'])"):
        read_panel(X, L.assign(cleo=0.0))


def test_missing_taken_for_zero():
    with refused("L holds no 0", "L.fillna(0)"):
        read_panel(X, L.where(L == 1))


def test_shapes():
    with refused("X has 60 rows but L has 59"):
        read_panel(X, L.iloc[:-1])
    with refused("use L.T"):
        read_panel(X, L.to_numpy().T)
    with refused("L has shape (60, 3, 1)"):
        read_panel(X, L.to_numpy()[..., None])
    with refused("L has shape (60, 0)"):
        read_panel(X, L[[]])
    with refused("X has 1 dimension"):
        read_panel(X["heat"].to_numpy(), L)
    with refused("X has 0 dimension"):
        read_panel(1.0, L)


def test_names_and_index():
    with refused("duplicate annotator names: anna"):
        read_panel(X, L.set_axis(["anna", "anna", "cleo"], axis=1))
    with refused("index of L differs", "L.loc[X.index]"):
        read_panel(X, L.iloc[::-1])


def test_labelled_but_audited_as_negative():
    y = np.where(L.max(axis=1) == 1, 0.0, np.nan)
    with refused("labelled", "audited as negative"):
        read_panel(X, L, y=y)


def test_annotators_among_the_features():
    full = L.fillna(0)
    with refused("'copy'", "annotator 'ben'", "Drop it"):
        read_panel(X.assign(copy=3 - 2 * full["ben"]), full)
    with refused("'any' is the label itself"):
        read_panel(X.assign(any=full.max(axis=1)), full)


def test_a_row_nobody_saw_is_fine():
    unseen = L.copy()
    unseen.iloc[:3] = np.nan
    assert read_panel(X, unseen).unseen == int(unseen.isna().all(axis=1).sum())


@pytest.mark.parametrize("name", ["psychm", "naive", "other"])
def test_forms_that_are_not_there(name):
    with refused(repr(name), "scar, spm", error=lepu.ModelError):
        lepu.fit_panel(X, L, model=name)


def test_priors_are_checked():
    data = read_panel(X, L)
    spm, scar = get_form("spm"), get_form("scar")
    own = {"sigma_beta": lepu.Prior("halfnormal", scale=0.2)}
    assert complete_priors(spm, data, own)["sigma_beta"] == own["sigma_beta"]
    with refused("'alpha'", "alpha_mean", error=lepu.ModelError):
        complete_priors(spm, data, {"alpha": lepu.Prior("normal", scale=1.0)})
    with refused("'alpha_mean'", "not a parameter of scar", error=lepu.ModelError):
        complete_priors(scar, data, {"alpha_mean": lepu.Prior("normal", scale=1.0)})
    with refused("Prior('halfnormal'", error=lepu.ModelError):
        complete_priors(spm, data, {"sigma_beta": lepu.Prior("normal", scale=1.0)})
    for wrong in (lepu.Prior("laplace", scale=1.0), lepu.Prior("flat"), 2.5):
        with refused("Prior('normal'", error=lepu.ModelError):
            complete_priors(spm, data, {"a": wrong})


def test_sampler_options_are_checked():
    with refused("draws = 0", error=lepu.ModelError):
        lepu.fit_panel(X, L, draws=0)
    with refused("target_accept = 2", error=lepu.ModelError):
        lepu.fit_panel(X, L, target_accept=2)


def test_seeds_and_needless_columns_are_refused():
    with refused("random_seed = -1", "0 to 2**63 - 1", error=lepu.ModelError):
        lepu.fit_panel(X, L, random_seed=-1)
    with refused("selection_features=[0]", "'scar'", "Leave the option out", error=lepu.ModelError):
        lepu.fit_panel(X, L, model="scar", selection_features=[0])


def test_a_frame_of_one_type_keeps_its_row_labels():
    rows = pd.Index([f"r{i}" for i in range(N)])
    data = read_panel(X.set_axis(rows), L.set_axis(rows))
    assert list(data.table.index) == list(rows)
