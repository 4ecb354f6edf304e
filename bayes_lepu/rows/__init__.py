r"""The row likelihood of any number of annotators: in NumPy (`formula`), and compiled.

.. math:: L_i = t_i \prod_j \psi_{ij}^{l_{ij}} (1-\psi_{ij})^{1-l_{ij}}
    + (1-t_i) \prod_j \varepsilon_j^{l_{ij}} (1-\varepsilon_j)^{1-l_{ij}}

Every function takes rows, links and a point (`arguments`). `loglik_grad`, `loglik_grad_pair`,
`row_terms` and `outside_moments` are compiled without threads, release the GIL, and can be called
from other compiled code; `sparse_matrices` has the sums over rows that may be sparse.
"""

from bayes_lepu.rows.arguments import (
    CERTAIN_LINK,
    NOT_SHOWN,
    UNKNOWN,
    Links,
    Point,
    Rows,
    by_number,
    flat_order,
    make_links,
    make_point,
    make_rows,
)
from bayes_lepu.rows.evaluation import loglik_grad, loglik_grad_pair, outside_moments, row_terms
from bayes_lepu.rows.sparse_matrices import loglik_grad_info

__all__ = [
    "CERTAIN_LINK",
    "NOT_SHOWN",
    "UNKNOWN",
    "Links",
    "Point",
    "Rows",
    "by_number",
    "flat_order",
    "loglik_grad",
    "loglik_grad_info",
    "loglik_grad_pair",
    "make_links",
    "make_point",
    "make_rows",
    "outside_moments",
    "row_terms",
]
