"""A part of the rows stands for all of them."""

import numpy as np
import pytest

from bayes_lepu.data.reading import read_data
from bayes_lepu.engines.optimizers import _draw, subsample


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 2))
    l = (rng.random(50_000) < 0.004).astype(int)
    y = np.full(50_000, np.nan)
    unlabelled = np.flatnonzero(l == 0)
    y[unlabelled[:30]], y[unlabelled[30:80]] = 1, 0
    return read_data(X, l, y=y)


def test_rare_rows_are_all_there_and_weights_add_up(data):
    part = subsample(data, 2000)
    assert part.n == pytest.approx(2000, abs=3)
    assert part.l.sum() == data.l.sum()
    assert part.n_audited == 80
    for kind in np.unique(data.kind):
        assert part.weight[part.kind == kind].sum() == pytest.approx(np.sum(data.kind == kind))


def test_it_is_the_same_every_time_and_no_row_comes_twice(data):
    part = subsample(data, 2000)
    np.testing.assert_array_equal(part.X, _draw(data, 2000).X)
    assert part.index.is_unique


def test_weights_of_the_rows_count():
    rng = np.random.default_rng(1)
    weight = rng.uniform(1, 3, size=10_000)
    l = rng.integers(0, 2, size=10_000)
    data = read_data(rng.normal(size=(10_000, 2)), l, sample_weight=weight)
    part = subsample(data, 4000)
    assert part.weight.sum() == pytest.approx(weight.sum(), rel=0.02)
