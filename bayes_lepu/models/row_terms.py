"""The row formula at many draws: log-likelihood and P(y=1 | x, labels) of every row."""

import numpy as np

from bayes_lepu import likelihood
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.likelihood import make_links, make_point, sparse_matrices
from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters


def row_terms(parameters: Parameters, data: PUData) -> tuple[Array, Array]:
    """Log-likelihood of every row (not weighted) and P(y=1 | x, labels), both ``(..., n)``.

    The probability is 1 where a mark is proof, and audited rows keep their class.
    """
    if parameters.kappa is not None:
        given = np.where(np.isnan(data.y), parameters.t(data.X), data.y)
        return parameters.loglik(data.X, data.kind), np.where(data.l == 1, 1.0, given)
    flat, links = parameters.take_flat(), make_links(parameters.link)
    loglik, positive = np.empty((flat.b.size, data.n)), np.empty((flat.b.size, data.n))
    for i in range(flat.b.size):
        q = flat.take(i)
        point = make_point(
            a=q.a,
            b=q.b,
            alpha=q.alpha,
            beta=q.beta,
            rates=q.log_w,
            epsilon=0.0 if q.epsilon is None else q.epsilon,
        )
        rows = data.as_rows
        if data.is_sparse:
            rows, point = sparse_matrices.with_predictors(rows, point)
        loglik[i], positive[i] = likelihood.row_terms(rows, links, point)
    shape = (*parameters.b.shape, data.n)
    return loglik.reshape(shape), positive.reshape(shape)
