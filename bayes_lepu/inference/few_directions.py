r"""Many columns: the search for modes in few directions.

Modes differ in how the strong columns are shared between t and s. The search therefore works on the
columns with the largest slopes of the SCAR fit, on those along which the propensity would leave a
constant first, and on two sums of all other columns: by the SCAR slopes, and by the gradient in α.
The sums have unit length, so that L2 penalties mean the same. Where the search ends is a start for
a climb over all columns.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.priors.prior import SLOPES

MANY_FOR_SEARCH = 60
KEPT = 12  # columns by slope, and again by gradient

Lift = Callable[[Parameters], Parameters]


def has_many_columns(density: LogDensity) -> bool:
    """Whether the search should work in few directions, and can."""
    data = density.data
    slopes = [density.priors[name] for name in SLOPES if name in density.priors]
    return (
        data.p > MANY_FOR_SEARCH
        and data.in_memory
        and density.spec.has_selection
        and data.n_annotators == 1
        and all(s.family in ("normal", "laplace", "flat") for s in slopes)
        and all(s.loc == 0 and not s.hierarchical for s in slopes)
        and bool((data.class_mask & data.selection_mask).all())
    )


def narrow(density: LogDensity, scar: Parameters) -> tuple[LogDensity, Lift]:
    """The density in few directions, and the way back to all columns."""
    data = density.data
    c = float(np.clip(scar.gamma, 0.02, 0.98))
    flat = Parameters.of(a=scar.a, b=scar.b, beta=np.log(c / (1 - c)), gamma=0.05, lam=0.05)
    toward = density.logp_grad(density.pack(flat))[1][density.blocks.alpha]
    basis = _directions(scar.a, toward)
    every = np.ones(basis.shape[1], dtype=bool)
    small = replace(density, data=data.with_table(data.X @ basis, every, every))

    def lift(point: Parameters) -> Parameters:
        return replace(point, a=basis @ point.a, alpha=basis @ point.alpha)

    return small, lift


def _directions(slope: Array, toward: Array) -> Array:
    """Orthonormal directions, ``(p, k)``: single columns, and two sums of the others."""
    strongest = [np.argsort(-np.abs(v), kind="stable")[:KEPT] for v in (slope, toward)]
    chosen = np.unique(np.concatenate(strongest))
    rest = np.column_stack([slope, toward])
    rest[chosen] = 0.0
    single = np.zeros((slope.size, chosen.size))
    single[chosen, np.arange(chosen.size)] = 1.0
    return np.hstack([single, np.linalg.qr(rest)[0]])
