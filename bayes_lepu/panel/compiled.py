r"""Log density and gradient of the panel model, compiled.

Every row reduces to the responsibility m = P(y=1 | x, labels), which is 1 where anybody labelled
and 0 where the class is audited as negative:

.. math::
    \partial \log L_i / \partial \tau_i = m_i - t_i, \qquad
    \partial \log L_i / \partial \omega_{ij} = m_i\,(l_{ij} - s_{ij}) \ \text{where shown}.

Coordinates: ``a, b, alpha_mean, beta_mean, log sigma_alpha, log sigma_beta, z_alpha, z_beta``, with
α_j = alpha_mean + sigma_alpha z_alpha_j and β_j = beta_mean + sigma_beta z_beta_j. Where the
propensities are constant, alpha_mean, sigma_alpha and z_alpha are absent.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.compilation import compiled
from bayes_lepu.kernel.tails import NEGATIVE, UNLABELLED, log_add, log_sigmoid
from bayes_lepu.links import Array

SMALLEST = 1e-280  # row likelihoods below this are computed in log space

_jit = compiled()


class Constants(NamedTuple):
    """All that an evaluation needs besides the coordinates."""

    Xt: Array  # columns of the classifier and of the propensities
    Xs: Array
    labels: NDArray[np.int8]
    kind: NDArray[np.int8]
    loc: Array  # location and precision of every coordinate's normal prior, 0 for log scales
    precision: Array
    scales: Array  # of the half-normal priors of (sigma_alpha,) sigma_beta
    log_norm: float  # normalising constant of all priors


@_jit
def _row(tau: float, omega: Array, labels: NDArray[np.int8], kind: int, s: Array) -> tuple:
    """Log-likelihood, responsibility m and t of one row; fills s where the row was shown."""
    e = math.exp(-abs(tau))
    t, not_t = (1.0 / (1.0 + e), e / (1.0 + e)) if tau >= 0 else (e / (1.0 + e), 1.0 / (1.0 + e))
    positive = t
    for j in range(omega.size):
        if labels[j] >= 0:
            e = math.exp(-abs(omega[j]))
            high, low = 1.0 / (1.0 + e), e / (1.0 + e)
            s[j] = high if omega[j] >= 0 else low
            positive *= high if (omega[j] >= 0) == (labels[j] == 1) else low
    total = positive + not_t if kind == UNLABELLED else (not_t if kind == NEGATIVE else positive)
    if total < SMALLEST:
        return _row_log(tau, omega, labels, kind, t)
    m = positive / total if kind == UNLABELLED else (0.0 if kind == NEGATIVE else 1.0)
    return math.log(total), m, t


@_jit
def _row_log(tau: float, omega: Array, labels: NDArray[np.int8], kind: int, t: float) -> tuple:
    """`_row` in log space, for the far tails."""
    if kind == NEGATIVE:
        return log_sigmoid(-tau), 0.0, t
    log_positive = log_sigmoid(tau)
    for j in range(omega.size):
        if labels[j] >= 0:
            log_positive += log_sigmoid(omega[j] if labels[j] == 1 else -omega[j])
    if kind == UNLABELLED:
        total = log_add(log_sigmoid(-tau), log_positive)
        return total, math.exp(log_positive - total), t
    return log_positive, 1.0, t


@_jit
def _predict(i: int, alpha: Array, beta: Array, Xs: Array, omega: Array) -> None:
    for j in range(beta.size):
        total = beta[j]
        for c in range(Xs.shape[1]):
            total += alpha[j, c] * Xs[i, c]
        omega[j] = total


@_jit
def loglik_rows(
    a: Array,
    b: float,
    alpha: Array,
    beta: Array,
    Xt: Array,
    Xs: Array,
    labels: NDArray[np.int8],
    kind: NDArray[np.int8],
) -> Array:
    """Log-likelihood of every row."""
    out, omega, s = np.empty(Xt.shape[0]), np.empty(beta.size), np.empty(beta.size)
    for i in range(Xt.shape[0]):
        tau = b
        for c in range(Xt.shape[1]):
            tau += a[c] * Xt[i, c]
        _predict(i, alpha, beta, Xs, omega)
        out[i] = _row(tau, omega, labels[i], kind[i], s)[0]
    return out


@_jit
def _likelihood(
    a: Array, b: float, alpha: Array, beta: Array, k: Constants, grad_t: Array, grad_s: Array
) -> float:
    """Log-likelihood; adds the gradient in (a, b) and in (α_j, β_j), intercepts last."""
    pt, ps = k.Xt.shape[1], k.Xs.shape[1]
    omega, s = np.empty(beta.size), np.empty(beta.size)
    value = 0.0
    for i in range(k.Xt.shape[0]):
        tau = b
        for c in range(pt):
            tau += a[c] * k.Xt[i, c]
        _predict(i, alpha, beta, k.Xs, omega)
        row, m, t = _row(tau, omega, k.labels[i], k.kind[i], s)
        value += row
        d = m - t
        for c in range(pt):
            grad_t[c] += d * k.Xt[i, c]
        grad_t[pt] += d
        if m == 0.0:
            continue
        for j in range(beta.size):
            if k.labels[i, j] >= 0:
                d = m * (k.labels[i, j] - s[j])
                for c in range(ps):
                    grad_s[j, c] += d * k.Xs[i, c]
                grad_s[j, ps] += d
    return value


@_jit
def logp_grad(z: Array, k: Constants) -> tuple[float, Array]:
    """Normalised log density of the coordinates (Jacobian included) and its gradient."""
    pt, ps, J = k.Xt.shape[1], k.Xs.shape[1], k.labels.shape[1]
    first = pt + 1  # alpha_mean, then beta_mean, then the log scales, then z_alpha and z_beta
    level = first + ps
    log_sigma = level + 1
    deviation = log_sigma + k.scales.size
    last = deviation + J * ps
    sigma_alpha = math.exp(z[log_sigma]) if ps > 0 else 0.0
    sigma_beta = math.exp(z[deviation - 1])
    alpha, beta = np.empty((J, ps)), np.empty(J)
    for j in range(J):
        for c in range(ps):
            alpha[j, c] = z[first + c] + sigma_alpha * z[deviation + j * ps + c]
        beta[j] = z[level] + sigma_beta * z[last + j]
    grad, grad_s = np.zeros(z.size), np.zeros((J, ps + 1))
    value = k.log_norm + _likelihood(z[:pt], z[pt], alpha, beta, k, grad[: pt + 1], grad_s)
    for j in range(J):
        for c in range(ps):
            at = deviation + j * ps + c
            grad[first + c] += grad_s[j, c]
            grad[log_sigma] += sigma_alpha * z[at] * grad_s[j, c]
            grad[at] += sigma_alpha * grad_s[j, c]
        grad[level] += grad_s[j, ps]
        grad[deviation - 1] += sigma_beta * z[last + j] * grad_s[j, ps]
        grad[last + j] += sigma_beta * grad_s[j, ps]
    for h in range(k.scales.size):
        ratio = (math.exp(z[log_sigma + h]) / k.scales[h]) ** 2
        value += z[log_sigma + h] - 0.5 * ratio
        grad[log_sigma + h] += 1.0 - ratio
    for i in range(z.size):
        r = z[i] - k.loc[i]
        value -= 0.5 * k.precision[i] * r * r
        grad[i] -= k.precision[i] * r
    return value, grad


@_jit
def centred_logp_grad(v: Array, centring: Array, k: Constants) -> tuple[float, Array]:
    """The same density in sampling coordinates v, in which deviations are more or less centred.

    With centring c_i the coordinate is v_i = c_i mean + sigma^c_i z_i: the annotator's own
    coefficient for c_i = 1, the standardised deviation for c_i = 0. The Jacobian is sigma^-c_i.
    """
    ps, J = k.Xs.shape[1], k.labels.shape[1]
    first = k.Xt.shape[1] + 1
    log_sigma = first + ps + 1
    deviation = log_sigma + k.scales.size
    z, jacobian = v.copy(), 0.0
    for i in range(deviation, v.size):
        mean, scale = _pooled_at(i - deviation, ps, J, first, log_sigma, k.scales.size)
        z[i] = (v[i] - centring[i] * v[mean]) * math.exp(-centring[i] * v[scale])
        jacobian -= centring[i] * v[scale]
    value, grad = logp_grad(z, k)
    for i in range(deviation, v.size):
        mean, scale = _pooled_at(i - deviation, ps, J, first, log_sigma, k.scales.size)
        grad[scale] -= centring[i] * (grad[i] * z[i] + 1.0)
        grad[i] *= math.exp(-centring[i] * v[scale])
        grad[mean] -= centring[i] * grad[i]
    return value + jacobian, grad


@_jit
def _pooled_at(i: int, ps: int, J: int, first: int, log_sigma: int, n_scales: int) -> tuple:
    """Coordinates of the mean and of the log scale that belong to the i-th deviation."""
    if i < J * ps:
        return first + i % ps, log_sigma
    return first + ps, log_sigma + n_scales - 1


@_jit
def whitened(
    u: Array, mean: Array, root: Array, centring: Array, k: Constants
) -> tuple[float, Array]:
    """Log density and gradient in the coordinates u of v = mean + root u."""
    value, grad = centred_logp_grad(mean + root @ u, centring, k)
    return value, root.T @ grad
