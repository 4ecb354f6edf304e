r"""The default priors of a fit, chosen on real tables.

.. math:: a_j \sim N(0, A^2/p), \quad b \sim t_2(0, r/4), \quad
    \alpha_j \sim N(0, S^2/p_s), \quad \beta \sim N(-2.5, \sigma^2), \quad
    c \sim \mathrm{Beta}(1 + d, 1 + 13 d), \quad
    (\gamma, \lambda, 1 - \gamma - \lambda) \sim \mathrm{Dirichlet}(1, 1, 1 + 13 d), \\
    r = \sqrt{m/p} \text{ within } [2.5, 10], \quad S = \max(r/8, m/40p), \quad
    \sigma = \sqrt{m/p}/2.5 \text{ within } [0.5, 2.5], \quad d = \sigma^{-2} - 2.5^{-2}

for m labelled rows, with A estimated from the labels (`class_scale`). A priori s is smoother than
t, and few of the positives are labelled, because labels hardly distinguish a class that is labelled
often from a larger one that is labelled seldom. The priors become weaker with more labels per
column. The heavy tails of b allow for a rare class. A point estimate is the mode of the same
posterior. With a learned class, whose scores give the shape, A = r, S is at least min(1, m/200),
and :math:`\alpha_j \sim t_4(0, S/\sqrt{p_s})`, since most annotators follow few of the columns; the
learned columns have the priors of `with_blocks`.

Beyond 100 columns a point estimate has penalties instead, with m the number of labelled rows,

.. math:: \min \; -\log L + C_a \lVert a\rVert_1 + C_\alpha \lVert\alpha\rVert_1
    + \frac{b^2}{2 \cdot 2.5^2} + \frac{\beta^2}{2}, \qquad
    C_a = 0.25 \sqrt{m}, \quad C_\alpha = 0.5 \sqrt{m}:

With L2 each of the many columns would fit a little noise. The score of a slope that is zero has a
standard deviation of at most :math:`\sqrt{m (1 - c)}`, so this penalty keeps most such slopes at
zero; the score of a real dependence grows with m and exceeds it. The paper's own penalties need one
argument (``C=0.01``). ``docs/real-tables.md`` compares them on real tables.

The slopes of a sparse matrix of more than 100 columns keep the priors of the posterior, which on
columns of zeros and ones is close to the ridge of one that is usual there. With more than 100
columns, dense or sparse, a mode can separate marked rows from the others, as if every positive were
marked. So the prior of c has the weight of 60 positives, a third of them marked; that of
SCAR also beside ``penalty``, of a sparse matrix:

.. math:: c \sim \mathrm{Beta}(20, 40), \quad
    \beta \sim N(\log \tfrac12,\; 20^{-1} + 40^{-1}), \quad
    (\gamma, \lambda, 1 - \gamma - \lambda) \sim \mathrm{Dirichlet}(1, 1, 41).

``docs/tables.md`` shows its effect on π.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.formulas import is_group
from bayes_lepu.data.labels import ONE
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines.laplace import gaussian_at
from bayes_lepu.engines.pooling import known_scales
from bayes_lepu.engines.search import best_end, constant_starts
from bayes_lepu.links import RowKind
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.spec import SPREAD, ModelSpec
from bayes_lepu.priors.prior import (
    CLASS_SCALE,
    SELECTION_SCALE,
    SLOPES,
    Prior,
    penalty_prior,
    slope_masks,
    weak_priors,
)
from bayes_lepu.rows.sparse_matrices import is_sparse

SCALES = (CLASS_SCALE, 5.0, 10.0, 20.0, 40.0)
MANY_TERMS, MANY_ROWS = 100, 20_000  # above which A follows the number of labels alone
FEW_LABELLED = -2.5  # prior mean of the log-odds of a label: one positive in thirteen
UNLABELLED = 13  # unlabelled positives per labelled one in the pseudo-observations of the priors
FIRMEST, LOOSEST = 0.5, 2.5  # standard deviations of those log-odds
UNIT_ROOT = 2.5  # root of the labels for a column at which that deviation is 1
SMOOTHER = 8  # ratio of the scales of t and s, on real tables with few labels for a column
LABELS_FOR_ONE = 40  # labels for a column at which S is 1, whatever the class
BESIDE_LEARNED = 200  # labels for S = 1 beside a learned class; with fewer, s absorbs the class
# Degrees of freedom of α beside a learned class: one slope among many may be large. On curved
# tuning tables the error of π was .043, and .063 with a normal; with 2, s could absorb the class.
TAILS = 4
NAMED = 1.25  # scale of every slope of s where its columns were named
WIDEST = 2.5  # scale of every slope of s; uninformative on a standardised column
MANY_CLASS_C = 0.25  # times the root of labelled rows, twice for s; at 0.5 dense slopes are lost
WIDE_CLASS_C, WIDE_SELECTION_C = 0.3, 10.0  # L2, with more columns than rows
# Marked and missed positives that the prior of a table of many columns pretends; of those tried
# these came nearest for true c of .3 to .7.
MANY_C = (20, 40)
# On simulated texts a fit promised 20 to 45 of the first 100 rows, where 30 to 80 were positive.
ORDER_ALONE = (
    "How many of them are positive is not computed: with so many sparse columns the order of the "
    "rows is usable, but their probabilities are not."
)
# Of the intercepts with more columns than rows; a rare class has its intercept far from 0.
MANY_CLASS_LEVEL, WIDE_SELECTION_LEVEL = 2.5, 1.0
# Scales s of the half-normal priors: for splines as large as for a column, for groups smaller.
# Those of the propensity are smaller in the same proportion as the slopes' (Assumption 3).
SMOOTH = dict(zip(SLOPES, (CLASS_SCALE, SELECTION_SCALE), strict=True))
WIDEST_BY_COUNT = 10.0  # the likelihood outweighs the prior of so many labels
GROUPS = dict(zip(SLOPES, (1.0, SELECTION_SCALE / CLASS_SCALE), strict=True))


def default_priors(data: PUData) -> dict[str, Prior]:
    """The priors of `fit` without given priors or penalties, for up to `MANY_TERMS` columns."""
    r = scale_by_count(data)
    level = min(max(FIRMEST, root_labels(data) / UNIT_ROOT), LOOSEST)
    pretended = level**-2 - LOOSEST**-2  # labels: none where those of the data can decide
    usual = weak_priors(
        count_terms(data, data.class_mask),
        count_terms(data, data.selection_mask),
        class_scale=class_scale(data),
        selection_scale=selection_scale(data),
    )
    if data.learned is not None:
        usual["alpha"] = Prior("student-t", nu=TAILS, scale=usual["alpha"].known_scale)
    return usual | {
        "b": Prior("student-t", nu=2, scale=r / 4),
        "beta": Prior("normal", loc=FEW_LABELLED, scale=level),
        "c": Prior("beta", concentration=(1 + pretended, 1 + UNLABELLED * pretended)),
        "rates": Prior("dirichlet", concentration=(1, 1, 1 + UNLABELLED * pretended)),
    }


def class_scale(data: PUData) -> float:
    r"""The scale A of the slopes of the class that maximises the marginal likelihood of the labels.

    .. math:: \hat A = \arg\max_{A \in \{2.5, 5, \dots, 40\}} \log \int p(l \mid a, b, c)\,
        N(a \mid 0, A^2/p)\, N(b \mid 0, (0.6 A)^2)\, da\, db\, dc,

    by Laplace's method. The propensity is constant, because otherwise the labels cannot show which
    factor has the steep slopes. A is at least `scale_by_count`, and equal to it with many labels,
    rows or columns and with learned columns.
    """
    by_count = scale_by_count(data)
    many_terms = count_terms(data, data.class_mask) > MANY_TERMS
    if by_count == WIDEST_BY_COUNT or many_terms or data.learned is not None:
        return by_count
    rows = data.distinct
    if rows.n_all > MANY_ROWS or not rows.in_memory:
        return by_count
    rows = replace(rows, labels=rows.l[:, None], annotators=ONE, visit_names=())
    rows = rows.columns(rows.class_mask)
    scores, point = [], None
    spec, terms = get_model("scar"), count_terms(rows, rows.class_mask)
    for scale in SCALES:
        base = known_scales(with_blocks(weak_priors(terms, 1, class_scale=scale), rows))
        density = LogDensity(spec, rows, spec.complete_priors(base, None), jacobian=True)
        if point is None:
            point = best_end(density, constant_starts(rows), rough=False)
        found = gaussian_at(density, density.pack(point))
        point = density.unpack(found.mean)
        slopes = density.priors["a"].parts or (density.priors["a"],) * rows.p
        left_out = sum(prior.log_normalizer() for prior in (*slopes, density.priors["b"]))
        scores.append(found.log_evidence + left_out)
    return max(by_count, SCALES[int(np.argmax(scores))])


def selection_scale(data: PUData) -> float:
    """S: the prior sd of the log-odds of being marked, over the effect of all columns together.

    It grows with the number of labels per column until it is uninformative. It is larger with a
    learned class, of which s can absorb nothing, and if the user gave the columns of s.
    """
    columns = count_terms(data, data.selection_mask)
    scale = max(scale_by_count(data) / SMOOTHER, root_labels(data) ** 2 / LABELS_FOR_ONE)
    if data.learned is not None:
        scale = max(scale, min(1.0, labelled(data) / BESIDE_LEARNED))
    if (data.class_mask & ~data.selection_mask & ~data.is_learned).any():
        scale = max(scale, NAMED * math.sqrt(columns))
    return min(scale, WIDEST * math.sqrt(columns))


def default_penalties(data: PUData) -> dict[str, Prior]:
    """The priors of `fit` with ``method="map"`` and neither ``penalty`` nor ``C``.

    With more columns than rows both factors have an L2 penalty: these fits work in the row space of
    X, which does not preserve an L1 norm.
    """
    wide, many = data.p > data.n_all, has_many_columns(data)
    if data.is_sparse or not (many or wide):
        return default_priors(data) | (levels_of_many() if many else {})
    if wide:
        slopes = penalty_prior("l2", WIDE_CLASS_C), penalty_prior("l2", WIDE_SELECTION_C)
    else:
        size = MANY_CLASS_C * math.sqrt(max(labelled(data), 1))
        slopes = penalty_prior("l1", size), penalty_prior("l1", 2 * size)
    few_rows = {
        "b": Prior("normal", scale=MANY_CLASS_LEVEL),
        "beta": Prior("normal", scale=WIDE_SELECTION_LEVEL),
        "c": Prior("beta", concentration=(2, 2)),
        "rates": Prior("dirichlet", concentration=(1, 1, 1)),
    }
    levels = levels_of_many() if many else few_rows
    return {"a": slopes[0], "alpha": slopes[1], **levels}


def has_many_columns(data: PUData) -> bool:
    """Whether the columns are so many that they can separate the marked rows from the others."""
    return count_terms(data, np.ones(data.p, dtype=bool)) > MANY_TERMS


def orders_alone(X: Any, data: PUData) -> bool:
    """Whether the fit can order rows but not count positives, as with many sparse columns."""
    return is_sparse(X) and has_many_columns(data)


def sparse_size(data: PUData) -> float:
    """C of a sparse matrix where a penalty comes without: `MANY_CLASS_C`, twice, in its units."""
    spread = float(np.sqrt(np.mean(data.column_moments[1] ** 2)))
    return 2 * MANY_CLASS_C * math.sqrt(max(labelled(data), 1)) * spread


def levels_of_many() -> dict[str, Prior]:
    """Priors of intercepts, c and rates with many columns, whatever the penalty."""
    (marked, missed), scale = MANY_C, math.sqrt(sum(1 / k for k in MANY_C))
    return {
        "b": Prior("normal", scale=MANY_CLASS_LEVEL),
        "beta": Prior("normal", loc=math.log(marked / missed), scale=scale),
        "c": Prior("beta", concentration=MANY_C),
        "rates": Prior("dirichlet", concentration=(1, 1, 1 + missed)),
    }


def default_priors_of(spec: ModelSpec, data: PUData) -> dict[str, Prior]:
    """The default priors of a point estimate of this model."""
    base = for_annotators(with_blocks(default_penalties(data), data), data)
    return known_scales(spec.complete_priors(base, None, data), hierarchical=False)


def for_annotators(priors: dict[str, Prior], data: PUData) -> dict[str, Prior]:
    """Add priors of the annotators' differences: about one in the log-odds of a row."""
    columns = max(int(data.selection_mask.sum()), 1)
    return priors | {
        "sigma_alpha": Prior("halfnormal", scale=SPREAD / math.sqrt(columns)),
        "sigma_beta": Prior("halfnormal", scale=SPREAD),
    }


