r"""The row likelihood compiled: value, gradient and responsibilities in one pass over X.

The formulas are those of `bayes_lepu.rows.formula`. Most rows are evaluated in linear space by
loops that the compiler vectorises. Rows in the far tails, where these under- or overflow, are
evaluated again in log space. Results are summed over blocks of rows.

The case of one annotator without false marks has a separate form, which takes half the time. With
:math:`D = \partial L/\partial t` equal to ψ (marked), -ψ (not marked) or 0 (not shown) in an open
row, and with s = 1, -1, 0 for these,

.. math::
    L_\tau = t' D, \qquad L_\omega = s\,t\,\psi', \qquad
    L_u = s\,t\,\gamma(1-\psi), \qquad L_v = -s\,t\,\lambda\psi .

Otherwise the products A and B grow annotator by annotator. As long as B = 1, which without false
marks means that nobody marked the row, so does 1 - A, a sum of positive terms:

.. math:: 1 - A\,(1-\psi) = (1 - A) + A\psi .
"""

import math

import numpy as np

from bayes_lepu.factors.arithmetic import jit, jit_part, jit_sums, log
from bayes_lepu.factors.dispatch import FAR, fill_curve, link_logs
from bayes_lepu.links import Array
from bayes_lepu.rows.arguments import OWN, Codes, Point, Rows
from bayes_lepu.rows.tiles import (
    TINY,
    add_columns,
    add_columns_two,
    predict,
    predict_two,
    tile_rows,
)

# Far rows: one at a time, in log space -----------------------------------------------------------


@jit
def log_add(x: float, y: float) -> float:
    """log(e^x + e^y), also where one or both are -inf; NaN stays NaN."""
    if x == -math.inf or y == -math.inf:
        return x if y == -math.inf else y
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))


@jit
def exp_ratio(log_x: float, log_y: float) -> float:
    """The ratio x / y from logarithms; 0 where x is 0, also where y is 0 too."""
    return 0.0 if log_x == -math.inf else math.exp(log_x - log_y)


@jit
def exp_of(log_rates: Array) -> tuple:
    """The three rates."""
    return math.exp(log_rates[0]), math.exp(log_rates[1]), math.exp(log_rates[2])


@jit_part
def log_factor_of(link: int, z: float, rates: Array) -> tuple:
    """Log ψ, log(1 - ψ) and log ψ' of a link mixed by rates."""
    up, down, slope = link_logs(link, z)
    psi, not_psi = log_add(rates[0], rates[2] + up), log_add(rates[1], rates[2] + down)
    return psi, not_psi, rates[2] + slope


@jit
def row_log(
    labels: Array, known: int, tau: float, omega: Array, links: Codes, point: Point
) -> tuple:
    """Log-likelihood of one row, its slope in τ, and P(y=1 | x, labels).

    ``labels`` and ``omega`` are (J,).
    """
    log_t, log_not_t, log_slope = log_factor_of(links.of_class, tau, point.class_rates)
    log_A = log_B = 0.0
    log_short, false_marks, marks = -math.inf, False, 0
    for j in range(labels.size):
        eps = point.epsilon[j]
        false_marks |= eps > 0.0
        if labels[j] >= 0:
            psi, not_psi, _ = log_factor_of(links.of_selection, omega[j], point.rates[j])
            log_short = log_add(log_short, log_A + psi)  # B - A while nobody marked
            log_A += psi if labels[j] == 1 else not_psi
            if labels[j] == 1:
                marks += 1
                log_B += math.log(eps) if eps > 0.0 else -math.inf
            else:
                log_B += math.log1p(-eps)
    log_A = -math.inf if known == 0 else log_A
    log_B = -math.inf if known == 1 else log_B
    log_L = log_add(log_t + log_A, log_not_t + log_B)
    m = exp_ratio(log_t + log_A, log_L)
    if known < 0 and marks == 0 and not false_marks:
        return log_L, -exp_ratio(log_slope + log_short, log_L), m
    up, down = exp_ratio(log_slope + log_A, log_L), exp_ratio(log_slope + log_B, log_L)
    return log_L, up - down, m


@jit_part
def cell_log(label: int, omega: float, link: int, rates: Array) -> tuple:
    """Slopes of log P(l | y=1) of one cell in ω, u and v."""
    if label < 0:
        return 0.0, 0.0, 0.0
    psi, not_psi, slope = log_factor_of(link, omega, rates)
    cell, sign = (psi, 1.0) if label == 1 else (not_psi, -1.0)
    d_u, d_v = exp_ratio(rates[0] + not_psi, cell), exp_ratio(rates[1] + psi, cell)
    return sign * exp_ratio(slope, cell), sign * d_u, -sign * d_v


