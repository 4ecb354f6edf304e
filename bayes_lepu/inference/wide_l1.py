r"""Many columns and an L1 penalty: exact, without climbing over all columns.

.. math:: \max_{a, \alpha} \; \log L(Xa + b, X\alpha + \beta) - P_a(a) - P_\alpha(\alpha)

An L2 factor lives in the row space: with X = U S V' the optimum has a = V c, and c meets the same
penalty, n coordinates instead of p (of use where p exceeds n). Of an L1 factor few entries differ
from zero, so the climb works on a set W of its columns, beginning with those of the start and the
steepest ones, and takes in columns that break the optimality condition :math:`|g_j| \le C` of the
full problem until none does.
"""

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.inference.l1 import EXACT, climb_sparse, polish
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity
from bayes_lepu.priors.prior import SLOPES

MANY_SPARSE_COLUMNS = 100
FIRST_COLUMNS = 50
GROWTH = 4  # at most, of the columns at work in one round
MOST = 0.6  # share of the columns
MAX_ROUNDS = 50
UNTIL_COMPLETE = 1e-6  # asked of climbs over columns that others will join
SLACK = 1e-6  # relative violation of the optimality condition that is let pass

Working = dict[str, NDArray[np.bool_]]  # columns at work, for each L1 factor


class RowBasis(NamedTuple):
    """X = coordinates @ directions, with as many directions as X has rank."""

    coordinates: Array
    directions: Array


@lru_cache(maxsize=2)
def row_basis(data: PUData) -> RowBasis:
    """Thin singular value decomposition of X; directions that carry nothing are dropped."""
    U, S, Vt = np.linalg.svd(data.X, full_matrices=False)
    keep = 1e-10 * S[0] < S
    return RowBasis(U[:, keep] * S[keep], Vt[keep])


def is_wide(density: LogDensity) -> bool:
    """Whether the problem has the form this module is for."""
    data = density.data
    slopes = [density.priors[name] for name in _factors(density)]
    sparse = all(s.family == "laplace" for s in slopes)
    return (
        data.in_memory
        and ((data.p > data.n and not data.is_sparse) or (sparse and data.p > MANY_SPARSE_COLUMNS))
        and data.n_annotators == 1
        and any(s.family == "laplace" for s in slopes)
        and all(s.family in ("normal", "laplace") for s in slopes)
        and all(s.loc == 0 and not s.hierarchical for s in slopes)
        and bool((data.class_mask & data.selection_mask).all())
    )


def climb_wide(density: LogDensity, start: Array, *, enough: float = EXACT) -> Array:
    """Where the climb ends, on the coordinates of ``density``.

    ``enough`` is what `climb_sparse` asks for; an exact climb also takes Newton steps that bring
    the residual of the optimality conditions to rounding. As long as columns are missing, a rough
    climb tells which.
    """
    working: Working = {}
    gradient = _smooth_gradient(density, start)
    for name in _factors(density):
        if density.priors[name].family == "laplace":
            block = getattr(density.blocks, name)
            working[name] = _strongest(start[block]) | _strongest(gradient[block])
    z, asked = start, max(enough, UNTIL_COMPLETE)
    for _ in range(MAX_ROUNDS):
        small = _restricted(density, working)
        begin = _project(density, small, z, working)
        x = climb_sparse(small, begin, small.logp_grad, enough=asked)
        z = _lift(density, small, polish(small, x) if asked == EXACT else x, working)
        if _take_in(density, z, working):
            continue
        if asked == enough:
            break
        asked = enough
    return z


def _take_in(density: LogDensity, z: Array, working: Working) -> bool:
    """Add columns that break the optimality condition; whether there were any."""
    gradient, any_broken = _smooth_gradient(density, z), False
    for name, columns in working.items():
        block = getattr(density.blocks, name)
        excess = np.abs(gradient[block]) - density.l1_rate[block] * (1 + SLACK)
        excess[columns] = 0.0
        new = _strongest(np.maximum(excess, 0.0), max(FIRST_COLUMNS, GROWTH * int(columns.sum())))
        working[name] = columns | new
        any_broken |= bool(new.any())
    return any_broken


def _factors(density: LogDensity) -> list[str]:
    return [name for name in SLOPES if name in density.priors]


def _smooth_gradient(density: LogDensity, z: Array) -> Array:
    """Gradient of everything but the L1 penalties."""
    return density.logp_grad(z)[1] + density.l1_rate * np.sign(z)


def _strongest(values: Array, count: int = FIRST_COLUMNS) -> NDArray[np.bool_]:
    """The ``count`` largest in size of those that are not zero."""
    size = np.abs(values)
    chosen = np.zeros(size.size, dtype=bool)
    chosen[np.argsort(-size, kind="stable")[:count]] = True
    return chosen & (size > 0)


def _restricted(density: LogDensity, working: Working) -> LogDensity:
    """The density of the coordinates at work: one table, a mask of columns for each factor."""
    data = density.data
    if len(working) == len(_factors(density)):  # columns of X only, most of them of both factors
        of_class = working["a"]
        of_selection = working.get("alpha", np.zeros_like(of_class))
        used = of_class | of_selection
        if used.mean() > MOST:  # a copy of them would cost more than it gives
            return replace(density, data=data.with_table(data.X, of_class, of_selection))
        table = data.X[:, used] if data.is_sparse else np.compress(used, data.X, axis=1)
        return replace(density, data=data.with_table(table, of_class[used], of_selection[used]))
    tables = [
        data.X[:, working[name]] if name in working else row_basis(data).coordinates
        for name in _factors(density)
    ]
    table = np.ascontiguousarray(np.hstack(tables))
    of_class = np.arange(table.shape[1]) < tables[0].shape[1]
    return replace(density, data=data.with_table(table, of_class, ~of_class))


def _project(density: LogDensity, small: LogDensity, z: Array, working: Working) -> Array:
    """Coordinates of ``small`` from those of ``density``."""
    out = np.empty(small.dim)
    for name in vars(density.blocks):
        values = z[getattr(density.blocks, name)]
        if name in working:
            values = values[working[name]]
        elif name in _factors(density):
            values = row_basis(density.data).directions @ values
        out[getattr(small.blocks, name)] = values
    return out


def _lift(density: LogDensity, small: LogDensity, x: Array, working: Working) -> Array:
    """Coordinates of ``density`` from those of ``small``, zeros outside the working sets."""
    out = np.zeros(density.dim)
    for name in vars(density.blocks):
        values, block = x[getattr(small.blocks, name)], getattr(density.blocks, name)
        if name in working:
            out[block][working[name]] = values
        elif name in _factors(density):
            out[block] = values @ row_basis(density.data).directions
        else:
            out[block] = values
    return out
