r"""How the answer moves with how much the annotator may vary.

.. math:: \alpha_j \sim N(0, S^2/p), \qquad S \in \{0, \dots, 2\}

The labels alone hardly choose S: any second factor fits a real table a little better. So the mode
of the posterior is found again for every S, from the answer at hand; S = 0 is a constant
propensity. Only the prior of α changes.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayes_lepu.actions.missed import positive_given_labels, read_open
from bayes_lepu.defaults import default_priors_of
from bayes_lepu.engines.map import fit_map
from bayes_lepu.engines.pooling import known_scales
from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.links import Array
from bayes_lepu.model import get_model
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.row_sums import row_terms
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import Prior
from bayes_lepu.priors.term_priors import count_terms
from bayes_lepu.verdict.peaks import share_positive

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

SCALES = (0.0, 0.25, 0.5, 1.0, 2.0)  # from a constant s to odds that differ 50-fold over two sd


def sensitivity(fit: "Fit", scales: Sequence[float], first: int) -> pd.DataFrame:
    """One row per S: π, missed positives, the first rows and the fit of the labels."""
    if fit.data.n_annotators > 1:
        raise ModelError(
            "fit.sensitivity() varies how much one annotator may vary, and this fit has "
            f"{fit.data.n_annotators}. What several agree on limits them: see fit.annotators()."
        )
    sizes = np.asarray(scales, dtype=float)
    if sizes.ndim != 1 or not sizes.size or not (np.isfinite(sizes) & (sizes >= 0)).all():
        raise DataError(
            f"scales is {scales!r}; numbers from 0 (s is constant) upwards are expected, such as "
            f"{SCALES}."
        )
    data = fit.data
    rows, (reading, *_) = read_open(fit, both=False)
    weight, probability = data.weight[rows], positive_given_labels(data)
    own = _first(reading.mean, first)
    found, order = [], np.argsort(sizes)
    point: Parameters | None = None
    for size in sizes[order]:
        point = _mode(fit, float(size), point)
        m = probability(point, rows)
        found.append(
            {
                "class_prior": share_positive(point, data),
                "missed": float(weight @ m),
                "same_rows": len(own & _first(m, first)) / max(len(own), 1),
                "log_likelihood": float(data.weight @ row_terms(point, data)[0]),
            }
        )
    table = pd.DataFrame(found, index=pd.Index(sizes[order], name="S"))
    table["behind"] = table["log_likelihood"].max() - table["log_likelihood"]
    return table.drop(columns="log_likelihood")


def _mode(fit: "Fit", size: float, near: Parameters | None) -> Parameters:
    """The mode with slopes of s of this size, next to the answer at hand."""
    varies = fit.spec.has_selection
    spec = fit.spec if varies and size else _annotator(fit.spec, "spm" if size else "scar")
    priors = {**default_priors_of(spec, fit.data), **known_scales(fit.priors)}
    if size:
        scale = size / math.sqrt(count_terms(fit.data, fit.data.selection_mask))
        priors["alpha"] = Prior("normal", scale=scale)
    priors = {name: priors[name] for name in spec.parameters}
    if not size:
        initial = None
    elif varies:
        initial = fit.modes[0].point
    else:
        initial = near if near is not None and near.alpha.any() else None
    rng = np.random.default_rng(fit.options.random_seed)
    return fit_map(spec, fit.data, priors, initial=initial, rng=rng).point


def _annotator(spec: ModelSpec, name: str) -> ModelSpec:
    """The same class and false marks with another annotator."""
    return replace(get_model(name), of_class=spec.of_class, false_marks=spec.false_marks)


def _first(probability: Array, count: int) -> set[int]:
    """The rows that would be reviewed first."""
    return set(np.argsort(-probability, kind="stable")[:count].tolist())
