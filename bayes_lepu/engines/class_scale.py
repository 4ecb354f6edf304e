r"""How steep the class may be: the scale A of its slopes that the labels support best.

.. math:: \hat A = \arg\max_{A \in \{2.5, 5, \dots, 40\}} \log \int p(l \mid a, b, c)\,
    N(a \mid 0, A^2/p)\, N(b \mid 0, (0.6 A)^2)\, da\, db\, dc

The integral is Laplace's, and the propensity is held constant in it, because with a free one the
labels cannot tell whose slopes are steep. Collinear columns and nearly separable classes take large
slopes, and few labels in many columns small ones; no rule of their numbers alone knows which.
Beside learned columns, which carry the shape, the slopes follow the number of labels.
"""

from dataclasses import replace

import numpy as np

from bayes_lepu.data.labels import ONE
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines.laplace import gaussian_at
from bayes_lepu.engines.pooling import known_scales
from bayes_lepu.engines.search import best_end, constant_starts
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.priors.prior import CLASS_SCALE, weak_priors
from bayes_lepu.priors.term_priors import (
    WIDEST_BY_COUNT,
    count_terms,
    scale_by_count,
    with_blocks,
)

SCALES = (CLASS_SCALE, 5.0, 10.0, 20.0, 40.0)
MANY_TERMS, MANY_ROWS = 100, 20_000  # above which the scale follows the number of labels alone


def class_scale(data: PUData) -> float:
    """The scale A, at least `scale_by_count`; that where labels, rows or columns are many."""
    by_count = scale_by_count(data)
    many_terms = count_terms(data, data.class_mask) > MANY_TERMS
    if by_count == WIDEST_BY_COUNT or many_terms or data.learned is not None:
        return by_count
    rows = data.distinct
    if rows.n_all > MANY_ROWS:
        return by_count
    rows = replace(rows, labels=rows.l[:, None], annotators=ONE, visit_names=())
    rows = rows.columns(rows.class_mask)
    scores, point = [], None
    for scale in SCALES:
        density = _density(rows, scale)
        if point is None:
            point = best_end(density, constant_starts(rows), rough=False)
        found = gaussian_at(density, density.pack(point))
        point = density.unpack(found.mean)
        slopes = density.priors["a"].parts or (density.priors["a"],) * rows.p
        left_out = sum(prior.log_normalizer() for prior in (*slopes, density.priors["b"]))
        scores.append(found.log_evidence + left_out)
    return max(by_count, SCALES[int(np.argmax(scores))])


def _density(data: PUData, scale: float) -> LogDensity:
    """Of the SCAR model with this scale."""
    terms = count_terms(data, data.class_mask)
    base = with_blocks(weak_priors(terms, 1, class_scale=scale), data)
    spec = get_model("scar")
    return LogDensity(spec, data, spec.complete_priors(known_scales(base), None), jacobian=True)
