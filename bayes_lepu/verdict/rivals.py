r"""The fitted model against simpler and richer ones on the same labels.

.. math:: \mathrm{elpd} \approx \sum_i \log L_i(\hat\theta) - \operatorname{tr}\{J (J + P)^{-1}\}

the log likelihood at the maximum of the weak density less the effective number of parameters (J:
expected information of the data, P: precision of the weak ridge), an approximation to leaving one
row out. It is the same for every method of fitting, needs no draws, and no Gaussian has to stand in
for a skew posterior: leaving rows out by importance weights on Gaussian draws of PsychM was off by
26 units where long chains gave 0.2.

A difference counts beyond max(4, 2 se). The likelihood ratio is never held against χ²: with s
constant the slopes α mean nothing, and the statistic exceeds its nominal 95 % point in up to half
of all data sets.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines.map import fit_map
from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.engines.search import constant_starts
from bayes_lepu.errors import LepuWarning
from bayes_lepu.links import Array, RowKind
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.row_sums import row_terms
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.result.numbers_in_words import UNITS
from bayes_lepu.rows.factoring import solve
from bayes_lepu.verdict.climbing import logit_pi, weak_density
from bayes_lepu.verdict.records import (
    Aspect,
    Check,
    Status,
    not_applicable,
    not_computed,
)

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

LEAST_DIFFERENCE = 4.0  # log-likelihood units: below that two models predict alike
STARTS = 6


@dataclass(frozen=True, eq=False)
class Rival:
    """One model at the maximum of its weak density.

    Attributes
    ----------
    name : str
    spec : ModelSpec
    elpd : float
        Expected log predictive density of all rows.
    difference, se : float
        That of the best model minus this one's, and its standard error.
    pi, pi_sd : float
        Class prior at the maximum, and its sd by the delta method.
    point : Parameters
        On standardised columns.
    rows : array
        The share of every row in ``elpd``, before its weight.
    data : PUData
        The rows.
    """

    name: str
    spec: ModelSpec = field(repr=False)
    elpd: float
    difference: float
    se: float
    pi: float
    pi_sd: float
    point: Parameters = field(repr=False)
    rows: Array = field(repr=False)
    data: PUData = field(repr=False)

    @property
    def reading(self) -> str:
        """What the difference says."""
        if self.difference == 0:
            return "predicts the labels best"
        if self.difference > max(LEAST_DIFFERENCE, 2 * self.se):
            return "predicts the labels worse"
        return "no worse than chance allows"


def compare_rivals(evidence: "Evidence") -> tuple[Rival, ...]:
    """The fit's own model (first) and those it is held against."""
    own = max(evidence.peaks, key=lambda p: p.logp)
    found = {evidence.fit.spec.name: (evidence.weak, own.z)}
    for name in _others(evidence):
        spec = replace(get_model(name), false_marks=evidence.fit.spec.false_marks)
        density = weak_density(spec, evidence.weak.data)
        found[name] = density, _best(density)
    return ranked(found)


def ranked(found: Mapping[str, tuple[LogDensity, Array]]) -> tuple[Rival, ...]:
    """Models at a maximum of their weak density, against the best of them."""
    rows = {name: plug_in_rows(density, z) for name, (density, z) in found.items()}
    totals = {
        name: density.data.total_and_error(rows[name])[0] for name, (density, _) in found.items()
    }
    best = rows[max(totals, key=totals.__getitem__)]
    return tuple(_rival(name, *found[name], rows[name], best) for name in found)


def difference(one: Rival, other: Rival) -> tuple[float, float]:
    """By how much the first predicts the labels better, and the standard error."""
    return one.data.total_and_error(one.rows - other.rows)


def plug_in_rows(density: LogDensity, z: Array) -> Array:
    """Log likelihood of every row at a maximum, less its share of the effective parameters."""
    _, _, total = density.logp_grad_info(z)
    data_part = total - density.prior_precision(z)
    effective = float(np.trace(solve(total, data_part)))
    count = float(density.data.kind_weights.sum())
    return row_terms(density.unpack(z), density.data)[0] - effective / count


def _others(evidence: "Evidence") -> list[str]:
    own, data = evidence.fit.spec, evidence.data
    names = ["naive", "scar"] if own.has_selection else ["naive", "scar", "spm"]
    if np.any(data.kind == RowKind.MISSED):
        names.remove("naive")  # unmarked rows may be positive
    return [name for name in names if name != own.name]


