"""How π moves with how much the annotator may vary."""

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.priors.prior import Prior

DEMO = lepu.load_demo()


@pytest.fixture(scope="module")
def spm():
    return lepu.fit(DEMO.X, DEMO.l, model="spm", method="map", random_seed=1)


def test_each_scale_is_the_fit_with_that_prior(spm):
    table = spm.sensitivity(scales=(1.0, 0.0))
    assert list(table.index) == [0.0, 1.0]
    priors = {"alpha": Prior("normal", scale=1.0 / np.sqrt(6)), "a": spm.priors["a"]}
    same = lepu.fit(DEMO.X, DEMO.l, model="spm", method="map", priors=priors, random_seed=1)
    assert table.loc[1.0, "class_prior"] == pytest.approx(same.pi_draws[0], abs=1e-5)
    scar = lepu.fit(
        DEMO.X, DEMO.l, model="scar", method="map", priors={"a": spm.priors["a"]}, random_seed=1
    )
    assert table.loc[0.0, "class_prior"] == pytest.approx(scar.pi_draws[0], abs=1e-5)
    expected = scar.missed(total=True).loc["as named", "mean"]
    assert table.loc[0.0, "missed"] == pytest.approx(expected, rel=1e-5)


def test_a_wider_annotator_fits_the_labels_at_least_as_well(spm):
    table = spm.sensitivity()
    assert (np.diff(table["behind"]) <= 1e-6).all()
    assert table["behind"].min() == 0
    assert table["same_rows"].between(0, 1).all()


def test_a_constant_annotator_is_asked_too():
    fit = lepu.fit(DEMO.X, DEMO.l, model="scar", method="map", random_seed=1)
    table = fit.sensitivity(scales=(0.0, 1.0))
    assert table.loc[0.0, "class_prior"] == pytest.approx(fit.pi_draws[0], abs=1e-5)
    assert table.loc[0.0, "same_rows"] == 1.0
    assert table.loc[1.0, "class_prior"] > table.loc[0.0, "class_prior"]


@pytest.mark.parametrize("scales", [(-1.0,), (), (np.nan,)])
def test_scales_are_numbers_from_zero(spm, scales):
    with pytest.raises(lepu.DataError, match="from 0"):
        spm.sensitivity(scales=scales)


def test_several_annotators_are_told_where_to_look():
    l = np.column_stack([DEMO.l, DEMO.y])
    fit = lepu.fit(DEMO.X, l, model="spm", method="map", random_seed=1)
    with pytest.raises(lepu.ModelError, match="annotators"):
        fit.sensitivity()