@jit
def add_far_rows(
    rows: Rows, start: int, links: Codes, point: Point, z: tuple, d_tau: Array, d: Array,
    grad: Array,
) -> float:  # fmt: skip
    """Log-likelihood of a tile's far rows, those whose ``d_tau`` is NaN.

    ``z`` holds τ (m,) and ω (J, m). Fills the slopes in them and adds those in u, v and e.
    """
    tau, omega = z
    J, width, total = omega.shape[0], rows.X.shape[1] + 1, 0.0
    for i in range(d_tau.size):
        if not math.isnan(d_tau[i]):
            continue
        labels, known, w = rows.labels[:, start + i], rows.known[start + i], rows.weight[start + i]
        value, slope, m = row_log(labels, known, tau[i], omega[:, i], links, point)
        total += w * value
        d_tau[i] = w * slope
        for j in range(J):
            d_omega, d_u, d_v = cell_log(labels[j], omega[j, i], links.of_selection, point.rates[j])
            own = width + j * (width + OWN) + width
            d[j, i] = w * m * d_omega if m > 0.0 else 0.0
            if m > 0.0:
                grad[own] += w * m * d_u
                grad[own + 1] += w * m * d_v
            if point.epsilon[j] > 0.0 and labels[j] >= 0:
                grad[own + 2] += w * (1.0 - m) * (labels[j] - point.epsilon[j])
    return total


# One annotator without false marks ---------------------------------------------------------------


@jit_part
def factors_of_tile(rows: Rows, start: int, links: Codes, point: Point, room: Array) -> tuple:
    """(z, F, 1 - F, F') of the class and of the annotator (z = 0 where s does not depend on x)."""
    X = rows.X[start : start + room.shape[1]]
    m = X.shape[0]
    first = (room[0, :m], room[1, :m], room[2, :m], room[3, :m])
    second = (room[4, :m], room[5, :m], room[6, :m], room[7, :m])
    if point.rates[0, 2] > -math.inf:
        alpha = point.alpha[0]
        predict_two(X, point.a, point.b, alpha, point.beta[0], first[0], second[0])
    else:
        predict(X, point.a, point.b, first[0])
        second[0][:] = 0.0
    fill_curve(links.of_class, *first)
    fill_curve(links.of_selection, *second)
    return first, second


@jit_sums
def add_single(
    rows: Rows, start: int, links: Codes, point: Point, first: tuple, second: tuple, room: Array,
    grad: Array,
) -> float:  # fmt: skip
    """Log-likelihood of a tile of rows with one annotator; adds its gradient.

    The last of ``first`` and ``second`` come with F' and leave with the slopes in τ and ω. No sum
    mixes signs, so no digits are lost. Far rows count as L = 1 with slopes of zero.
    """
    (tau, up_t, down_t, d_tau), (omega, up_s, down_s, d_omega) = first, second
    m, q = tau.size, rows.X.shape[1] + 1
    labels, known = rows.labels[0, start : start + m], rows.known[start : start + m]
    X, weight = rows.X[start : start + m], rows.weight[start : start + m]
    value = room[8, :m]
    base, lost, span = exp_of(point.class_rates)
    gamma, lam, rho = exp_of(point.rates[0])
    far, sum_u, sum_v, loglik = 0, 0.0, 0.0, 0.0
    for i in range(m):
        marked, shown = labels[i] == 1, labels[i] >= 0
        negative, positive = known[i] == 0, known[i] == 1
        t, not_t = base + span * up_t[i], lost + span * down_t[i]
        psi, not_psi = gamma + rho * up_s[i], lam + rho * down_s[i]
        sign = -1.0 if shown else 0.0
        sign = 1.0 if marked else sign
        sign = 0.0 if negative else sign
        cell = not_psi if shown else 1.0
        cell = psi if marked else cell
        cell = 0.0 if negative else cell
        D = cell if positive else sign * psi
        D = -1.0 if negative else D
        L = t * cell + (0.0 if positive | marked else not_t)
        # false for NaN too, which stays NaN in log space
        near = (abs(tau[i]) <= FAR) & (abs(omega[i]) <= FAR) & (L >= TINY)
        far += 0 if near else 1
        L = L if near else 1.0
        value[i] = L
        inverse = weight[i] / L
        by_psi = sign * t * inverse if near else 0.0
        d_tau[i] = span * d_tau[i] * (D * inverse) if near else math.nan
        d_omega[i] *= by_psi * rho
        sum_u += by_psi * not_psi
        sum_v += by_psi * psi
    for i in range(m):
        loglik += weight[i] * log(value[i])
    grad[2 * q] += gamma * sum_u
    grad[2 * q + 1] -= lam * sum_v
    if far > 0:
        z, d = (tau, omega.reshape(1, m)), d_omega.reshape(1, m)
        loglik += add_far_rows(rows, start, links, point, z, d_tau, d, grad)
    if rho > 0.0:
        add_columns_two(X, d_tau, d_omega, grad[:q], grad[q : 2 * q])
    else:
        add_columns(X, d_tau, grad[:q])
    return loglik


@jit
def single_grad(rows: Rows, links: Codes, point: Point) -> tuple[float, Array]:
    """`loglik_grad` for one annotator without false marks."""
    n, p = rows.X.shape
    size = tile_rows(p)
    room, loglik, grad = np.empty((9, size)), 0.0, np.zeros(2 * p + 2 + OWN)
    for start in range(0, n, size):
        first, second = factors_of_tile(rows, start, links, point, room)
        loglik += add_single(rows, start, links, point, first, second, room, grad)
    return loglik, grad


@jit
def single_pair(rows: Rows, links: Codes, point: Point) -> tuple[float, Array, float, Array]:
    """`loglik_grad_pair` without false marks: both evaluations share the predictors."""
    n, p = rows.X.shape
    size = tile_rows(p)
    room, here, there = np.empty((9, size)), 0.0, 0.0
    grad, grad_there = np.zeros(2 * p + 2 + OWN), np.zeros(2 * p + 2 + OWN)
    for start in range(0, n, size):
        first, second = factors_of_tile(rows, start, links, point, room)
        here += add_single(rows, start, links, point, first, second, room, grad)
        fill_curve(links.of_class, *second)
        fill_curve(links.of_selection, *first)
        there += add_single(rows, start, links, point, second, first, room, grad_there)
    return here, grad, there, grad_there


# Any number of annotators, and false marks -------------------------------------------------------
# Loops over annotators are outside and loops over rows inside, so that all of them vectorise.


@jit
def make_room(rows: Rows, size: int) -> tuple:
    """Arrays for a tile, per row: of every predictor, of the row alone; and for its annotators."""
    J = rows.labels.shape[0]
    return np.empty((4, J + 1, size)), np.empty((7, size)), np.empty(J, np.intp)


@jit_sums
def multiply_cells(labels: Array, cells: tuple, rates: Array, epsilon: float, sums: tuple) -> None:
    """One annotator's factors: updates A, B, 1 - A and the smallest factor ``least``.

    Once B is not 1 any more, 1 - A becomes NaN.
    """
    (omega, up, down, _), (A, B, short, least) = cells, sums
    gamma, lam, rho = exp_of(rates)
    for i in range(labels.size):
        marked, shown = labels[i] == 1, labels[i] >= 0
        psi, not_psi = gamma + rho * up[i], lam + rho * down[i]
        cell, false = not_psi if shown else 1.0, 1.0 - epsilon if shown else 1.0
        cell, false = psi if marked else cell, epsilon if marked else false
        plain = marked | (shown & (epsilon > 0.0))
        short[i] += math.nan if plain else (A[i] * psi if shown else 0.0)
        A[i] *= cell
        B[i] *= false
        within = cell if abs(omega[i]) <= FAR else 0.0
        least[i] = min(least[i], within)


@jit_sums
def combine_cells(
    known: Array, weight: Array, cells: tuple, class_rates: Array, sums: tuple, out: tuple
) -> int:
    """Number of far rows; fills L and the responsibilities times the weight.

    The last of ``cells`` comes with F' and leaves with the slope in τ. Far rows count as L = 1 with
    slopes of zero, and are marked by a slope in τ of NaN.
    """
    (tau, up, down, d_tau), (A, B, short, least), (value, m, not_m) = cells, sums, out
    base, lost, span = exp_of(class_rates)
    far = 0
    for i in range(known.size):
        negative, positive = known[i] == 0, known[i] == 1
        t, not_t = base + span * up[i], lost + span * down[i]
        if_positive = 0.0 if negative else t * A[i]
        if_negative = 0.0 if positive else not_t * B[i]
        difference = A[i] - B[i] if math.isnan(short[i]) else -short[i]
        difference = A[i] if positive else difference
        difference = -B[i] if negative else difference
        L = if_positive + if_negative
        near = (abs(tau[i]) <= FAR) & (least[i] >= TINY) & (L >= TINY)
        far += 0 if near else 1
        L = L if near else 1.0
        inverse = weight[i] / L if near else 0.0
        value[i] = L
        d_tau[i] = span * d_tau[i] * (difference * inverse) if near else math.nan
        m[i] = if_positive * inverse
        not_m[i] = if_negative * inverse
    return far


@jit_sums
def slopes_of_annotator(
    labels: Array, cells: tuple, rates: Array, epsilon: float, m: Array, not_m: Array
) -> tuple:
    """Sums of the slopes in u, v and e; the last of ``cells`` leaves with the slope in ω."""
    _, up, down, d = cells
    gamma, lam, rho = exp_of(rates)
    sum_u = sum_v = sum_e = 0.0
    for i in range(labels.size):
        marked, shown = labels[i] == 1, labels[i] >= 0
        psi, not_psi = gamma + rho * up[i], lam + rho * down[i]
        sign = -1.0 if shown else 0.0
        sign = 1.0 if marked else sign
        cell = psi if marked else not_psi
        cell = cell if cell >= TINY else 1.0  # a far row, or one that was not shown
        by_psi = sign * m[i] / cell
        d[i] *= by_psi * rho
        sum_u += by_psi * not_psi
        sum_v += by_psi * psi
        miss = -epsilon if shown else 0.0
        sum_e += not_m[i] * (1.0 - epsilon if marked else miss)
    return gamma * sum_u, -lam * sum_v, sum_e if epsilon > 0.0 else 0.0


@jit
def active_annotators(labels: Array, out: Array) -> Array:
    """The annotators who saw any row of a tile."""
    count = 0
    for j in range(labels.shape[0]):
        seen = 0
        for i in range(labels.shape[1]):
            seen |= labels[j, i] >= 0
        if seen:
            out[count] = j
            count += 1
    return out[:count]


@jit_part
def cells_of_tile(
    rows: Rows, start: int, links: Codes, point: Point, weight: Array, space: tuple
) -> tuple:
    """Annotators who have seen any row of a tile, and the number of its far rows.

    Fills z, F, 1 - F and the slope of the class in the cube's last column, z, F, 1 - F and F' of
    the annotators in the others; and for every row A, B, 1 - A, the smallest factor, L, w m and
    w (1 - m).
    """
    cube, room, places = space
    m, J = weight.size, rows.labels.shape[0]
    X = rows.X[start : start + m]
    who = active_annotators(rows.labels[:, start : start + m], places)
    predict(X, point.a, point.b, cube[0, J, :m])
    of_class = (cube[0, J, :m], cube[1, J, :m], cube[2, J, :m], cube[3, J, :m])
    fill_curve(links.of_class, *of_class)
    for k in range(0, who.size - 1, 2):
        i, j = who[k], who[k + 1]
        first, second = point.alpha[i], point.alpha[j]
        predict_two(X, first, point.beta[i], second, point.beta[j], cube[0, i, :m], cube[0, j, :m])
    if who.size % 2 == 1:
        j = who[who.size - 1]
        predict(X, point.alpha[j], point.beta[j], cube[0, j, :m])
    sums = (room[0, :m], room[1, :m], room[2, :m], room[3, :m])
    for i in range(m):
        sums[0][i], sums[1][i], sums[2][i], sums[3][i] = 1.0, 1.0, 0.0, 1.0
    for j in who:
        cells = (cube[0, j, :m], cube[1, j, :m], cube[2, j, :m], cube[3, j, :m])
        fill_curve(links.of_selection, *cells)
        labels = rows.labels[j, start : start + m]
        multiply_cells(labels, cells, point.rates[j], point.epsilon[j], sums)
    out = (room[4, :m], room[5, :m], room[6, :m])
    known = rows.known[start : start + m]
    return who, combine_cells(known, weight, of_class, point.class_rates, sums, out)


@jit_sums
def slopes_of_rows(
    rows: Rows, start: int, links: Codes, point: Point, space: tuple, grad: Array
) -> tuple:
    """Log-likelihood of a tile of rows, and the annotators who have seen any of them.

    Fills the slopes of every row in the predictors, ``cube[3]`` with the class last, and adds
    everything but the slopes of X to ``grad``.
    """
    cube, room, _ = space
    m, width, J = min(cube.shape[2], rows.X.shape[0] - start), rows.X.shape[1] + 1, len(rows.labels)
    weight, value, loglik = rows.weight[start : start + m], room[4, :m], 0.0
    who, far = cells_of_tile(rows, start, links, point, weight, space)
    for i in range(m):
        loglik += weight[i] * log(value[i])
    for j in who:
        labels, own = rows.labels[j, start : start + m], width + j * (width + OWN) + width
        cells = (cube[0, j, :m], cube[1, j, :m], cube[2, j, :m], cube[3, j, :m])
        d_u, d_v, d_e = slopes_of_annotator(
            labels, cells, point.rates[j], point.epsilon[j], room[5, :m], room[6, :m]
        )
        grad[own] += d_u
        grad[own + 1] += d_v
        grad[own + 2] += d_e
    if far > 0:
        z, d_tau, d = (cube[0, J], cube[0, :J]), cube[3, J, :m], cube[3, :J]
        loglik += add_far_rows(rows, start, links, point, z, d_tau, d, grad)
    return loglik, who


