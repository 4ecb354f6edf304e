"""The fused kernel against NumPy forms written from the formulas."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import log_expit, log_softmax

from bayes_lepu import kernel
from bayes_lepu.kernel.tails import information_log
from bayes_lepu.kernel.tiles import TILE_ROWS
from bayes_lepu.links import LOG_W_NAIVE, LOG_W_SPM, RowKind, log_psychometric, row_loglik

LOG_W = {
    "naive": LOG_W_NAIVE,
    "scar": np.array([np.log(0.3), np.log(0.7), -np.inf]),
    "spm": LOG_W_SPM,
    "psychm": np.log([0.1, 0.25, 0.65]),
    "psychm tiny gamma": np.array([-690.0, np.log(0.4), np.log(0.6)]),
    "psychm tiny lambda": np.array([np.log(0.4), -690.0, np.log(0.6)]),
    "psychm tiny rho": np.array([np.log(0.4), np.log(0.6), -690.0]),
    "psychm all but gamma tiny": np.array([0.0, -690.0, -690.0]),
    "psychm gamma below the smallest float": np.array([-800.0, -800.0, 0.0]),
}
EXTREMES = np.array(
    [-750, -708, -301, -299, -100, -40, -5, 0, 0.3, 5, 40, 100, 299, 301, 708, 750], dtype=float
)


def simulate(n: int, p: int, *, seed: int = 0, scale: float = 1.0, audited: bool = True) -> tuple:
    """Arguments of the kernel but for the weights; all kinds of rows mixed."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    kind = rng.integers(0, 4 if audited else 2, size=n).astype(np.int8)
    a, alpha = scale * rng.normal(size=(2, p)) / np.sqrt(p)
    return X, kind, a, 0.3, alpha, -0.4


def on_grid(kinds: list[RowKind]) -> tuple:
    """Rows whose predictors are all pairs of extremes, in every kind asked for."""
    tau, omega, kind = (
        grid.ravel() for grid in np.meshgrid(EXTREMES, EXTREMES, kinds, indexing="ij")
    )
    X = np.ascontiguousarray(np.column_stack([tau, omega]))
    return X, kind.astype(np.int8), np.array([1.0, 0.0]), 0.0, np.array([0.0, 1.0]), 0.0


