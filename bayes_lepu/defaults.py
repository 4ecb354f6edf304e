r"""The priors of a fit for which nobody named any, chosen on real tables.

.. math:: a_j \sim N(0, A^2/p), \quad b \sim N(0, (0.6 A)^2), \quad
    \alpha_j \sim N(0, S^2/p_s), \quad \beta \sim N(0, 2.5^2), \quad S = \max(S_0, A_m/4)

with A from the labels (`class_scale`), :math:`A_m = \sqrt{m/p}` within [2.5, 10] for m labelled
rows, and :math:`S_0` = 1.2. A point estimate has :math:`S_0` = 0.75, because it may end in a mode
where s has taken the class, which a posterior only counts among others; and
:math:`\beta \sim N(-2, 1.5^2)`, for SCAR :math:`c \sim \mathrm{Beta}(1.3, 3)`, because the mode
lies where more of the positives are labelled than at the posterior's mean.

Beyond 100 columns a point estimate has penalties instead, with m the number of labelled rows,

.. math:: \min \; -\log L + C_a \lVert a\rVert_1 + C_\alpha \lVert\alpha\rVert_1
    + \frac{b^2}{2 \cdot 2.5^2} + \frac{\beta^2}{2}, \qquad
    C_a = 0.25 \sqrt{m}, \quad C_\alpha = 0.5 \sqrt{m}:

L2 would let each of the many columns carry a little noise. A slope of zero has a score of standard
deviation :math:`\sqrt{m (1 - c)}` at most, which the penalty absorbs in most columns, while a real
dependence grows with m and passes. The paper's own penalties are one argument (``C=0.01``). What
was tried, and on which tables, is in ``docs/real-tables.md``.

The slopes of a sparse matrix keep the priors of the posterior however many columns it has:
:math:`N(0, A/\sqrt p)` lets the predictor vary as much as with few columns. On columns of zeros and
ones that is close to the ridge of one that is usual there.
"""

import math

import numpy as np

from bayes_lepu.data import PUData
from bayes_lepu.inference.class_scale import MANY_TERMS, class_scale, labelled, scale_by_count
from bayes_lepu.priors import SELECTION_SCALE, Prior, default_priors, penalty_prior
from bayes_lepu.term_priors import count_terms, terms_of_factors

POINT_SELECTION_SCALE = 0.75
POINT_LEVELS = {  # of the propensity: one positive in eight is labelled, or one in three
    "beta": Prior("normal", loc=-2.0, scale=1.5),
    "c": Prior("beta", concentration=(1.3, 3)),
}
MANY_CLASS_C = 0.25  # times the root of the number of labelled rows; at 0.5 dense slopes are lost
MANY_SELECTION_C = 0.5  # times that root
WIDE_CLASS_C, WIDE_SELECTION_C = 0.3, 10.0  # L2, with more columns than rows
CLASS_LEVEL_SCALE = 2.5  # a rare class has its intercept far from 0
SELECTION_LEVEL_SCALE = 1.0


def posterior_priors(data: PUData, *, smoothness: float = SELECTION_SCALE) -> dict[str, Prior]:
    """The priors of `fit` with ``method="nuts"`` or ``"laplace"``: S_0 is ``smoothness``."""
    return default_priors(
        *terms_of_factors(data),
        class_scale=class_scale(data),
        selection_scale=max(smoothness, scale_by_count(data) / 4),
    )


def default_penalties(data: PUData) -> dict[str, Prior]:
    """The priors of `fit` with ``method="map"`` and neither ``penalty`` nor ``C``.

    With more columns than rows both factors have an L2 penalty: those fits are done in the row
    space of X, where sums of absolute values are not the same.
    """
    wide = data.p > data.n_all
    few = count_terms(data, np.ones(data.p, dtype=bool)) <= MANY_TERMS
    if few and not wide:
        return {**posterior_priors(data, smoothness=POINT_SELECTION_SCALE), **POINT_LEVELS}
    root = math.sqrt(max(labelled(data), 1))
    if data.is_sparse:
        usual = posterior_priors(data, smoothness=POINT_SELECTION_SCALE)
        slopes = usual["a"], usual["alpha"]
    elif wide:
        slopes = penalty_prior("l2", WIDE_CLASS_C), penalty_prior("l2", WIDE_SELECTION_C)
    else:
        sizes = MANY_CLASS_C * root, MANY_SELECTION_C * root
        slopes = penalty_prior("l1", sizes[0]), penalty_prior("l1", sizes[1])
    return {
        "a": slopes[0],
        "alpha": slopes[1],
        "b": Prior("normal", scale=CLASS_LEVEL_SCALE),
        "beta": Prior("normal", scale=SELECTION_LEVEL_SCALE),
        "c": Prior("beta", concentration=(2, 2)),
        "rates": Prior("dirichlet", concentration=(1, 1, 1)),
    }
