"""Sparse matrices: the same answers as the same numbers made dense, and nothing made dense."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import bayes_lepu as lepu
from bayes_lepu import DataError, ModelError, Prior
from bayes_lepu.data.reading import read_data
from bayes_lepu.data.scaling import column_moments
from bayes_lepu.defaults import levels_of_many
from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.estimators import ElkanNotoClassifier, PUClassifier
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.options import choose_priors

MODELS = ("naive", "scar", "spm", "psychm")
FORMATS = ("csr", "csc", "coo")


def dense(data):
    return replace(data, X=data.X.toarray())


def table(n=500, p=12, density=0.3, seed=0):
    """A sparse matrix of counts and labels by a biased annotator, with the classes."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(2, (n, p)) + 1.0
    X = sp.csr_array(np.where(rng.random((n, p)) < density, counts, 0.0))
    slope = rng.normal(size=p)
    y = rng.random(n) < expit(0.8 * (X @ slope))
    l = y & (rng.random(n) < expit(0.5 + 0.4 * (X @ slope[::-1])))
    return X, l.astype(int), y.astype(float)


@pytest.fixture(scope="module")
def small():
    return table()


@pytest.fixture(scope="module")
def words():
    """Too many columns to be judged, and too many cells to be searched as a dense table."""
    X, l, y = table(n=1500, p=320, density=0.03, seed=1)
    return X, l, y, [f"word {j}" for j in range(320)]


@pytest.fixture(scope="module")
def fitted(words):
    X, l, _, names = words
    frame = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X), columns=names)
    return lepu.fit(frame, l, model="spm", method="map", random_seed=1)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("model", MODELS)
def test_the_density_is_that_of_the_dense_table(small, model, form):
    X, l, y = small
    classes = np.where(np.arange(len(l)) % 7 == 0, y, np.nan) if model != "naive" else None
    weight = np.random.default_rng(2).integers(1, 4, len(l)).astype(float)
    known = {} if model == "naive" else {"class_prior": (0.4, 0.05), "label_frequency": (0.6, 0.1)}
    data = read_data(X.asformat(form), l, y=classes, sample_weight=weight, **known)
    assert data.is_sparse
    spec = get_model(model)
    priors = choose_priors(spec, data, point=True, penalty=None, C=None, priors=None)
    one, other = (LogDensity(spec, d, priors) for d in (data, dense(data)))
    z = np.random.default_rng(3).normal(size=one.dim)
    for got, want in zip(one.logp_grad_info(z), other.logp_grad_info(z), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)
    (value, grad), (same, like) = one.logp_grad(z), other.logp_grad(z)
    assert abs(value - same) < 1e-8
    np.testing.assert_allclose(grad, like, rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(
        one.observed_information(z), other.observed_information(z), rtol=1e-10, atol=1e-8
    )


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("model", MODELS)
def test_the_estimate_is_that_of_the_dense_table(small, model, penalty):
    X, l, _ = small
    options = {"model": model, "method": "map", "penalty": penalty, "C": 1.0, "random_seed": 1}
    options["standardize"] = False
    dense = lepu.fit(X.toarray(), l, **options)
    fit = lepu.fit(X, l, **options)
    assert fit.data.is_sparse
    for name in ("a", "b", "alpha", "beta"):
        np.testing.assert_allclose(
            getattr(fit.draws, name), getattr(dense.draws, name), atol=1e-6, err_msg=name
        )
    assert fit.modes[0].logp == pytest.approx(dense.modes[0].logp, abs=1e-8)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_many_columns_reach_the_optimum_of_the_dense_table(words, penalty):
    """Against a climb over a dense table."""
    X, l, _, _ = words
    options = {"model": "spm", "method": "map", "standardize": False, "random_seed": 1}
    fit = lepu.fit(X, l, penalty=penalty, C=15.0, **options)
    density = LogDensity(fit.spec, dense(fit.data), fit.priors)
    best = optimise(density, fit.modes[0].z)
    assert fit.modes[0].converged
    assert best.logp - fit.modes[0].logp < 1e-3
    assert np.abs(density.unpack(best.z).a - fit.draws.a[0]).max() < 1e-2
    if penalty == "l1":
        assert 0 < (fit.draws.a == 0).sum() < 320


def test_no_centre_is_taken_off_and_the_fit_says_so(fitted, words):
    X = words[0]
    mean, sd = X.toarray().mean(axis=0), X.toarray().std(axis=0)
    np.testing.assert_allclose(fitted.data.scale, X.toarray().max(axis=0))
    assert not fitted.data.center.any()
    assert "not centred" in repr(fitted)
    np.testing.assert_allclose(column_moments(X), [mean, sd])
    weight = np.random.default_rng(5).random(1500)
    share = weight / weight.sum()
    mean = share @ X.toarray()
    np.testing.assert_allclose(
        column_moments(X, share), [mean, np.sqrt(share @ (X.toarray() - mean) ** 2)]
    )


def test_new_rows_may_be_sparse_or_dense(fitted, words):
    X, names = words[0], words[3]
    p = fitted.predict_proba(X)[:, 1]
    np.testing.assert_allclose(fitted.predict_proba(X.toarray())[:, 1], p, rtol=1e-12)
    np.testing.assert_allclose(fitted.predict_proba(sp.coo_matrix(X))[:, 1], p, rtol=1e-12)
    shuffled = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X), columns=names)[names[::-1]]
    np.testing.assert_allclose(fitted.predict_proba(shuffled)[:, 1], p, rtol=1e-12)
    a, b = fitted.data.original_scale(fitted.draws.a[0], fitted.draws.b[0])
    np.testing.assert_allclose(p, expit(X.toarray() @ a + b))
    with pytest.raises(DataError, match="X has 319 columns, but the model was fitted on 320"):
        fitted.predict_proba(X[:, 1:])


