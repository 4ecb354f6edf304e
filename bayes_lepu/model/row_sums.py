"""What is known from outside, and the rows one by one, at points of parameter space."""

from functools import partial

import numpy as np

from bayes_lepu import rows as row_functions
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.links import Array
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.rows import Links, Point, outside_moments


def known_terms(data: PUData, links: Links, point: Point) -> tuple[float, Array, Array]:
    r"""A class prior or label frequency known from outside, as one more observation.

    .. math::
        \hat\pi \sim N(\pi(\theta), e), \quad \pi = \sum_i w_i t_i / \sum_i w_i; \qquad
        \hat c \sim N(c(\theta), e), \quad c = \sum_i w_i s_i t_i / \sum_i w_i t_i .

    With several annotators c is the mean over them. Log density and gradient in the full vector of
    the row formula, and roots R of its information R'R, one for each of the two that is known.
    """
    sums = data.total(partial(outside_moments, links=links, point=point))
    total, positive, d_positive, marked, d_marked = sums
    positive = max(float(positive), np.finfo(float).tiny)  # of a class that no row has
    c = float(marked.mean()) / positive
    figures = (positive / total, c)
    slopes = (d_positive / total, (d_marked.mean(axis=0) - c * d_positive) / positive)
    value, grad, roots = 0.0, np.zeros_like(d_positive), []
    for figure, slope, (known, error) in zip(figures, slopes, data.outside, strict=True):
        if not np.isnan(known):
            residual = (known - figure) / error
            value -= 0.5 * residual**2
            grad += residual / error * slope
            roots.append(slope / error)
    return value, grad, np.array(roots)


def row_terms(parameters: Parameters, data: PUData) -> tuple[Array, Array]:
    """Log-likelihood of every row (not weighted) and P(y=1 | x, labels), both ``(..., n)``.

    The probability is 1 where a mark is proof, and audited rows keep their class.
    """
    flat, links = parameters.take_flat(), Links(parameters.link, parameters.of_class.link)
    loglik, positive = np.empty((flat.b.size, data.n)), np.empty((flat.b.size, data.n))
    for i in range(flat.b.size):
        point = flat.take(i).point
        loglik[i], positive[i] = row_functions.row_terms(data.as_rows, links, point)
    shape = (*parameters.b.shape, data.n)
    return loglik.reshape(shape), positive.reshape(shape)
