r"""Do the labels look as the model says: rates by score, calibration, leave-one-out PIT.

These checks see h only. A model can pass all of them and still leave t and s wide open; one that
fails here has the wrong h, and nothing built on it can be trusted.
"""

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression
from scipy.special import kolmogorov

from bayes_lepu.diagnostics.constancy import loo_weights, row_logliks, some_draws
from bayes_lepu.diagnostics.records import Check
from bayes_lepu.diagnostics.subject import Subject
from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.result import FittedModel
from bayes_lepu.result.summaries import mean_by_row

BINS = 10
SIMULATIONS = 200
MAX_ROWS = 20_000


def label_rates(fit: FittedModel, *, bins: int = BINS) -> pd.DataFrame:
    """Observed and expected label rate by bin of the score h, with the standard score."""
    h, l = _scores(fit)
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


def calibration_curve(fit: FittedModel) -> pd.DataFrame:
    """Calibrated label rate (isotonic regression, PAV) over the score h, one row per data row."""
    h, l = _scores(fit)
    order = np.argsort(h, kind="stable")
    curve = isotonic_regression(l[order]).x
    return pd.DataFrame({"score": h[order], "rate": curve})


def loo_pit(fit: FittedModel) -> Array:
    """Randomised leave-one-out PIT of the labels; uniform under the model."""
    subject = Subject(fit)
    draws = some_draws(subject)
    X, kind, l = fit.data.X, fit.data.kind, fit.data.l
    keep = np.arange(0, len(X), max(1, -(-len(X) // MAX_ROWS)))
    loglik = row_logliks(draws, X[keep], kind[keep])
    h = np.einsum("dn,dn->n", loo_weights(loglik), draws.h(X[keep]))
    u = np.random.default_rng(int(fit.settings["random_seed"])).random(keep.size)
    return np.where(l[keep] == 1, 1 - h + u * h, u * (1 - h))


def check_predictive(subject: Subject) -> list[Check]:
    """Label rates by score, calibration, and leave-one-out PIT."""
    checks = [_rates(subject), _calibration(subject)]
    if not subject.fit.is_point:
        checks.append(_pit(subject))
    return checks


def _rates(subject: Subject) -> Check:
    table = label_rates(subject.fit)
    worst = table["z"].abs().idxmax()
    z = float(table.loc[worst, "z"])
    good = abs(z) <= 3.0
    return Check(
        "label rate by score",
        "passed" if good else "failed",
        abs(z),
        f"at most 3 standard errors in each of {BINS} bins",
        f"Largest deviation in bin {worst}: {table.loc[worst, 'observed']:.3f} observed, "
        f"{table.loc[worst, 'expected']:.3f} expected ({z:+.1f} se).",
        "" if good else "The form of h is wrong: add transformed columns, or another model.",
    )


def _calibration(subject: Subject) -> Check:
    """Miscalibration of the Brier score against its distribution under the model."""
    h, l = _scores(subject.fit)
    order = np.argsort(h, kind="stable")
    h, l = h[order], l[order]
    observed = _miscalibration(h, l)
    rng = np.random.default_rng(0)
    simulated = [
        _miscalibration(h, (rng.random(h.size) < h).astype(float)) for _ in range(SIMULATIONS)
    ]
    p_value = (1 + sum(s >= observed for s in simulated)) / (1 + SIMULATIONS)
    good = p_value >= 0.01
    return Check(
        "calibration",
        "passed" if good else "failed",
        p_value,
        "p at least 0.01",
        f"Recalibrating h (isotonic regression) would improve its Brier score by {observed:.4f}; "
        f"by chance alone as much with p = {p_value:.3f}.",
        "" if good else "h is miscalibrated: add transformed columns, or another model.",
    )


def _pit(subject: Subject) -> Check:
    pit = np.sort(loo_pit(subject.fit))
    n = pit.size
    steps = np.arange(n)
    distance = float(np.max(np.maximum((steps + 1) / n - pit, pit - steps / n)))
    p_value = float(kolmogorov(np.sqrt(n) * distance))
    good = p_value >= 0.01
    return Check(
        "LOO-PIT",
        "passed" if good else "failed",
        p_value,
        "p at least 0.01",
        "Rows predicted without themselves: the labels' distribution is off by at most "
        f"{distance:.3f} (Kolmogorov distance of the PIT from uniform, p = {p_value:.2f}).",
        "" if good else "The labels are not predicted as the model says; see calibration.",
    )


def _miscalibration(h: Array, l: Array) -> float:
    curve = isotonic_regression(l).x
    return float(np.mean((l - h) ** 2) - np.mean((l - curve) ** 2))


def _scores(fit: FittedModel) -> tuple[Array, Array]:
    X, l = fit.data.X, fit.data.l
    keep = slice(None, None, max(1, -(-len(X) // MAX_ROWS)))
    flat = fit.draws
    some = flat.take(slice(None, None, max(1, flat.b.size // 500)))
    return mean_by_row(some, Parameters.h, X[keep]), l[keep].astype(float)
