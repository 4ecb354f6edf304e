"""Simulation-based calibration of the posteriors (long; `make test-all`)."""

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.calibration import outside_band

REPLICATIONS = 200
FALSE_ALARM = 0.01  # probability over all cases together
CASES = {
    "scar": {"model": "scar"},
    "spm, masked": {"model": "spm", "selection_features": [0]},
    "spm": {"model": "spm"},
    "psychm": {"model": "psychm"},
    "spm, Student t": {"model": "spm", "priors": {"a": lepu.Prior("student-t", scale=1.5, nu=4)}},
    "panel, scar": {"model": "scar", "shown": True},
    "panel, spm": {"model": "spm", "shown": True},
    "panel, psychm": {"model": "psychm", "shown": True},
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_ranks_of_the_truth_are_uniform(case):
    rng = np.random.default_rng(99)
    options = dict(CASES[case])
    X = rng.standard_normal((200, 2))
    if options.pop("shown", False):
        options["shown"] = rng.random((200, 3)) < 0.7
    found = lepu.calibrate(
        X, replications=REPLICATIONS, random_seed=1, progressbar=False, **options
    )
    print(case, found, found.to_frame().to_string(), sep="\n")
    assert len(found.ranks) > 0.5 * REPLICATIONS
    band = 1 - FALSE_ALARM / (len(CASES) * found.ranks.shape[1])
    assert [name for name in found.ranks if outside_band(found.ranks[name].to_numpy(), band)] == []
