"""Simulation-based calibration of the posteriors (long; `make test-all`)."""

import pytest

from tests.sbc import outside_band, ranks

REPLICATIONS = 200
CASES = [("scar", False), ("spm", True), ("spm", False), ("psychm", False)]  # model, masked


@pytest.mark.slow
@pytest.mark.parametrize(("model", "mask"), CASES)
def test_ranks_of_the_truth_are_uniform(model, mask):
    results = [r for seed in range(REPLICATIONS) if (r := ranks(model, seed, mask=mask))]
    assert len(results) > 0.9 * REPLICATIONS
    for name in results[0]:
        values = [r[name] for r in results]
        print(model, name, "bins outside the 99 % band:", outside_band(values))
        assert outside_band(values) == 0, name


def test_the_band_notices_a_posterior_that_is_too_narrow():
    """U-shaped ranks, as overconfident posteriors give, fall outside the band."""
    u_shaped = [0, 49] * 40 + list(range(50)) * 2
    assert outside_band(u_shaped) > 0
    assert outside_band(list(range(50)) * 4) == 0
