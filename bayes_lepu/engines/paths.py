r"""Penalty paths: the optimum at every pair of coefficients (C_α, C_a), each from its neighbours.

Paths run from weak to strong penalty: the search for modes happens once, at the weakest pair, and
every other pair is climbed from its two weaker neighbours, from these with their factors exchanged
(unequal penalties decide which factor bears which), and from SCAR, the limit of a large C_α. (From
strong to weak more than half of the paths end at worse optima: strong penalties merge the modes.)

In SPM with the same kind of penalty, the same columns and no audited rows, exchanging the factors
exchanges the coefficients: the optimum at (C_a, C_α) is the swapped optimum at (C_α, C_a), with the
same h. Half of the grid is then enough, and no score of h can tell the two apart.

Where a rule names the factors and contradicts the optimum, because the penalties shrank the wrong
one, the path answers with the optimum reached after exchanging them, as `fit_map` does. (In the
mirrored half of the grid it does so for the pair that is copied.)
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines import orientation
from bayes_lepu.engines.map import fit_map
from bayes_lepu.engines.modes import is_exchangeable
from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.engines.search import constant_starts, constant_version, near_scar
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import Prior, Priors, penalty_priors

Score = Callable[[NDArray[np.int8], Array], float]
PAIR_STARTS, RATES_STARTS = 8, 14


@dataclass(frozen=True, eq=False)
class PenaltyGrid:
    """The coefficients to try.

    Attributes
    ----------
    C_alpha, C_a : arrays
        Ascending, without repetition.
    penalty_alpha, penalty_a : {"l2", "l1", "none"}
    others : mapping of str to Prior, optional
        Priors of other parameters, the same for every pair.
    """

    C_alpha: Array
    C_a: Array
    penalty_alpha: str = "l2"
    penalty_a: str = "l2"
    others: Priors | None = None

    def __post_init__(self) -> None:
        for name in ("C_alpha", "C_a"):
            values = getattr(self, name)
            if values.ndim != 1 or values.size == 0 or np.any(np.diff(values) <= 0):
                raise ModelError(f"{name} = {values}; an ascending list of numbers is expected.")

    @property
    def shape(self) -> tuple[int, int]:
        """Number of values of C_α and of C_a."""
        return self.C_alpha.size, self.C_a.size

    @property
    def exchangeable(self) -> bool:
        """Whether both factors meet the same penalties."""
        return self.penalty_a == self.penalty_alpha and np.array_equal(self.C_alpha, self.C_a)

    def priors(self, spec: ModelSpec, i: int, j: int) -> dict[str, Prior]:
        """Priors of the pair (C_α[i], C_a[j])."""
        base = penalty_priors(
            {"a": self.penalty_a, "alpha": self.penalty_alpha},
            {"a": float(self.C_a[j]), "alpha": float(self.C_alpha[i])},
        )
        return spec.complete_priors(base, self.others)


def score_path(
    spec: ModelSpec,
    train: PUData,
    X_test: Array,
    l_test: NDArray[np.int8],
    grid: PenaltyGrid,
    *,
    score: Score,
    rule: str = "none",
    rng: np.random.Generator,
) -> Array:
    """Score of h(x) on held-out rows for every pair, shape (C_α, C_a).

    Parameters
    ----------
    X_test : (m, p) array
        Held-out rows on the internal scale of ``train``.
    score : callable
        ``score(l, h)``.
    rule : str
        The orientation rule of the final fit.
    """
    points = fit_path(spec, train, grid, rule=rule, rng=rng)
    scores = np.empty(grid.shape)
    for (i, j), point in points.items():
        scores[i, j] = score(l_test, point.h(X_test))
    return scores


def fit_path(
    spec: ModelSpec,
    data: PUData,
    grid: PenaltyGrid,
    *,
    rule: str = "none",
    rng: np.random.Generator,
) -> dict[tuple[int, int], Parameters]:
    """The answer at every pair (i, j) of ``grid``, on the internal scale of ``data``."""
    mirrored = spec.symmetric and data.swap_symmetric and grid.exchangeable
    densities = {
        (i, j): LogDensity(spec, data, grid.priors(spec, i, j))
        for i, j in np.ndindex(grid.shape)
        if i >= j or not mirrored
    }
    count = RATES_STARTS if spec.n_rates else PAIR_STARTS
    first = fit_map(spec, data, grid.priors(spec, 0, 0), rule="none", n_starts=count, rng=rng)
    points = {(0, 0): first.point}
    scar: Parameters | None = None
    for j in range(grid.shape[1]):
        if spec.has_selection:
            scar = _scar(densities[grid.shape[0] - 1, j], scar)
        for i in range(grid.shape[0]):
            if (i, j) in points or (i, j) not in densities:
                continue
            neighbours = [points[k] for k in ((i - 1, j), (i, j - 1)) if k in points]
            points[i, j] = _climb(
                densities[i, j], _candidates(densities[i, j], neighbours, scar, rng)
            )
    points = {k: _named(densities[k], point, rule) for k, point in points.items()}
    if mirrored:
        points |= {(j, i): point.swap() for (i, j), point in points.items() if i > j}
    return points


def _candidates(
    density: LogDensity,
    neighbours: list[Parameters],
    scar: Parameters | None,
    rng: np.random.Generator,
) -> list[list[Parameters]]:
    """Starts of different kinds, of which the best one each is climbed."""
    if scar is None:
        return [neighbours]
    near = near_scar(density.data, scar, rng, with_weights=density.spec.n_rates > 0)
    if not density.can_exchange or density.data.n_audited:
        return [neighbours, [near]]
    swapped = [p.swap() for p in neighbours]
    if density.is_symmetric:
        # The likelihood is the same either way, so the penalties alone say which is the better.
        return [neighbours + swapped, [near]]
    return [neighbours, swapped, [near]]


def _climb(density: LogDensity, kinds: list[list[Parameters]]) -> Parameters:
    """The highest optimum that the best candidates of each kind lead to.

    All are climbed roughly. The highest is climbed to the end, and so are those that may still
    overtake it; many lead to the same optimum.
    """
    first = [max(map(density.pack, candidates), key=density.logp) for candidates in kinds]
    rough = [optimise(density, z, rough=True) for z in first]
    ahead = max(rough, key=lambda o: o.logp)
    # Within .01 nats it is the same optimum; one nat behind it is not worth finishing.
    running = [o for o in rough if o is ahead or 0.01 < ahead.logp - o.logp < 1.0]
    ends = [optimise(density, o.z, near=True) for o in running]
    return density.unpack(max(ends, key=lambda o: o.logp).z)


def _named(density: LogDensity, point: Parameters, rule: str) -> Parameters:
    """The optimum whose factors obey the rule, as in `fit_map`."""
    if (
        orientation.settled_by(density.spec, density.data, rule) != "rule"
        or is_exchangeable(density)
        or not orientation.rule_says_swap(point, density.data, rule)
    ):
        return point
    swapped = density.pack(point.swap())
    other = density.unpack(optimise(density, swapped).z)
    return point if orientation.rule_says_swap(other, density.data, rule) else other


def _scar(density: LogDensity, previous: Parameters | None) -> Parameters:
    """The SCAR fit under the same penalty of a: the limit of a large C_α."""
    scar = constant_version(density)
    start = previous or constant_starts(density.data)[0]
    return scar.unpack(optimise(scar, scar.pack(start), rough=True).z)