def count_terms(data: PUData, mask: NDArray[np.bool_]) -> int:
    """Number of terms of a factor: a smooth or group term counts once, learned columns do not."""
    mask = mask & ~data.is_learned
    inside = [places for places in data.blocks.values() if mask[list(places)].any()]
    extra = sum(int(mask[list(places)].sum()) - 1 for places in inside)
    return max(int(mask.sum()) - extra, 1)


def labelled(data: PUData) -> float:
    """Number of labelled rows, counted by weight."""
    return float(data.kind_weights[RowKind.LABELLED] + data.kind_weights[RowKind.FALSE_MARK])


def root_labels(data: PUData) -> float:
    """The root of the number of labelled rows per column."""
    return math.sqrt(labelled(data) / count_terms(data, data.class_mask))


def scale_by_count(data: PUData) -> float:
    """A scale A from the number of labels alone: `root_labels`, limited to [2.5, 10]."""
    return min(max(CLASS_SCALE, root_labels(data)), WIDEST_BY_COUNT)


def with_blocks(base: Mapping[str, Prior], data: PUData) -> dict[str, Prior]:
    r"""The priors, extended to smooth terms, group intercepts and learned columns.

    .. math:: a_k \sim N(0, \sigma_g^2), \qquad \sigma_g \sim N^+(0, s^2)

    for the columns k of a term g such as ``bs(amount, df=5)`` or ``(1 | merchant)``, which are
    centred and not divided by their standard deviations: σ is the spread of the group intercepts,
    or of the spline's coefficients, in log-odds, and a rare group is pooled more than a frequent
    one. The weights of learned columns add up to one where their scores are exact and s is
    constant, so each of K has the prior N(u, (u r/10)²) with u = 1/K, in units of its log-odds.
    With a prior around 0, the fit could subtract a score that was made without a row from the other
    columns' prediction, which was made with it, and so recover the row's own label.
    """
    out = dict(base)
    if not data.blocks and data.learned is None:
        return out
    for name, mask in slope_masks(data).items():
        parts = [base[name]] * data.p
        for score in np.flatnonzero(data.is_learned):
            unit = float(data.scale[score])
            share = unit / int(data.is_learned.sum())
            parts[score] = Prior("normal", loc=share, scale=unit * scale_by_count(data) / 10)
        for term, places in data.blocks.items():
            scale = (GROUPS if is_group(term) else SMOOTH)[name]
            own = Prior("normal", scale=Prior("halfnormal", scale=scale), block=term)
            for place in places:
                parts[place] = own
        mine = [part for part, used in zip(parts, mask, strict=True) if used]
        if any(part is not base[name] for part in mine):
            out[name] = Prior("columns", parts=tuple(mine))
    return out
