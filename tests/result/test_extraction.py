"""t, s, h and missed positives as arrays, the table of parameters, and options of the sampler."""

import numpy as np
import pytest

import bayes_lepu as lepu
from tests.tiny import tiny_fit, tiny_table


@pytest.mark.parametrize("name", ["psychm", "panel"])
def test_every_draw_of_every_row(name):
    fit, (X, _, _) = tiny_fit(name), tiny_table()
    found, draws = fit.extract(), fit.parameters
    assert list(found["obs"].to_numpy()) == list(X.index)
    np.testing.assert_allclose(found["t"], draws.t(fit.data.X))
    np.testing.assert_allclose(found["missed"], draws.missed(fit.data.X))
    for one, function in (("s", draws.s), ("h", draws.h)):
        dims = ("chain", "draw", *(["annotator"] if name == "panel" else []), "obs")
        np.testing.assert_allclose(found[one].transpose(*dims), function(fit.data.X))
    new = fit.extract(X.iloc[[3, 1]])
    np.testing.assert_allclose(
        new["t"].mean(("chain", "draw")), fit.class_probability(X.iloc[[3, 1]])["mean"]
    )
    row = found["h"].sel(obs="row 7").isel(chain=2, draw=5).to_numpy()
    np.testing.assert_allclose(row, draws.take((2, 5)).h(fit.data.X[7:8])[..., 0])


def test_summary_takes_the_options_of_arviz():
    fit = tiny_fit("psychm")
    table = fit.summary(var_names=["pi"], ci_prob=0.5, kind="stats", round_to="none")
    low, high = np.quantile(fit.pi_draws, [0.25, 0.75])
    np.testing.assert_allclose(
        table.filter(like="eti50").to_numpy(dtype=float)[0], [low, high], rtol=1e-9
    )
    assert "r_hat" not in table
    assert list(fit.summary(kind="diagnostics", var_names=["pi"]).index) == ["pi"]
    with pytest.raises(lepu.ModelError, match="ci_prob = 2"):
        fit.summary(ci_prob=2)


def test_the_sampler_gets_its_options_and_keeps_them(tmp_path):
    X, l, _ = tiny_table()
    options = {"model": "scar", "draws": 20, "tune": 50, "chains": 1, "progressbar": False}
    fit = lepu.fit(X, l, sampler_options={"maxdepth": 2}, random_seed=1, **options)
    assert fit.stats["tree_depth"].max() == 2
    again = lepu.load(fit.save(tmp_path / "fit.nc")).update(random_seed=2)
    assert again.stats["tree_depth"].max() == 2
    with pytest.raises(lepu.ModelError, match=r"sampler_options holds seed, which `fit` has"):
        lepu.fit(X, l, sampler_options={"seed": 3}, **options)