def test_the_verdict_says_what_was_not_computed(fitted):
    verdict = fitted.identifiability
    assert verdict.level == 4
    assert "sparse matrix of 1500 x 320" in verdict.verdict
    assert "not computed" in verdict.verdict
    assert {c.name for c in verdict.checks if c.status == "not computed"} >= {
        "constancy of s",
        "form range",
    }
    assert "orientation rule" in verdict.carried_by


def test_a_small_table_is_judged_as_a_dense_one(small):
    X, l, _ = small
    fit = lepu.fit(X, l, model="scar", method="map", random_seed=1)
    same = replace(fit, data=dense(fit.data))
    assert fit.identifiability.verdict == same.identifiability.verdict
    assert "not computed" not in fit.identifiability.verdict


def test_the_file_keeps_it_sparse(fitted, words, tmp_path):
    X = words[0]
    path = fitted.save(tmp_path / "fit.nc")
    assert path.stat().st_size < X.toarray().nbytes / 2
    again = lepu.load(path)
    assert again.data.is_sparse
    assert (again.data.X != fitted.data.X).nnz == 0
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    light = lepu.load(fitted.save(tmp_path / "light.nc", data=False))
    np.testing.assert_array_equal(light.predict_proba(X), fitted.predict_proba(X))


def test_the_classifier_is_the_fit_and_leaves_out_empty_columns(fitted, words):
    X, l, _, _ = words
    one = PUClassifier(model="spm", random_state=1).fit(X.tocsc(), l)
    p = one.predict_proba(X)[:, 1]
    np.testing.assert_allclose(p, one.predict_proba(X.toarray())[:, 1])
    np.testing.assert_allclose(p, fitted.predict_proba(X)[:, 1], atol=1e-6)
    wider = sp.hstack([X, sp.csr_array((1500, 1))]).tocsr()
    one = PUClassifier(model="scar", random_state=1).fit(wider, l)
    assert one.coef_.shape == (1, 321)
    assert one.coef_[0, -1] == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "nuts"}, r"method='nuts' needs the curvature.*Use method='map'"),
        ({"method": "laplace", "model": "auto"}, r"X.toarray\(\)"),
        ({"priors": {"a": Prior("normal", scale=Prior("halfnormal", scale=1.0))}}, "fixed scale"),
        ({"class_features": "~ x0"}, "Formulas name columns, but X has none"),
    ],
)
def test_what_a_sparse_matrix_cannot_do(small, options, message):
    X, l, _ = small
    with pytest.raises((DataError, ModelError), match=message):
        lepu.fit(X, l, **{"model": "scar", "method": "map", "random_seed": 1} | options)


def test_sparse_rows_for_a_fit_with_centred_columns(small):
    data = read_data(small[0].toarray(), small[1])
    with pytest.raises(DataError, match=r"columns of this fit are centred.*X.toarray\(\)"):
        data.transform(small[0])