def predictors(args: tuple, log_w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    X, _, a, b, alpha, beta = args
    omega = X @ alpha + beta if log_w[2] > -np.inf else np.zeros(len(X))
    return X @ a + b, omega


def possible_kinds(log_w: np.ndarray) -> list[RowKind]:
    """Under the naive model every positive is labelled, so that none can be missed."""
    naive = log_w[1] == log_w[2] == -np.inf
    return [kind for kind in RowKind if not (naive and kind == RowKind.MISSED)]


def row_slopes(kind: np.ndarray, tau: np.ndarray, omega: np.ndarray, log_w: np.ndarray) -> tuple:
    """Derivatives of each row's log-likelihood in tau, omega, u, v, each as one exponential."""
    log_t, log_not_t = log_expit(tau), log_expit(-tau)
    log_psi, log_not_psi = log_psychometric(omega, log_w)
    log_q = np.logaddexp(log_not_t, log_t + log_not_psi)
    d_log_psi = [
        log_w[2] + log_expit(omega) + log_expit(-omega),
        log_w[0] + log_not_psi,
        log_w[1] + log_psi,
    ]
    with np.errstate(invalid="ignore"):  # -inf minus -inf where a missed row is impossible
        missed = [d - log_not_psi for d in d_log_psi]
    zero = np.zeros_like(tau)
    by_tau = np.choose(
        kind,
        [
            -np.exp(log_t + log_not_t + log_psi - log_q),
            np.exp(log_not_t),
            np.exp(log_not_t),
            -np.exp(log_t),
        ],
    )
    slopes = [
        np.choose(kind, [-np.exp(log_t + d - log_q), np.exp(d - log_psi), -np.exp(m), zero])
        for d, m in zip(d_log_psi, missed, strict=True)
    ]
    return by_tau, slopes[0], slopes[1], -slopes[2]


def reference_gradient(args: tuple, log_w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gradient, and the sum of the sizes of its terms (the scale of its rounding error)."""
    X1 = np.column_stack([args[0], np.ones(len(args[0]))])
    by_tau, by_omega, by_u, by_v = row_slopes(args[1], *predictors(args, log_w), log_w)
    gradient = np.r_[X1.T @ by_tau, X1.T @ by_omega, by_u.sum(), by_v.sum()]
    sizes = np.r_[
        abs(X1.T) @ abs(by_tau), abs(X1.T) @ abs(by_omega), abs(by_u).sum(), abs(by_v).sum()
    ]
    return gradient, sizes


def differences(f: Callable, theta: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Central finite differences of f, one row per entry of theta."""
    steps = step * np.eye(theta.size)
    return np.array([(f(theta + h) - f(theta - h)) / (2 * step) for h in steps])


def unpack(theta: np.ndarray, p: int, model: str) -> tuple:
    """Arguments after X and kind; u and v become weights as the model defines them."""
    u, v = theta[2 * p + 2 :]
    log_w = {
        "naive": LOG_W_NAIVE,
        "scar": np.r_[log_softmax([u, 0.0]), -np.inf],
        "spm": LOG_W_SPM,
        "psychm": log_softmax([u, v, 0.0]),
    }[model]
    return theta[:p], theta[p], theta[p + 1 : 2 * p + 1], theta[2 * p + 1], log_w


def free(p: int, model: str) -> np.ndarray:
    """Which entries of (a, b, alpha, beta, u, v) the model depends on."""
    used = np.zeros(2 * p + 4, dtype=bool)
    used[: p + 1] = True
    used[p + 1 : 2 * p + 2] = model in ("spm", "psychm")
    used[2 * p + 2] = model in ("scar", "psychm")
    used[2 * p + 3] = model == "psychm"
    return used


@pytest.mark.parametrize("name", LOG_W)
@pytest.mark.parametrize(
    ("n", "p", "scale"), [(1, 1, 1.0), (7, 1, 1.0), (1100, 5, 1.0), (600, 3, 40.0), (20, 50, 1.0)]
)
def test_loglik_matches_links(name: str, n: int, p: int, scale: float) -> None:
    log_w = LOG_W[name]
    args = simulate(n, p, scale=scale, audited=name != "naive")
    expected = row_loglik(args[1], *predictors(args, log_w), log_w)
    np.testing.assert_allclose(kernel.loglik_rows(*args, log_w), expected, rtol=1e-12, atol=1e-14)
    loglik, gradient = kernel.loglik_grad(*args, log_w)
    np.testing.assert_allclose(loglik, expected.sum(), rtol=1e-12, atol=1e-14 * n)
    wanted, sizes = reference_gradient(args, log_w)
    np.testing.assert_allclose(gradient - wanted, 0, atol=1e-12 * (1 + sizes.max()))


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in LOG_W for kind in possible_kinds(LOG_W[name])]
)
def test_tails(name: str, kind: RowKind) -> None:
    log_w = LOG_W[name]
    args = on_grid([kind])
    tau, omega = predictors(args, log_w)
    expected = row_loglik(args[1], tau, omega, log_w)
    assert np.isfinite(expected).all()
    slopes = row_slopes(args[1], tau, omega, log_w)
    np.testing.assert_allclose(kernel.loglik_rows(*args, log_w), expected, rtol=1e-13, atol=1e-15)
    for i in range(len(tau)):  # one row at a time: a sum would hide the small ones
        row = (args[0][i : i + 1], args[1][i : i + 1], *args[2:])
        loglik, gradient, info = kernel.loglik_grad_info(*row, log_w)
        np.testing.assert_allclose(loglik, expected[i], rtol=1e-12, atol=1e-15)
        mine = gradient[[2, 5, 6, 7]]  # intercepts, u, v
        # linear space loses what a weight near the smallest float contributes, hence atol
        np.testing.assert_allclose(mine, [s[i] for s in slopes], rtol=1e-11, atol=1e-150)
        assert np.isfinite(info).all()


def test_impossible_row_is_minus_infinity() -> None:
    args = on_grid([RowKind.MISSED])
    assert np.all(kernel.loglik_rows(*args, LOG_W_NAIVE) == -np.inf)
    loglik, gradient, info = kernel.loglik_grad_info(*args, LOG_W_NAIVE)
    assert loglik == -np.inf
    assert np.isfinite(gradient).all()
    assert np.isfinite(info).all()


def test_nan_is_not_hidden() -> None:
    X, kind, a, b, alpha, beta = simulate(200, 3)
    a = a.copy()
    a[1] = np.nan
    loglik, gradient = kernel.loglik_grad(X, kind, a, b, alpha, beta, LOG_W["psychm"])
    assert np.isnan(loglik)
    assert np.isnan(gradient[:4]).all()


@pytest.mark.parametrize("model", ["naive", "scar", "spm", "psychm"])
def test_gradient_by_differences(model: str) -> None:
    n, p = 150, 3
    X, kind, a, b, alpha, beta = simulate(n, p, seed=1, audited=model != "naive")
    theta = np.r_[a, b, alpha, beta, -1.2, -0.7]

    def loglik(theta: np.ndarray) -> float:
        *coefs, log_w = unpack(theta, p, model)
        return row_loglik(kind, *predictors((X, kind, *coefs), log_w), log_w).sum()

    gradient = kernel.loglik_grad(X, kind, *unpack(theta, p, model))[1]
    used = free(p, model)
    np.testing.assert_allclose(gradient[used], differences(loglik, theta)[used], atol=1e-6)
    np.testing.assert_array_equal(gradient[p + 1 : 2 * p + 2][~used[p + 1 : 2 * p + 2]], 0)


