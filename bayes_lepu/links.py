r"""The two factors of the labelling probability, and the kinds of rows.

.. math::
    h(x) = P(l=1 \mid x) = \Psi(\omega)\, t(\tau), \qquad
    t = \sigma(\tau), \quad \tau = a \cdot x + b, \quad \omega = \alpha \cdot x + \beta,

    \Psi = \gamma + (1 - \gamma - \lambda)\,\sigma(\omega).

Every model of the library is a choice of the weights :math:`(\gamma, \lambda, \rho)`,
:math:`\rho = 1 - \gamma - \lambda`, which are always handled as logarithms ``log_w``:

======  ======================  =========================
model   weights                 ``log_w``
======  ======================  =========================
naive   (1, 0, 0)               (0, -inf, -inf)
scar    (c, 1 - c, 0)           (log c, log(1 - c), -inf)
spm     (0, 0, 1)               (-inf, -inf, 0)
psychm  (gamma, lambda, rho)    all finite
======  ======================  =========================
"""

from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

Array = NDArray[np.float64]


class RowKind(IntEnum):
    """What is known about a row.

    A labelled row is positive (no false positives); an audited row has a known class.
    """

    UNLABELLED = 0  # l=0, class unknown:          1 - s t
    LABELLED = 1  # l=1, hence y=1:                s t
    MISSED = 2  # l=0, audited as y=1:             (1 - s) t
    NEGATIVE = 3  # l=0, audited as y=0:           1 - t
    FALSE_MARK = 4  # l=1, audited as y=0:         ε (1 - t), with false marks only


def row_kinds(l: NDArray[np.int8], y: Array) -> NDArray[np.int8]:
    """`RowKind` of rows, from whether they are marked and what is known of their class."""
    kind = l.copy()
    kind[(l == 0) & (y == 1)] = RowKind.MISSED
    kind[(l == 0) & (y == 0)] = RowKind.NEGATIVE
    kind[(l == 1) & (y == 0)] = RowKind.FALSE_MARK
    return kind


def sigmoid(z: ArrayLike) -> Array:
    """Logistic function 1 / (1 + exp(-z))."""
    return np.asarray(expit(z), dtype=float)
