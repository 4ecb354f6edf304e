r"""The profile of the class prior π: what the likelihood alone says about the level of t.

.. math:: \mathrm{pl}(\pi) = \max \{\, \log L(\theta) : E\,t(x) = \pi \,\}

traced from every materially different maximum in both directions. The set of π within 1.92 of the
maximum is the likelihood's own 95 % set; where it is wide, a narrow posterior speaks of its prior.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.rows.factoring import solve
from bayes_lepu.verdict.climbing import Peak, Role, climb, curvature_of, held, logit_pi
from bayes_lepu.verdict.thresholds import LIKELIHOOD_DROP

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

FAR_LOGIT = 5.0  # π between .007 and .993
STOP_DROP = 6.0
MAX_STEPS = 40


@dataclass(frozen=True, eq=False)
class Profile:
    """Traced curves of the profile.

    Attributes
    ----------
    table : DataFrame
        Columns pi, delta (log likelihood with a weak ridge on the slopes minus its maximum over
        all branches, at most 0), branch (which naming of the factors was followed) and curve
        (rows of one number are one traced line).
    """

    table: pd.DataFrame

    def likelihood_set(self, *, branches: tuple[Role, ...]) -> list[tuple[float, float]]:
        """Intervals of π within 1.92 of the maximum over these branches."""
        part = self.table[self.table["branch"].isin(branches)]
        part = part.assign(delta=part["delta"] - part["delta"].max())
        pieces = [
            piece
            for _, curve in part.groupby("curve")
            for piece in _pieces(curve["pi"].to_numpy(), curve["delta"].to_numpy())
        ]
        return _union(pieces)


def trace_profile(evidence: "Evidence") -> Profile:
    """Trace the profile from the labelled peak, the best exchanged one and the best other one."""
    best = max(p.logp for p in evidence.peaks)
    first, *rest = evidence.peaks
    near = sorted((p for p in rest if p.logp > best - STOP_DROP), key=lambda p: -p.logp)
    chosen = [[p for p in near if p.role is role][:1] for role in (Role.EXCHANGED, Role.OTHER)]
    rows = []
    for number, peak in enumerate([first, *chosen[0], *chosen[1]]):
        for pi, value in _trace(evidence.weak, peak):
            rows.append({"pi": pi, "value": value, "branch": peak.role, "curve": number})
    table = pd.DataFrame(rows)
    table["delta"] = table.pop("value")
    table["delta"] -= table["delta"].max()
    return Profile(table.sort_values(["curve", "pi"], ignore_index=True))


def _trace(density: LogDensity, peak: Peak) -> list[tuple[float, float]]:
    """Points (π, profile) from low to high π."""
    center, slope = logit_pi(density, peak.z)
    sd = _sd_logit(density, peak.z, slope)
    strength, step = 100 / sd**2, min(0.5 * sd, 0.4)
    points = [(_inverse_logit(center), peak.logp)]
    for direction in (-1.0, 1.0):
        z, target, top = peak.z, center, peak.logp
        for _ in range(MAX_STEPS):
            target += direction * step
            if abs(target) > FAR_LOGIT:
                break
            z, value = climb(held(density, target, strength), z)
            q, _ = logit_pi(density, z)
            value += 0.5 * strength * (q - target) ** 2
            points.append((_inverse_logit(q), value))
            top = max(top, value)
            if value < top - STOP_DROP:
                break
    return sorted(points)


def _sd_logit(density: LogDensity, z: Array, slope: Array) -> float:
    variance = float(slope @ solve(curvature_of(density)(z), slope))
    return float(np.clip(np.sqrt(max(variance, 0.0)), 0.01, 0.8))


def _inverse_logit(q: float) -> float:
    return float(1 / (1 + np.exp(-q)))


def _pieces(pi: Array, delta: Array) -> list[tuple[float, float]]:
    """Intervals where a curve stays above -1.92, ends by linear interpolation."""
    above = delta >= -LIKELIHOOD_DROP
    pieces: list[tuple[float, float]] = []
    start: float | None = None
    for i in range(pi.size):
        if above[i] and start is None:
            start = pi[i] if i == 0 else _crossing(pi, delta, i - 1)
        if start is not None and not above[i]:
            pieces.append((start, _crossing(pi, delta, i - 1)))
            start = None
    if start is not None:
        pieces.append((start, float(pi[-1])))
    return pieces


def _crossing(pi: Array, delta: Array, i: int) -> float:
    share = (-LIKELIHOOD_DROP - delta[i]) / (delta[i + 1] - delta[i])
    return float(pi[i] + share * (pi[i + 1] - pi[i]))


def _union(pieces: list[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for low, high in sorted(pieces):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged
