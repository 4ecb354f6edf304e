r"""The row likelihood compiled: value, gradient and responsibilities in one pass over X.

The formulas are those of `bayes_lepu.rows.formula`, which has the same functions in NumPy.
Moderate rows are evaluated in linear space by loops that the compiler vectorises (`single` for one
annotator without false marks, `several` otherwise); rows in the far tails are evaluated again in
log space (`tails`). Nothing uses threads or the GIL, and everything can be called from Python and
from other compiled code. Results add over blocks of rows.
"""

import math

import numpy as np
from numba.extending import overload

from bayes_lepu.factors.arithmetic import jit, jit_sums, log
from bayes_lepu.factors.scalars import same_link
from bayes_lepu.links import Array
from bayes_lepu.rows.arguments import OWN, Links, Point, Rows, Single
from bayes_lepu.rows.several import combine_cells, multiply_cells, slopes_of_annotator
from bayes_lepu.rows.single import slopes_of_tile
from bayes_lepu.rows.tails import cell_log, row_log
from bayes_lepu.rows.tiles import (
    add_columns,
    add_columns_two,
    curve,
    predict,
    predict_two,
    tile_rows,
)


@jit_sums
def weighted_logs(weight: Array, value: Array) -> float:
    """Σ w log L."""
    total = 0.0
    for i in range(value.size):
        total += weight[i] * log(value[i])
    return total


@jit
def check_single(rows: Rows, point: Point) -> None:
    """Refuse what the form for one annotator cannot do."""
    if rows.labels.shape[0] > 1 or point.epsilon[0] > 0.0:
        raise ValueError("The links promise one annotator without false marks.")


@jit
def add_far_row(
    rows: Rows,
    links: Links,
    point: Point,
    row: int,
    i: int,
    tau: Array,
    omega: Array,
    d_tau: Array,
    d: Array,
    grad: Array,
) -> float:
    """Log-likelihood of one row in log space; fills its slopes and adds those in u, v and e."""
    J, p = omega.shape[0], rows.X.shape[1]
    w = rows.weight[row] if rows.weight.size > 0 else 1.0
    labels = rows.labels[:, row]
    value, slope, m = row_log(labels, rows.known[row], tau[i], omega[:, i], links, point)
    d_tau[i] = w * slope
    width = p + 1
    for j in range(J):
        d_omega, d_u, d_v = cell_log(labels[j], omega[j, i], links.of_selection, point.rates[j])
        own = p + 1 + j * (width + OWN) + width
        d[j, i] = w * m * d_omega if m > 0.0 else 0.0
        if m > 0.0:
            grad[own] += w * m * d_u
            grad[own + 1] += w * m * d_v
        if point.epsilon[j] > 0.0 and labels[j] >= 0:
            grad[own + 2] += w * (1.0 - m) * (labels[j] - point.epsilon[j])
    return w * value


@jit
def add_single(
    rows: Rows,
    start: int,
    links: Links,
    point: Point,
    first: tuple,
    second: tuple,
    weight: Array,
    room: Array,
    grad: Array,
) -> float:
    """Log-likelihood of a tile of rows with one annotator; adds its gradient."""
    m, q = weight.size, rows.X.shape[1] + 1
    X = rows.X[start : start + m]
    labels, known = rows.labels[0, start : start + m], rows.known[start : start + m]
    value, d_tau, d_omega = room[6, :m], room[7, :m], room[8, :m]
    loglik, d_u, d_v, far = slopes_of_tile(
        labels, known, weight, first, second, links, point.class_rates, point.rates[0], value,
        d_tau, d_omega,
    )  # fmt: skip
    if rows.weight.size > 0:
        loglik = weighted_logs(weight, value)
    grad[2 * q] += d_u
    grad[2 * q + 1] += d_v
    if far > 0:
        for i in range(m):
            if math.isnan(d_tau[i]):
                tau, omega = first[0], second[0].reshape(1, m)
                d = d_omega.reshape(1, m)
                loglik += add_far_row(rows, links, point, start + i, i, tau, omega, d_tau, d, grad)
    if point.rates[0, 2] > -math.inf:
        add_columns_two(X, d_tau, d_omega, grad[:q], grad[q : 2 * q])
    else:
        add_columns(X, d_tau, grad[:q])
    return loglik


