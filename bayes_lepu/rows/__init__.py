r"""The likelihood of a row with any number of annotators, in NumPy (`formula`) and compiled.

.. math:: L_i = t_i \prod_j \psi_{ij}^{l_{ij}} (1-\psi_{ij})^{1-l_{ij}}
    + (1-t_i) \prod_j \varepsilon_j^{l_{ij}} (1-\varepsilon_j)^{1-l_{ij}}

Every function takes rows, links and a point (`arguments`); X may be sparse. Compiled code has no
threads, releases the GIL, and can be called from other compiled code.
"""

from bayes_lepu.rows.arguments import (
    CERTAIN_LINK,
    NOT_SHOWN,
    UNKNOWN,
    Links,
    Point,
    Rows,
    flat_order,
    make_point,
    make_rows,
)
from bayes_lepu.rows.sparse_matrices import (
    information,
    loglik_grad,
    loglik_grad_info,
    observed_information,
    outside_moments,
    row_slopes,
    row_terms,
)

__all__ = [
    "CERTAIN_LINK",
    "NOT_SHOWN",
    "UNKNOWN",
    "Links",
    "Point",
    "Rows",
    "flat_order",
    "information",
    "loglik_grad",
    "loglik_grad_info",
    "make_point",
    "make_rows",
    "observed_information",
    "outside_moments",
    "row_slopes",
    "row_terms",
]
