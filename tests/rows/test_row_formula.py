"""The formula of a row that other tests rest on, and the links, against 60-digit arithmetic."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from bayes_lepu.factors import arithmetic
from bayes_lepu.factors.curves import LOGISTIC
from bayes_lepu.links import RowKind
from tools.row_formula import LOG_W_NAIVE, LOG_W_SPM, row_loglik

WEIGHTS = {
    "naive": LOG_W_NAIVE,
    "scar": np.array([math.log(0.3), math.log(0.7), -np.inf]),
    "spm": LOG_W_SPM,
    "psychm": np.log([0.05, 0.1, 0.85]),
}
GRID = (-750.0, -40.0, -3.0, 0.0, 0.7, 36.0, 750.0)


def exact(tau, omega, log_w):
    """t, 1 - t, Psi, 1 - Psi; every sum is of positive terms."""
    weights = [Decimal(w).exp() if w > -math.inf else Decimal(0) for w in map(float, log_w)]
    gamma, lam, rho = weights
    up, down = Decimal(tau).exp(), Decimal(omega).exp()
    t, not_t, s0, not_s0 = up / (1 + up), 1 / (1 + up), down / (1 + down), 1 / (1 + down)
    return t, not_t, gamma + rho * s0, lam + rho * not_s0


def log(value):
    return float(value.ln()) if value > 0 else -math.inf


@pytest.mark.parametrize("model", WEIGHTS)
def test_every_row_kind_in_the_far_tails(model):
    log_w = WEIGHTS[model]
    for tau, omega in itertools.product(GRID, GRID):
        with localcontext(prec=60):
            t, not_t, psi, not_psi = exact(tau, omega, log_w)
            wanted = {
                RowKind.UNLABELLED: log(not_t + t * not_psi),
                RowKind.LABELLED: log(t * psi),
                RowKind.MISSED: log(t * not_psi),
                RowKind.NEGATIVE: log(not_t),
            }
        for kind, value in wanted.items():
            got = float(row_loglik(kind, tau, omega, log_w))
            assert got == pytest.approx(value, rel=1e-12, abs=1e-15), (tau, omega, kind)


def test_the_psychometric_function_is_at_most_one():
    """Rates that add up to one may round to a little more."""
    assert LOGISTIC.mixed_value(750.0, np.log([0.4, 0.1, 0.6 * (1 + 1e-15)])) == 1


def test_exponential_and_logarithm_to_the_last_digits():
    """Above all at the ends of the interval of their series."""
    ends = [2**0.5 * (1 - 1e-9), 0.5**0.5 * (1 + 1e-9)]
    for x in [*ends, 1.001, 0.999, 3.0, 1e-300, 1e300]:
        assert abs(Decimal(arithmetic.log(x)) / Decimal(x).ln() - 1) < 5e-16, x
    for x in [0.3465, -0.3465, 1.0, -40.0, 690.0]:
        assert abs(Decimal(arithmetic.exp(x)) / Decimal(x).exp() - 1) < 5e-16, x