@jit
def factors_of_tile(rows: Rows, start: int, links: Links, point: Point, room: Array) -> tuple:
    """(z, F, 1 - F) of the class and of the one annotator (z = 0 where s does not depend on x)."""
    X = rows.X[start : start + room.shape[1]]
    m = X.shape[0]
    first = (room[0, :m], room[1, :m], room[2, :m])
    second = (room[3, :m], room[4, :m], room[5, :m])
    if point.rates[0, 2] > -math.inf:
        alpha = point.alpha[0]
        predict_two(X, point.a, point.b, alpha, point.beta[0], first[0], second[0])
    else:
        predict(X, point.a, point.b, first[0])
        second[0][:] = 0.0
    curve(links.of_class, first[0], first[1], first[2])
    curve(links.of_selection, second[0], second[1], second[2])
    return first, second


@jit
def active_annotators(labels: Array, out: Array) -> int:
    """Number of annotators who saw any row of a tile; fills who they are."""
    count = 0
    for j in range(labels.shape[0]):
        seen = 0
        for i in range(labels.shape[1]):
            seen |= labels[j, i] >= 0
        if seen:
            out[count] = j
            count += 1
    return count


@jit
def cells_of_tile(
    rows: Rows,
    start: int,
    links: Links,
    point: Point,
    who: Array,
    weight: Array,
    cube: Array,
    room: Array,
) -> int:
    """Number of far rows of a tile of rows that the annotators ``who`` have seen.

    Fills z, F, 1 - F and the slope of the class in ``cube[0:4, J]``, the first three also of the
    annotators, and in ``room`` A, B, 1 - A, the smallest factor, L, w m and w (1 - m).
    """
    m, J = weight.size, rows.labels.shape[0]
    X = rows.X[start : start + m]
    z, up, down = cube[0], cube[1], cube[2]
    predict(X, point.a, point.b, z[J, :m])
    curve(links.of_class, z[J, :m], up[J, :m], down[J, :m])
    for k in range(0, who.size - 1, 2):
        i, j = who[k], who[k + 1]
        first, second = point.alpha[i], point.alpha[j]
        predict_two(X, first, point.beta[i], second, point.beta[j], z[i, :m], z[j, :m])
    if who.size % 2 == 1:
        j = who[who.size - 1]
        predict(X, point.alpha[j], point.beta[j], z[j, :m])
    sums = (room[0, :m], room[1, :m], room[2, :m], room[3, :m])
    for i in range(m):
        sums[0][i], sums[1][i], sums[2][i], sums[3][i] = 1.0, 1.0, 0.0, 1.0
    for j in who:
        curve(links.of_selection, z[j, :m], up[j, :m], down[j, :m])
        labels = rows.labels[j, start : start + m]
        multiply_cells(
            labels, z[j, :m], up[j, :m], down[j, :m], point.rates[j], point.epsilon[j], sums
        )
    return combine_cells(
        rows.known[start : start + m], weight, z[J, :m], up[J, :m], down[J, :m], links,
        point.class_rates, sums, room[4, :m], cube[3, J, :m], room[5, :m],
        room[6, :m],
    )  # fmt: skip


@jit
def slopes_of_rows(
    rows: Rows,
    start: int,
    links: Links,
    point: Point,
    who: Array,
    weight: Array,
    cube: Array,
    room: Array,
    grad: Array,
) -> float:
    """Log-likelihood of a tile of rows with any number of annotators.

    Fills the slopes of every row in the predictors, ``cube[3]`` with the class last, and adds
    everything but the slopes of X to ``grad``.
    """
    m, p, J = weight.size, rows.X.shape[1], rows.labels.shape[0]
    width, d, d_tau = p + 1, cube[3], cube[3, J, :m]
    far = cells_of_tile(rows, start, links, point, who, weight, cube, room)
    loglik = weighted_logs(weight, room[4, :m])
    for j in who:
        labels, own = rows.labels[j, start : start + m], p + 1 + j * (width + OWN) + width
        d_u, d_v, d_e = slopes_of_annotator(
            labels, cube[0, j, :m], cube[1, j, :m], cube[2, j, :m], links, point.rates[j],
            point.epsilon[j], room[5, :m], room[6, :m], d[j, :m],
        )  # fmt: skip
        grad[own] += d_u
        grad[own + 1] += d_v
        grad[own + 2] += d_e
    if far > 0:
        for i in range(m):
            if math.isnan(d_tau[i]):
                omega = cube[0, :J]
                loglik += add_far_row(
                    rows, links, point, start + i, i, cube[0, J], omega, d_tau, d[:J], grad
                )
    return loglik