def _best(density: LogDensity) -> Array:
    if density.spec.has_selection:
        rng = np.random.default_rng(0)
        with warnings.catch_warnings():  # about naming, which no rival is asked for
            warnings.simplefilter("ignore", LepuWarning)
            found = fit_map(density.spec, density.data, density.priors, n_starts=STARTS, rng=rng)
        return found.modes[0].z
    if density.spec.n_rates == 0:
        return optimise(density, np.zeros(density.dim)).z
    starts = [density.pack(p) for p in constant_starts(density.data)]
    return max((optimise(density, z) for z in starts), key=lambda o: o.logp).z


def _rival(name: str, density: LogDensity, z: Array, rows: Array, best: Array) -> Rival:
    difference, se = density.data.total_and_error(best - rows)
    q, slope = logit_pi(density, z)
    pi = 1 / (1 + np.exp(-q))
    total = density.logp_grad_info(z)[2]
    sd = float(pi * (1 - pi) * np.sqrt(max(float(slope @ solve(total, slope)), 0.0)))
    return Rival(
        name,
        density.spec,
        density.data.total_and_error(rows)[0],
        difference,
        se,
        float(pi),
        sd,
        density.unpack(z),
        rows,
        density.data,
    )


NOT_COMPUTED = not_computed("constancy of s", bears_on=(Aspect.LEVEL,), needs="weak")


def check_constancy(evidence: "Evidence") -> list[Check]:
    """Whether s varies with x (or, for SCAR and naive, whether it may be taken as constant)."""
    name, spec = "constancy of s", evidence.fit.spec
    # The split of h that SCAR makes rests on nothing but its constant s.
    aspect = Aspect.RANKING if spec.constant else Aspect.LEVEL
    if spec.certain and evidence.data.n_audited:
        return [not_applicable(name, "Audited rows leave no room for s < 1.")]
    if evidence.bend is not None and evidence.bend.curved and evidence.data.learned is None:
        return [replace(NOT_COMPUTED, text="The class bends; ask again once it may.")]
    own, *others = evidence.rivals
    # SCAR is held against the richer model, whose s varies; all others against SCAR.
    rival = next(r for r in others if r.spec.constant != spec.constant and not r.spec.certain)
    ahead, se = difference(own, rival)
    bound = max(LEAST_DIFFERENCE, 2 * se)
    text = (
        f"Prediction of the labels against {rival.name}: {ahead:+.1f} ± {se:.1f} {UNITS} (expected "
        f"log predictive density; counts beyond {bound:.1f})."
    )
    status, remark, remedy = _reading(spec, ahead, bound)
    return [
        Check(
            name,
            status,
            ahead,
            f"beyond max({LEAST_DIFFERENCE:g}, 2 se)",
            f"{text} {remark}",
            remedy,
            bears_on=(aspect,),
            needs="weak",
            consequence="the split rests on a constant propensity, which these data contradict"
            if spec.constant
            else "the labels do not show that s varies",
        )
    ]


def check_split(evidence: "Evidence") -> list[Check]:
    """Whether the model splits h at all."""
    if not evidence.fit.spec.certain:
        return []
    return [
        Check(
            "split of h",
            "failed",
            None,
            "",
            "This model sets s = 1, so t = h: nothing is split.",
            "Fit model='scar', 'spm' or 'psychm' where positives may be unlabelled.",
            bears_on=(Aspect.RANKING,),
            needs="passed",
            consequence="it equals P(y=1 | x) only if every positive is labelled, which this model "
            "assumes and cannot check",
        )
    ]


def _reading(spec: ModelSpec, ahead: float, bound: float) -> tuple[Status, str, str]:
    if spec.has_selection:
        if ahead > bound:
            return "passed", "s varies with x.", ""
        remark = "A constant propensity predicts the labels as well."
        if spec.n_rates == 0:
            return "weak", remark + " SPM identifies that case too.", "Compare with model='scar'."
        return (
            "failed",
            remark + " Inside PsychM the level of t is then not identified.",
            "Fit model='scar', or model='spm', which identifies a constant s.",
        )
    if -ahead > bound:
        if spec.certain:
            return (
                "failed",
                "Not every positive is labelled: the naive model is contradicted.",
                "Fit model='scar', 'spm' or 'psychm'.",
            )
        return (
            "failed",
            "s varies with x: the assumption of SCAR is contradicted.",
            "Fit model='spm' or 'psychm'.",
        )
    return "passed", "The data do not contradict the assumption on s.", ""
