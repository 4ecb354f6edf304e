r"""Do the labels look as the model says: rates by score, and calibration.

These checks see h only. A model can pass all of them and still leave t and s wide open; one that
fails here has the wrong h, and nothing built on it can be trusted.

A leave-one-out PIT is not among them: for 0/1 labels it is uniform by construction up to the mean
of h in every bin it sees (it rejected 4 to 14 % of wrong models where the bins rejected all).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.links import Array
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.result.numbers_in_words import share
from bayes_lepu.result.summaries import mean_by_row
from bayes_lepu.verdict.records import Aspect, Check, passed_if

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit
    from bayes_lepu.verdict.evidence import Evidence

BINS = 10
SIMULATIONS = 200
GRID = 101
MAX_ROWS = 20_000
DRAWS = 500
MAX_Z = 3.0
WRONG_H = "the labels do not follow the fitted h"


@dataclass(frozen=True, eq=False)
class LabelCalibration:
    """Isotonic regression (PAV) of the labels on the score h, and what chance would make of it.

    Attributes
    ----------
    score, rate : array
        Score of the rows, rising, and the calibrated label rate at each.
    grid : array
        Quantiles of the score.
    replicates : (200, grid) array
        The same curve for labels simulated from h (Dimitriadis, Gneiting and Jordan 2021,
        doi:10.1073/pnas.2016191118).
    gain : float
        By how much recalibration would improve the Brier score.
    p_value : float
        Share of simulated sets of labels with as large a gain.
    """

    score: Array
    rate: Array
    grid: Array
    replicates: Array
    gain: float
    p_value: float


def label_rates(h: Array, l: Array, *, bins: int = BINS) -> pd.DataFrame:
    """Observed and expected label rate by bin of the score h, with the standard score."""
    bins = min(bins, h.size)
    bin_of = np.minimum((np.argsort(np.argsort(h)) * bins) // h.size, bins - 1)
    count = np.bincount(bin_of, minlength=bins)
    expected, observed = (np.bincount(bin_of, v, minlength=bins) / count for v in (h, l))
    sd = np.sqrt(np.bincount(bin_of, h * (1 - h), minlength=bins)) / count
    return pd.DataFrame(
        {
            "rows": count,
            "expected": expected,
            "observed": observed,
            "z": (observed - expected) / np.maximum(sd, 1e-12),
        }
    ).rename_axis("bin")


def calibrate_labels(h: Array, l: Array, seed: int) -> LabelCalibration:
    """The calibration of h, with labels simulated from it."""
    order = np.argsort(h, kind="stable")
    h, l = h[order], l[order]
    rate = isotonic_regression(l).x
    gain = _gain(h, l, rate)
    rng = np.random.default_rng([seed, 6])
    grid = np.quantile(h, np.linspace(0, 1, GRID))
    replicates, as_large = np.empty((SIMULATIONS, GRID)), 0
    for i in range(SIMULATIONS):
        labels = (rng.random(h.size) < h).astype(float)
        curve = isotonic_regression(labels).x
        replicates[i] = np.interp(grid, h, curve)
        as_large += _gain(h, labels, curve) >= gain
    return LabelCalibration(h, rate, grid, replicates, gain, (1 + as_large) / (1 + SIMULATIONS))


def check_rates(evidence: "Evidence") -> list[Check]:
    """Label rates by bin of the score."""
    table = evidence.form_rates
    if table is None:
        return [_rates_for_any_reason(evidence.label_rates)]
    worst = table["z"].abs().idxmax()
    z = float(table.loc[worst, "z"])
    return [
        passed_if(
            abs(z) <= MAX_Z,
            "label rate by score",
            abs(z),
            f"at most {MAX_Z:.0f} standard errors in each of {len(table)} bins",
            f"Largest deviation in bin {worst}: {share(table.loc[worst, 'observed'], 3)} observed, "
            f"{share(table.loc[worst, 'expected'], 3)} expected ({z:+.1f} se).",
            "The form of h is wrong: add transformed columns, or another model.",
            bears_on=(Aspect.LABELS,),
            needs="passed",
            consequence=WRONG_H,
        )
    ]


def _rates_for_any_reason(table: pd.DataFrame) -> Check:
    """How far h is from the labels where what its form can reach was not computed."""
    z = float(table["z"].abs().max())
    far = z > MAX_Z
    return passed_if(
        not far,
        "label rate by score",
        z,
        f"at most {MAX_Z:.0f} standard errors in each bin",
        f"h is {z:.1f} standard errors off the labels in one bin of its score: the penalties pull "
        "it, or its form is wrong (which of them was not computed)."
        if far
        else "The label rates follow the fitted h.",
        "Try weaker penalties (C=) and compare predictions of held-out labels.",
        otherwise="weak",
    )


def check_calibration(evidence: "Evidence") -> list[Check]:
    """Miscalibration of the Brier score against its distribution under the model."""
    found = evidence.form_calibration
    if found is None:
        return []
    return [
        passed_if(
            found.p_value >= 0.01,
            "calibration",
            found.p_value,
            "p at least 0.01",
            f"Recalibrating h (isotonic regression) would improve its Brier score by "
            f"{found.gain:.4f}; by chance alone as much with p = {found.p_value:.3f}.",
            "h is miscalibrated: add transformed columns, or another model.",
            bears_on=(Aspect.LABELS,),
            needs="passed",
            consequence=WRONG_H,
        )
    ]


def _gain(h: Array, l: Array, curve: Array) -> float:
    return float(np.mean((l - h) ** 2) - np.mean((l - curve) ** 2))


def scores(fit: "Fit") -> tuple[Array, Array]:
    """Fitted label probability and label of the rows."""
    flat = fit.draws
    return _scores(flat.take(slice(None, None, max(1, flat.b.size // DRAWS))), fit.data)


def form_scores(evidence: "Evidence") -> tuple[Array, Array]:
    """The same of what the model's form can reach: a point estimate without its penalties."""
    return _scores(evidence.peaks[0].point.take_flat(), evidence.weak.data)


def _scores(some: Parameters, data: PUData) -> tuple[Array, Array]:
    """Label probability and label of the rows; of several annotators, of one shown per row.

    The labels of one row are not independent given x (they share its class), and what they are
    held against is.
    """
    data = data.as_counted(MAX_ROWS)
    X, labels = data.X, data.labels
    if data.n_annotators == 1:
        return mean_by_row(some, Parameters.h, X), labels[:, 0].astype(float)

    def of(j: int) -> Array:
        return mean_by_row(some, lambda draws, rows: draws.h(rows)[..., j, :], X)

    h, shown = np.column_stack([of(j) for j in range(labels.shape[1])]), data.shown
    rng = np.random.default_rng(0)
    chosen = np.argmax(shown * rng.random(shown.shape), axis=1)[:, None]
    pick = [np.take_along_axis(v, chosen, axis=1)[:, 0] for v in (h, labels.astype(float))]
    seen = shown.any(axis=1)
    return pick[0][seen], pick[1][seen]