@jit
def add_several(
    rows: Rows,
    start: int,
    links: Links,
    point: Point,
    who: Array,
    weight: Array,
    cube: Array,
    room: Array,
    slopes: Array,
    grad: Array,
) -> float:
    """Log-likelihood of a tile of rows with any number of annotators; adds its gradient.

    Slopes of X are added to ``slopes`` (J, p + 1), everything else to ``grad``.
    """
    m, p, J = weight.size, rows.X.shape[1], rows.labels.shape[0]
    X, d = rows.X[start : start + m], cube[3]
    loglik = slopes_of_rows(rows, start, links, point, who, weight, cube, room, grad)
    add_columns(X, d[J, :m], grad[: p + 1])
    for k in range(0, who.size - 1, 2):
        i, j = who[k], who[k + 1]
        add_columns_two(X, d[i, :m], d[j, :m], slopes[i], slopes[j])
    if who.size % 2 == 1:
        j = who[who.size - 1]
        add_columns(X, d[j, :m], slopes[j])
    return loglik


@jit
def store_slopes(slopes: Array, grad: Array) -> None:
    """Move the slopes of X and the intercepts into the flat order."""
    J, width = slopes.shape
    for j in range(J):
        at = width + j * (width + OWN)
        for k in range(width):
            grad[at + k] = slopes[j, k]


@jit
def single_grad(rows: Rows, links: Links, point: Point) -> tuple[float, Array]:
    """`loglik_grad` for one annotator without false marks."""
    check_single(rows, point)
    n, p = rows.X.shape
    size = tile_rows(p)
    room, ones = np.empty((9, size)), np.ones(size)
    loglik, grad = 0.0, np.zeros(2 * p + 2 + OWN)
    for start in range(0, n, size):
        stop = min(start + size, n)
        weight = rows.weight[start:stop] if rows.weight.size > 0 else ones[: stop - start]
        first, second = factors_of_tile(rows, start, links, point, room)
        loglik += add_single(rows, start, links, point, first, second, weight, room, grad)
    return loglik, grad


@jit
def several_grad(rows: Rows, links: Links, point: Point) -> tuple[float, Array]:
    """`loglik_grad` for any number of annotators."""
    n, p = rows.X.shape
    J, size = rows.labels.shape[0], tile_rows(p)
    room, ones = np.empty((7, size)), np.ones(size)
    loglik, grad = 0.0, np.zeros(p + 1 + J * (p + 1 + OWN))
    cube, slopes, who = np.empty((4, J + 1, size)), np.zeros((J, p + 1)), np.empty(J, np.intp)
    for start in range(0, n, size):
        stop = min(start + size, n)
        weight = rows.weight[start:stop] if rows.weight.size > 0 else ones[: stop - start]
        count = active_annotators(rows.labels[:, start:stop], who)
        loglik += add_several(
            rows, start, links, point, who[:count], weight, cube, room, slopes, grad
        )
    store_slopes(slopes, grad)
    return loglik, grad


@jit
def row_slopes(rows: Rows, links: Links, point: Point) -> tuple[float, Array, Array]:
    """Log-likelihood, its slopes (J + 1, n) in the predictors of every row, and its gradient.

    The class comes last among the slopes; the gradient is in the flat order, without those of X.
    """
    n, p = rows.X.shape
    J, size = rows.labels.shape[0], tile_rows(p)
    room, ones = np.empty((7, size)), np.ones(size)
    loglik, grad = 0.0, np.zeros(p + 1 + J * (p + 1 + OWN))
    cube, out, who = np.empty((4, J + 1, size)), np.zeros((J + 1, n)), np.empty(J + 1, np.intp)
    for start in range(0, n, size):
        stop = min(start + size, n)
        weight = rows.weight[start:stop] if rows.weight.size > 0 else ones[: stop - start]
        count = active_annotators(rows.labels[:, start:stop], who)
        loglik += slopes_of_rows(rows, start, links, point, who[:count], weight, cube, room, grad)
        who[count] = J
        for j in who[: count + 1]:
            for i in range(stop - start):
                out[j, start + i] = cube[3, j, i]
    return loglik, out, grad


