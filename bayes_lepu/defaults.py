r"""The priors of a point estimate for which nobody named penalties, chosen on real tables.

.. math:: \min \; -\log L + C_a \lVert a\rVert_2^2 + C_\alpha \lVert\alpha\rVert_1
    + \frac{b^2}{2 \cdot 2.5^2} + \frac{\beta^2}{2}, \qquad
    C_a = 0.3, \quad C_\alpha = 0.5 \sqrt{m},

with m the number of labelled rows. The propensity is constant unless the labels say otherwise: were
it constant, the slope of the log-likelihood in every :math:`\alpha_j` would be noise of standard
deviation :math:`\sqrt{m (1 - c)}` at most, which the penalty absorbs in most columns, while a real
dependence grows with m and passes. The weak priors of the intercepts keep the level of s away from
0 and 1 where the labels do not determine it: without them small tables end at "all positives are
labelled".

Fewer than 50 labelled rows determine neither level nor slopes, and the priors follow the number of
columns as those of a posterior do: a ~ Normal(0, 4/√p), α ~ Normal(0, 1.5/√p), b and β ~ Normal(0,
1.5). Not so where fewer than one row in a hundred is labelled, most likely because the class is
rare: these priors would have both factors share the smallness of h, and π too large.

Beyond 100 columns the class has an L1 penalty too, :math:`C_a = 0.25 \sqrt{m}`: L2
would let each of the many columns carry a little noise, and the sparse factor, meant for s, would
take the class instead. The paper's own penalties are one argument (``C=0.01``). What was tried, and
on which tables, is in ``docs/real-tables.md``.
"""

import math

import numpy as np

from bayes_lepu.data import PUData
from bayes_lepu.links import RowKind
from bayes_lepu.priors import Prior, default_priors, penalty_prior
from bayes_lepu.term_priors import count_terms, terms_of_factors

FEW_LABELS = 50
RARE = 0.01  # share of labelled rows
FEW_CLASS_SCALE = 4.0  # over the root of the number of columns
CLASS_C = 0.3  # weak: nearly separable classes need slopes of 5 and more
SELECTION_C = 0.5  # times the root of the number of labelled rows
MANY_COLUMNS = 100
MANY_CLASS_C = 0.25  # times that root; at 0.5 dense slopes are lost
WIDE_SELECTION_C = 10.0  # L2, with more columns than rows
CLASS_LEVEL_SCALE = 2.5  # a rare class has its intercept far from 0
SELECTION_LEVEL_SCALE = 1.0


def default_penalties(data: PUData) -> dict[str, Prior]:
    """The priors of `fit` with ``method="map"`` and neither ``penalty`` nor ``C``.

    With more columns than rows α has an L2 penalty (C = 10): those fits are done in the row space
    of X, where sums of absolute values are not the same.
    """
    # A row of weight 2 counts as two rows.
    weights = data.kind_weights
    labelled = float(weights[RowKind.LABELLED] + weights[RowKind.FALSE_MARK])
    rows = float(weights.sum())
    root = math.sqrt(max(labelled, 1))
    every = np.ones(data.p, dtype=bool)
    wide, many = data.p > data.n_all, count_terms(data, every) > MANY_COLUMNS
    rates = {
        "c": Prior("beta", concentration=(2, 2)),
        "rates": Prior("dirichlet", concentration=(1, 1, 1)),
    }
    few = RARE * rows < labelled < FEW_LABELS
    if few and not (wide or many):
        columns = terms_of_factors(data)
        slopes = Prior("normal", scale=FEW_CLASS_SCALE / math.sqrt(columns[0]))
        return {**default_priors(*columns), "a": slopes, **rates}
    return {
        "a": penalty_prior("l1", MANY_CLASS_C * root)
        if many and not wide
        else penalty_prior("l2", CLASS_C),
        "alpha": penalty_prior("l2", WIDE_SELECTION_C)
        if wide
        else penalty_prior("l1", SELECTION_C * root),
        "b": Prior("normal", scale=CLASS_LEVEL_SCALE),
        "beta": Prior("normal", scale=SELECTION_LEVEL_SCALE),
        **rates,
    }
