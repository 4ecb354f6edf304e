r"""A class prior or label frequency known from outside: one more observation of the row formula.

.. math::
    \hat\pi \sim N(\pi(\theta), e), \quad \pi = \sum_i w_i t_i / \sum_i w_i; \qquad
    \hat c \sim N(c(\theta), e), \quad c = \sum_i w_i s_i t_i / \sum_i w_i t_i .

With several annotators c is the mean over them.
"""

from functools import partial

import numpy as np

from bayes_lepu.data.parts import Sums
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.likelihood import Links, Point, Rows, formula, outside_moments, sparse_matrices
from bayes_lepu.links import Array


def known_terms(data: PUData, links: Links, point: Point) -> tuple[float, Array, Array]:
    """Log density and gradient in the full vector of the row formula, and roots of its information.

    The information is R'R, with one row of R for each of the two that is known.
    """
    sums = data.total(partial(_moments, links=links, point=point), population=True, shared=True)
    total, positive, d_positive, marked, d_marked = sums
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


def _moments(rows: Rows, links: Links, point: Point) -> Sums:
    if sparse_matrices.is_sparse(rows.X):
        return formula.outside_moments(rows, links, point)
    return outside_moments(rows, links, point)