@jit
def single_pair(rows: Rows, links: Links, point: Point) -> tuple[float, Array, float, Array]:
    """`loglik_grad_pair` without false marks: both evaluations share predictors and F."""
    check_single(rows, point)
    n, p = rows.X.shape
    size = tile_rows(p)
    room, ones = np.empty((9, size)), np.ones(size)
    here, grad = 0.0, np.zeros(2 * p + 2 + OWN)
    there, grad_there = 0.0, np.zeros(2 * p + 2 + OWN)
    for start in range(0, n, size):
        stop = min(start + size, n)
        weight = rows.weight[start:stop] if rows.weight.size > 0 else ones[: stop - start]
        first, second = factors_of_tile(rows, start, links, point, room)
        here += add_single(rows, start, links, point, first, second, weight, room, grad)
        if not same_link(links.of_class, links.of_selection):
            curve(links.of_class, second[0], second[1], second[2])
            curve(links.of_selection, first[0], first[1], first[2])
        there += add_single(rows, start, links, point, second, first, weight, room, grad_there)
    return here, grad, there, grad_there


@jit
def several_pair(rows: Rows, links: Links, point: Point) -> tuple[float, Array, float, Array]:
    """`loglik_grad_pair` with false marks."""
    a, alpha = point.alpha[0], point.a.reshape(1, point.a.size)
    b, beta = point.beta[0], np.full(1, point.b)
    exchanged = Point(a, b, point.class_rates, alpha, beta, point.rates, point.epsilon)
    here, grad = several_grad(rows, links, point)
    there, grad_there = several_grad(rows, links, exchanged)
    return here, grad, there, grad_there


def choose_grad(form: tuple, rows: Rows, links: Links, point: Point) -> tuple:
    """`loglik_grad` in the form asked for; for compiled code only."""
    raise NotImplementedError("choose_grad is called from compiled code.")


def choose_pair(form: tuple, rows: Rows, links: Links, point: Point) -> tuple:
    """`loglik_grad_pair` in the form asked for; for compiled code only."""
    raise NotImplementedError("choose_pair is called from compiled code.")


@overload(choose_grad)
def _choose_grad(form, rows, links, point):  # type: ignore[no-untyped-def]
    chosen = single_grad if form.instance_class is Single else several_grad
    return lambda form, rows, links, point: chosen(rows, links, point)


@overload(choose_pair)
def _choose_pair(form, rows, links, point):  # type: ignore[no-untyped-def]
    chosen = single_pair if form.instance_class is Single else several_pair
    return lambda form, rows, links, point: chosen(rows, links, point)


@jit
def loglik_grad(rows: Rows, links: Links, point: Point) -> tuple[float, Array]:
    """Log-likelihood and its gradient in the flat order."""
    return choose_grad(links.form, rows, links, point)


@jit
def loglik_grad_pair(rows: Rows, links: Links, point: Point) -> tuple[float, Array, float, Array]:
    """`loglik_grad` at theta and at S theta, which exchanges (a, b) and (alpha, beta).

    For one annotator. The second gradient is in the arguments of the second evaluation: its first
    p entries belong to the slopes of its own classifier, which are ``alpha``.
    """
    return choose_pair(links.form, rows, links, point)


@jit
def row_terms(rows: Rows, links: Links, point: Point) -> tuple[Array, Array]:
    """Log-likelihood of every row (without its weight), and P(y=1 | x, labels)."""
    n, p = rows.X.shape
    J, size = rows.labels.shape[0], tile_rows(p)
    room, ones, cube = np.empty((7, size)), np.ones(size), np.empty((4, J + 1, size))
    who = np.empty(J, np.intp)
    loglik, positive = np.empty(n), np.empty(n)
    for start in range(0, n, size):
        m = min(size, n - start)
        count = active_annotators(rows.labels[:, start : start + m], who)
        cells_of_tile(rows, start, links, point, who[:count], ones[:m], cube, room)
        for i in range(m):
            loglik[start + i], positive[start + i] = log(room[4, i]), room[5, i]
            if math.isnan(cube[3, J, i]):
                row, labels = start + i, rows.labels[:, start + i]
                loglik[row], _, positive[row] = row_log(
                    labels, rows.known[row], cube[0, J, i], cube[0, :J, i], links, point
                )
    return loglik, positive
