"""Threads that share the rows: the same answer, whoever takes which block."""

import os
import threading
import time
import warnings
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import annotated
import numpy as np
import pytest
from densities import make_density
from scipy.sparse import csr_array

import bayes_lepu as lepu
from bayes_lepu.data import pu_data, threads
from bayes_lepu.inference import nuts
from bayes_lepu.likelihood import make_rows

CELLS = 15  # of a block: five rows of three columns
QUICK = {"random_seed": 0, "progressbar": False}
POINT = QUICK | {"model": "spm", "method": "map", "n_starts": 1}
SAMPLED = QUICK | {"model": "scar", "draws": 5, "tune": 5, "chains": 1}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(threads, "BLOCK_CELLS", CELLS)


@pytest.fixture
def rows():
    return make_rows(np.arange(300.0).reshape(100, 3), np.zeros(100))


def by(density, count):
    return replace(density, data=replace(density.data, threads=count))


def weighted():
    density = make_density("psychm", audited=True)
    return replace(density, data=replace(density.data, weight=np.linspace(0, 3, density.data.n)))


# Every form of the kernel, and numbers of rows around the borders of blocks.
DENSITIES = {
    **{f"{n} rows": partial(make_density, "spm", n=n) for n in (20, 21, 39, 40, 41, 97)},
    "weights": weighted,
    "false marks": partial(make_density, "false_marks"),
    "annotators": partial(annotated.make_density, audited=True),
}


@pytest.mark.parametrize("make", DENSITIES.values(), ids=DENSITIES)
def test_any_number_of_threads_gives_the_same_sums(make):
    density = make()
    assert by(density, 2).data.by_threads
    assert not by(density, 2).data.in_kernel
    z = np.random.default_rng(1).normal(size=density.dim)
    names = ["logp_grad", "logp_grad_info", "observed_information"]
    names += ["fold"] if density.can_exchange else []
    for name in names:
        one, two, many = (getattr(by(density, count), name)(z) for count in (1, 2, 7))
        for a, b, c in zip(one, two, many, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-10)
            np.testing.assert_array_equal(b, c)


def test_small_tables_and_sparse_ones_are_not_cut():
    assert by(make_density("spm", n=19), 2).data.in_kernel
    table = by(make_density("spm"), 2).data
    assert not replace(table, X=csr_array(table.X)).by_threads


def test_fits_by_threads_are_the_same(monkeypatch):
    monkeypatch.setattr(threads, "BLOCK_CELLS", 200)
    X, _, L = annotated.simulate(300)
    for labels, options in ((L["anna"], {"class_prior": (0.4, 0.1)}), (L, {})):
        one, two = (lepu.fit(X, labels, threads=count, **POINT, **options) for count in (1, 2))
        np.testing.assert_allclose(two.coefficients(), one.coefficients(), atol=1e-6)
        assert two.class_prior().loc["pi", "mean"] == pytest.approx(
            one.class_prior().loc["pi", "mean"], abs=1e-7
        )


def test_draws_do_not_depend_on_the_number_of_threads(monkeypatch):
    callers = set()

    def total(*given):
        callers.add(threading.current_thread())
        return threads.total(*given)

    monkeypatch.setattr(threads, "BLOCK_CELLS", 400)
    monkeypatch.setattr(pu_data, "total", total)
    monkeypatch.setattr(nuts, "count_cores", lambda: 8)
    X, _, L = annotated.simulate(700)  # 2100 cells: six blocks
    two, three = (lepu.fit(X, L["anna"], threads=count, **SAMPLED).parameters for count in (2, 3))
    np.testing.assert_array_equal(two.a, three.a)
    np.testing.assert_array_equal(two.b, three.b)
    assert callers - {threading.main_thread()}, "the chains did not share their rows"


@pytest.mark.parametrize(
    ("cores", "chains", "at_a_time", "left"), [(2, 4, None, 1), (8, 3, None, 2), (8, 4, 2, 4)]
)
def test_chains_that_fill_the_cores_leave_fewer_threads(
    monkeypatch, cores, chains, at_a_time, left
):
    monkeypatch.setattr(nuts, "count_cores", lambda: cores)
    density = by(make_density("spm"), 5)
    options = SimpleNamespace(chains=chains, cores=at_a_time)
    with pytest.warns(lepu.LepuWarning, match=rf"threads=5, but .* room for {left} thread"):
        assert nuts._within_cores(density, options).data.threads == left
    few = by(density, left)
    assert nuts._within_cores(few, options) is few


def test_helpers_take_part_and_know_what_to_ignore(rows):
    met = threading.Barrier(2)
    names = set()

    def function(block):
        if block.X[0, 0] < 30:  # each of the two takes one of the first two blocks
            met.wait(timeout=30)
        names.add(threading.current_thread().name)
        return (np.exp(block.X.sum() + 1000), block.X.sum())

    with np.errstate(all="ignore"):
        _, total = threads.total(function, rows, 2)
    assert total == rows.X.sum()
    assert len(names) == 2


def test_errors_of_helpers_are_raised(rows):
    met = threading.Barrier(2)

    def function(block):
        if block.X[0, 0] < 30:
            met.wait(timeout=30)
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("in a helper")
        return (0.0,)

    with pytest.raises(ValueError, match="in a helper"):
        threads.total(function, rows, 2)


def test_after_an_interrupt_no_block_is_begun(rows):
    met, ended = threading.Barrier(2), threading.Event()
    begun = []

    def function(block):
        begun.append(block)
        met.wait(timeout=30)
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        ended.wait(timeout=30)
        return (0.0,)

    with pytest.raises(KeyboardInterrupt):
        threads.total(function, rows, 2)
    ended.set()
    time.sleep(0.05)
    assert len(begun) == 2
    assert threads.total(lambda block: (block.X.sum(),), rows, 2) == (rows.X.sum(),)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_has_helpers_of_its_own(rows):
    met = threading.Barrier(2)

    def function(block):
        if block.X[0, 0] < 30:  # without a helper nobody comes to meet, which is an error
            met.wait(timeout=30)
        return (block.X.sum(),)

    threads.total(function, rows, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        found = (-1.0,)
        try:
            found = threads.total(function, rows, 2)
        finally:
            os._exit(0 if found == (rows.X.sum(),) else 1)
    assert os.waitpid(child, 0)[1] == 0
