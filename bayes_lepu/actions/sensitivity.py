r"""How far the answer depends on the annotator's variation, on the form of t and s, and on columns.

*How much the propensity may vary* (`sensitivity`). With the prior

.. math:: \alpha_j \sim N(0, S^2/p), \qquad S \in \{0, \dots, 2\}

the posterior mode is computed for every S; S = 0 is a constant propensity. The labels alone hardly
identify S: any second factor fits a real table a little better.

*Without any form* (`bound_class_prior`). h = s t can be checked against the labels, and row by row

.. math::
    h \le t \le 1; \qquad
    s \ge s_0 \Rightarrow t \le h / s_0; \qquad
    s \le s_1 \Rightarrow t \ge h / s_1 .

*Columns* (`importance`). With :math:`x^{(j)}` the row with column j of another row,

.. math:: T_j = \frac{\mathrm{E}\,[f(x) - f(x^{(j)})]^2}{2\,\mathrm{Var}\,f(x)}

is 0 for a column without effect and 1 if no other column matters. For independent columns it is
Sobol's total index (Jansen 1999, doi:10.1016/S0010-4655(98)00154-4).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayes_lepu.actions.missed import positive_given_labels, read_open
from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.defaults import count_terms, default_priors_of
from bayes_lepu.engines.map import fit_map
from bayes_lepu.engines.pooling import known_scales
from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.links import Array
from bayes_lepu.model import get_model
from bayes_lepu.model.density import row_terms
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import Prior
from bayes_lepu.result.summaries import tail_probabilities
from bayes_lepu.suggestions import some
from bayes_lepu.verdict.class_prior import share_positive

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

SCALES = (0.0, 0.25, 0.5, 1.0, 2.0)  # from a constant s to odds that differ 50-fold over two sd


def sensitivity(fit: "Fit", scales: Sequence[float], first: int) -> pd.DataFrame:
    """Table with one row per S, the prior sd of the log-odds of s (see `Fit.sensitivity`)."""
    if fit.data.n_annotators > 1:
        raise ModelError(
            "fit.sensitivity() changes how much one annotator may vary, and this fit has "
            f"{fit.data.n_annotators}. Their agreement limits this: see fit.annotators()."
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

    def reviewed(m: Array) -> set[int]:
        return set(np.argsort(-m, kind="stable")[:first].tolist())

    own, found = reviewed(reading.mean), {}
    point: Parameters | None = None
    for size in np.sort(sizes):
        point = _mode(fit, float(size), point)
        m = probability(point, rows)
        found[float(size)] = {
            "class_prior": share_positive(point, data),
            "missed": float(weight @ m),
            "same_rows": len(own & reviewed(m)) / max(len(own), 1),
            "behind": -float(data.weight @ row_terms(point, data)[0]),
        }
    table = pd.DataFrame.from_dict(found, orient="index").rename_axis("S")
    return table.assign(behind=table["behind"] - table["behind"].min())


def _mode(fit: "Fit", size: float, near: Parameters | None) -> Parameters:
    """The posterior mode under the prior of S = ``size``, searched from the mode ``near``."""
    spec, varies = fit.spec, fit.spec.has_selection
    if not (varies and size):
        spec = _annotator(spec, "spm" if size else "scar")
    priors = {**default_priors_of(spec, fit.data), **known_scales(fit.priors)}
    start = fit.modes[0].point if varies else near
    initial = start if size and start is not None and start.alpha.any() else None
    if size:
        scale = size / math.sqrt(count_terms(fit.data, fit.data.selection_mask))
        priors["alpha"] = Prior("normal", scale=scale)
    priors = {name: priors[name] for name in spec.parameters}
    rng = np.random.default_rng(fit.options.random_seed)
    return fit_map(spec, fit.data, priors, initial=initial, rng=rng).point


def _annotator(spec: ModelSpec, name: str) -> ModelSpec:
    """A model with another propensity but the same class and false marks."""
    return replace(get_model(name), of_class=spec.of_class, false_marks=spec.false_marks)


# Without any form -----------------------------------------------------------------------------

MAX_ROWS = 20_000  # a mean of so many has a standard error below a hundredth of their sd
DRAWS = 500  # a quantile of so many has a standard error of a tenth of their sd


def bound_class_prior(
    fit: "Fit",
    *,
    s_min: float | None = None,
    s_max: float | None = None,
    ci_prob: float | None = None,
) -> pd.DataFrame:
    """Table with one line per assumption: bounds of π, and the outer ends of their intervals."""
    if fit.data.n_annotators > 1:
        raise ModelError(
            "Bounds are for one annotator; several of the same rows identify more: see the verdict."
        )
    rows, draws = fit.data.evenly(MAX_ROWS), fit.draws.thin(DRAWS)
    h, weight = draws.h(rows.X), rows.weight
    if draws.epsilon is not None:  # h without the false marks
        false = draws.epsilon[:, None]
        h = np.maximum(h - false, 0.0) / (1 - false)
    assumed = {"nothing": (0.0, 1.0)}
    if s_min is not None or s_max is not None:
        low, high = 0.0 if s_min is None else s_min, 1.0 if s_max is None else s_max
        if not 0 <= low < high <= 1:
            raise ModelError(
                f"s_min = {low:g} and s_max = {high:g}; numbers between 0 and 1 with s_min < s_max "
                "are expected."
            )
        assumed[f"s between {low:g} and {high:g}"] = low, high

    def class_prior(s: float) -> Array:
        t = np.minimum(h / s, 1.0) if s else np.ones_like(h)
        return np.asarray(np.average(t, axis=1, weights=weight))

    tail, lines = tail_probabilities(ci_prob)[0], {}
    for words, (least, most) in assumed.items():
        lower, upper = class_prior(most), class_prior(least)
        lines[words] = {
            "lower": float(np.mean(lower)),
            "upper": float(np.mean(upper)),
            "lowest": np.nan if fit.is_point else float(np.quantile(lower, tail)),
            "highest": np.nan if fit.is_point else float(np.quantile(upper, 1 - tail)),
        }
    return pd.DataFrame.from_dict(lines, orient="index").rename_axis("assumed")


# Columns --------------------------------------------------------------------------------------


def importance(fit: "Fit", features: Sequence[str] | None) -> pd.DataFrame:
    """Importance for t and s, one row per column of the user's table (see `Fit.importance`)."""
    # More than 30 draws hardly change the means of t and s; 2,000 rows suffice to a hundredth.
    data, draws = fit.data, fit.draws.thin(30).average()
    names = list(data.terms) if features is None else list(features)
    if unknown := [name for name in names if name not in data.terms]:
        raise DataError(
            f"Unknown column(s) {unknown} in features; of {some(list(data.terms))} is expected."
        )
    X = data.cells(range(data.p), evenly_spaced(data.n, 2_000))
    order = np.random.default_rng([fit.options.random_seed, 11]).permutation(len(X))

    def factors(rows: Array) -> Array:
        return np.array([draws.t(rows).mean(axis=0), draws.s(rows).mean(axis=0)])

    own, found = factors(X), []
    scale = 2 * own.var(axis=1)
    for name in names:
        places = list(data.terms[name])
        moved = X.copy()
        moved[:, places] = X[order][:, places]
        change = np.mean((factors(data.rated(moved)) - own) ** 2, axis=1)  # with new learned scores
        found.append(np.divide(change, scale, out=np.zeros(2), where=scale > 1e-12))
    table = pd.DataFrame(found, index=pd.Index(names, name="column"), columns=["t", "s"])
    table = table if fit.spec.has_selection else table[["t"]]
    return table.sort_values("t", ascending=False, kind="stable")
