r"""The row likelihood of any number of annotators: in NumPy (`formula`), and compiled.

.. math:: L_i = t_i \prod_j \psi_{ij}^{l_{ij}} (1-\psi_{ij})^{1-l_{ij}}
    + (1-t_i) \prod_j \varepsilon_j^{l_{ij}} (1-\varepsilon_j)^{1-l_{ij}}

Every function takes rows, links and a point (`arguments`). `loglik_grad`, `loglik_grad_pair`,
`row_terms` and `outside_moments` are compiled without threads, release the GIL, and can be called
from other compiled code; the information matrices are for Python.
"""

from bayes_lepu.links import Array
from bayes_lepu.rows import information, sparse_matrices
from bayes_lepu.rows.arguments import (
    CERTAIN_LINK,
    NOT_SHOWN,
    UNKNOWN,
    FlatOrder,
    Links,
    Point,
    Rows,
    by_number,
    flat_order,
    is_single,
    make_links,
    make_point,
    make_rows,
)
from bayes_lepu.rows.evaluation import loglik_grad, loglik_grad_pair, row_terms
from bayes_lepu.rows.expected import expected_information
from bayes_lepu.rows.moments import outside_moments

__all__ = [
    "CERTAIN_LINK",
    "NOT_SHOWN",
    "UNKNOWN",
    "FlatOrder",
    "Links",
    "Point",
    "Rows",
    "by_number",
    "flat_order",
    "is_single",
    "loglik_grad",
    "loglik_grad_info",
    "loglik_grad_pair",
    "make_links",
    "make_point",
    "make_rows",
    "observed_information",
    "outside_moments",
    "row_terms",
]


def loglik_grad_info(rows: Rows, links: Links, point: Point) -> tuple[float, Array, Array]:
    """Log-likelihood, gradient and an information matrix that is never negative.

    The expected information for one annotator, the complete-data information for several
    (see `information`); compiled for one annotator, once for all links if these are `by_number`.
    """
    if sparse_matrices.is_sparse(rows.X):
        return sparse_matrices.in_dense_blocks(loglik_grad_info, rows, links, point)
    if len(rows.labels) == 1:
        return expected_information(rows, links, point)
    loglik, grad = loglik_grad(rows, links, point)
    return loglik, grad, information.information(rows, links, point)


def observed_information(rows: Rows, links: Links, point: Point) -> Array:
    """Minus the Hessian of the log-likelihood in the flat order."""
    if sparse_matrices.is_sparse(rows.X):
        return sparse_matrices.in_dense_blocks(_observed, rows, links, point)[0]
    return information.observed_information(rows, links, point)


def _observed(rows: Rows, links: Links, point: Point) -> tuple[Array]:
    return (observed_information(rows, links, point),)