def test_a_column_with_few_zeros_is_centred_in_a_sparse_table_too(small):
    """So that its units and its origin change nothing, and new rows follow."""
    X, l, _ = small
    length = np.random.default_rng(4).gamma(9.0, 20.0, size=X.shape[0])
    length[:9] = 0
    tables = [sp.csr_array(sp.hstack([X, f[:, None]])) for f in (length, length / 7 + 3)]
    fits = [lepu.fit(t, l, model="spm", method="map", random_seed=1) for t in tables]
    np.testing.assert_allclose(fits[0].data.X.toarray(), fits[1].data.X.toarray(), atol=1e-12)
    assert fits[0].pi_draws == pytest.approx(fits[1].pi_draws, rel=1e-6)
    last = fits[0].data.X.toarray()[:, -1]
    np.testing.assert_allclose([last.mean(), np.abs(last).max()], [0, 1], atol=1e-12)
    assert not fits[0].data.center[:-1].any()
    for fit, table in zip(fits, tables, strict=True):
        np.testing.assert_allclose(fit.predict_proba(table)[:, 1], fit.draws.t(fit.data.X)[0])
        np.testing.assert_allclose(
            fit.predict_proba(table[:5].toarray()), fit.predict_proba(table[:5])
        )


def test_many_columns_have_one_prior_of_c_whatever_the_penalty(words):
    X, l, _, _ = words
    for table, penalty in ((X, None), (X, "l1"), (X.toarray(), None)):
        data = read_data(table, l)
        options = {"penalty": penalty, "point": True, "C": None, "priors": None}
        models = {"scar": "c"} | ({"spm": "beta", "psychm": "rates"} if penalty is None else {})
        for model, name in models.items():
            prior = choose_priors(get_model(model), data, **options)[name]
            assert prior == levels_of_many()[name]


def test_of_many_sparse_columns_no_yield_is_promised(fitted, small):
    X, l, _ = small
    few = lepu.fit(X, l, model="spm", method="map", random_seed=1)
    assert "positive" in few.decide(budget=20).outcome.index.get_level_values("quantity")[0]
    for decision in (fitted.decide(budget=20), fitted.decide(fitted.data.X[:40], budget=20)):
        assert set(decision.outcome.index.get_level_values("quantity")) == {"total"}
        assert "is not computed" in repr(decision)
    assert "most probable rows first. How many of them are positive is not" in repr(fitted)


def text_table(n=1500, p=250):
    """TF-IDF of documents whose words have Zipf's frequencies, and labels of half the positives."""
    rng = np.random.default_rng(0)
    common = 1 / np.arange(1, p + 1) ** 0.9
    other = common * np.exp(1.2 * rng.normal(size=p) * (rng.random(p) < 0.15))
    y = rng.random(n) < 0.4
    shares = np.where(y[:, None], other / other.sum(), common / common.sum())
    counts = rng.multinomial(rng.poisson(25, n) + 5, shares)
    X = sp.csr_array(TfidfTransformer().fit_transform(counts[:, counts[: n // 2].any(axis=0)]))
    return X, (y & (rng.random(n) < 0.5)).astype(int), y


def test_rare_words_do_not_weigh_most():
    X, l, y = text_table()
    train, new = slice(0, 750), slice(750, None)
    fit = lepu.fit(X[train], l[train], model="spm", method="map", random_seed=1)
    peer = LogisticRegression(max_iter=1000).fit(X[train], l[train])
    ours = roc_auc_score(y[new], fit.predict_proba(X[new])[:, 1])
    assert ours > roc_auc_score(y[new], peer.decision_function(X[new])) - 0.005
    assert l.mean() < fit.class_prior()["mean"]["pi"] < y.mean() + 0.1


def test_elkan_noto_of_a_sparse_matrix_is_that_of_the_dense_one(small):
    X, l, _ = small
    options = {"standardize": False, "random_state": 1}
    sparse = ElkanNotoClassifier(**options).fit(X, l)
    dense = ElkanNotoClassifier(**options).fit(X.toarray(), l)
    np.testing.assert_allclose(sparse.predict_proba(X), dense.predict_proba(X.toarray()), atol=1e-4)
    assert sparse.class_prior_ == pytest.approx(dense.class_prior_, abs=1e-4)