@pytest.mark.parametrize("n", [1, 5, 128, 300])
@pytest.mark.parametrize("model", ["naive", "scar", "spm", "psychm"])
def test_information_by_differences(model: str, n: int) -> None:
    p = 3
    X, kind, a, b, alpha, beta = simulate(n, p, seed=2, audited=model != "naive")
    theta = np.r_[a, b, alpha, beta, -1.2, -0.7]

    def of_rows(kind_of_row: RowKind) -> Callable:
        def loglik(theta: np.ndarray) -> np.ndarray:
            *coefs, log_w = unpack(theta, p, model)
            kinds = np.full(n, kind_of_row)
            return row_loglik(kinds, *predictors((X, kinds, *coefs), log_w), log_w)

        return loglik

    def slopes(f: Callable) -> np.ndarray:
        return differences(f, theta).T[:, free(p, model)]

    def outer(weight: np.ndarray, D: np.ndarray) -> np.ndarray:
        return (D * weight[:, None]).T @ D

    log_h, log_not_t = of_rows(RowKind.LABELLED), of_rows(RowKind.NEGATIVE)
    *coefs, log_w = unpack(theta, p, model)
    tau, omega = predictors((X, kind, *coefs), log_w)
    t, psi = np.exp(log_expit(tau)), np.exp(log_psychometric(omega, log_w)[0])
    h = t * psi
    # log h = log psi + log t, and d log t = (1 - t) dtau, d log(1 - t) = -t dtau
    d_tau = -slopes(log_not_t) / t[:, None]
    d_log_psi = slopes(log_h) - (1 - t)[:, None] * d_tau
    open_row = kind <= RowKind.LABELLED
    expected = outer(np.where(open_row, h / (1 - h), 0), slopes(log_h))
    expected += outer(np.where(open_row, 0, t * (1 - t)), d_tau)
    if model != "naive":
        odds = psi / (1 - psi)  # (dpsi)^2 / (psi (1 - psi)) = odds (dlog psi)^2
        expected += outer(np.where(kind == RowKind.MISSED, odds, 0), d_log_psi)

    loglik, gradient, info = kernel.loglik_grad_info(X, kind, *unpack(theta, p, model))
    used = free(p, model)
    np.testing.assert_allclose(info[np.ix_(used, used)], expected, atol=2e-7 * n, rtol=1e-6)
    np.testing.assert_array_equal(info, info.T)
    again = kernel.loglik_grad(X, kind, *unpack(theta, p, model))
    np.testing.assert_allclose(loglik, again[0], rtol=1e-12)
    np.testing.assert_allclose(gradient, again[1], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ["spm", "psychm", "psychm tiny gamma", "psychm tiny rho"])
def test_information_same_in_linear_and_log_space(name: str) -> None:
    args = simulate(60, 4, scale=20.0)
    log_w = LOG_W[name]
    linear = kernel.loglik_grad_info(*args, log_w)[2]
    logarithmic = np.zeros_like(linear)
    for x, kind, tau, omega in zip(args[0], args[1], *predictors(args, log_w), strict=True):
        *f, f_class = information_log.py_func(kind, tau, omega, log_w)
        x1 = np.r_[x, 1.0]
        for vector in ((f[0] * x1, f[1] * x1, f[2], f[3]), (f_class * x1, 0 * x1, 0, 0)):
            row = np.hstack(vector)
            logarithmic += np.outer(row, row)
    np.testing.assert_allclose(linear, logarithmic, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", LOG_W)
@pytest.mark.parametrize(("n", "p", "scale"), [(3, 1, 1.0), (1030, 4, 1.0), (600, 3, 200.0)])
def test_pair_is_two_evaluations(name: str, n: int, p: int, scale: float) -> None:
    log_w = LOG_W[name]
    X, kind, a, b, alpha, beta = simulate(n, p, scale=scale, audited=name != "naive")
    pair = kernel.loglik_grad_pair(X, kind, a, b, alpha, beta, log_w)
    once = kernel.loglik_grad(X, kind, a, b, alpha, beta, log_w)
    swapped = kernel.loglik_grad(X, kind, alpha, beta, a, b, log_w)
    for mine, expected in zip(pair, (*once, *swapped), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("n", "p"),
    [(TILE_ROWS + extra, 4) for extra in (-1, 0, 1)] + [(9, 400), (130, 100)],
)
def test_results_add_over_blocks_of_rows(n: int, p: int) -> None:
    X, kind, *coefs = simulate(n, p, seed=3)
    whole = kernel.loglik_grad_info(X, kind, *coefs, LOG_W["psychm"])
    cut = n // 3
    parts = [
        kernel.loglik_grad_info(X[rows], kind[rows], *coefs, LOG_W["psychm"])
        for rows in (slice(cut), slice(cut, None))
    ]
    for total, first, second in zip(whole, *parts, strict=True):
        np.testing.assert_allclose(total, first + second, rtol=1e-10, atol=1e-10)


def test_no_rows() -> None:
    X, kind, *coefs = simulate(0, 3)
    loglik, gradient, info = kernel.loglik_grad_info(X, kind, *coefs, LOG_W_SPM)
    assert loglik == 0
    assert not gradient.any()
    assert not info.any()