@jit
def several_grad(rows: Rows, links: Codes, point: Point) -> tuple[float, Array]:
    """`loglik_grad` for any number of annotators."""
    (n, p), J = rows.X.shape, rows.labels.shape[0]
    size, width = tile_rows(p), p + 1
    space, loglik, grad = make_room(rows, size), 0.0, np.zeros(p + 1 + J * (p + 1 + OWN))
    for start in range(0, n, size):
        X, d = rows.X[start : start + size], space[0][3]
        m = X.shape[0]
        here, who = slopes_of_rows(rows, start, links, point, space, grad)
        loglik += here
        add_columns(X, d[J, :m], grad[:width])
        for k in range(0, who.size - 1, 2):
            i, j = who[k], who[k + 1]
            first, second = width + i * (width + OWN), width + j * (width + OWN)
            add_columns_two(X, d[i, :m], d[j, :m], grad[first:], grad[second:])
        if who.size % 2 == 1:
            j = who[who.size - 1]
            add_columns(X, d[j, :m], grad[width + j * (width + OWN) :])
    return loglik, grad


@jit
def row_slopes(rows: Rows, links: Codes, point: Point) -> tuple[float, Array, Array]:
    """Log-likelihood, its slopes (J + 1, n) in the predictors of every row, and its gradient.

    The class comes last among the slopes; the gradient is in the flat order, without those of X.
    """
    (n, p), J = rows.X.shape, rows.labels.shape[0]
    space, loglik = make_room(rows, tile_rows(p)), 0.0
    grad, out = np.zeros(p + 1 + J * (p + 1 + OWN)), np.zeros((J + 1, n))
    for start in range(0, n, tile_rows(p)):
        here, who = slopes_of_rows(rows, start, links, point, space, grad)
        loglik += here
        for i in range(min(tile_rows(p), n - start)):
            out[J, start + i] = space[0][3, J, i]
            for j in who:
                out[j, start + i] = space[0][3, j, i]
    return loglik, out, grad


@jit
def row_terms(rows: Rows, links: Codes, point: Point) -> tuple[Array, Array]:
    """Log-likelihood of every row (without its weight), and P(y=1 | x, labels)."""
    n, size, J = rows.X.shape[0], tile_rows(rows.X.shape[1]), rows.labels.shape[0]
    space, loglik, positive, ones = make_room(rows, size), np.empty(n), np.empty(n), np.ones(size)
    cube, room, _ = space
    for start in range(0, n, size):
        m = min(size, n - start)
        cells_of_tile(rows, start, links, point, ones[:m], space)
        for i in range(m):
            row = start + i
            loglik[row], positive[row] = log(room[4, i]), room[5, i]
            if math.isnan(cube[3, J, i]):
                labels, tau, omega = rows.labels[:, row], cube[0, J, i], cube[0, :J, i]
                known = rows.known[row]
                loglik[row], _, positive[row] = row_log(labels, known, tau, omega, links, point)
    return loglik, positive


# What is called ----------------------------------------------------------------------------------


@jit_part
def loglik_grad(rows: Rows, links: Codes, point: Point) -> tuple[float, Array]:
    """Log-likelihood and its gradient in the flat order."""
    if rows.labels.shape[0] == 1 and point.epsilon[0] == 0.0:
        return single_grad(rows, links, point)
    return several_grad(rows, links, point)


@jit_part
def loglik_grad_pair(rows: Rows, links: Codes, point: Point) -> tuple[float, Array, float, Array]:
    """`loglik_grad` at θ and at S θ, which swaps (a, b) and (α, β) of the one annotator.

    The second gradient is in the arguments of the second evaluation: its first p entries belong to
    the slopes of its own classifier, which are ``alpha``.
    """
    if point.epsilon[0] == 0.0:
        return single_pair(rows, links, point)
    a, alpha = point.alpha[0], point.a.reshape(1, point.a.size)
    b, beta = point.beta[0], np.full(1, point.b)
    swapped = Point(a, b, point.class_rates, alpha, beta, point.rates, point.epsilon)
    here, grad = several_grad(rows, links, point)
    there, grad_there = several_grad(rows, links, swapped)
    return here, grad, there, grad_there
