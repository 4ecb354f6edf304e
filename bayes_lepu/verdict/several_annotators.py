r"""What only several annotators can show: overlap, independence, and other forms of marking.

.. math::
    A_i = \sum_k w_k \prod_j \psi_{ij}(u_k)^{l_{ij}} (1-\psi_{ij}(u_k))^{1-l_{ij}}, \qquad
    L_i = t_i A_i + (1-t_i) B_i.

The fitted model has u = 0: annotators mark independently given x and the class. Others (`forms`)
are

* a difficulty u that all annotators share, u ~ N(0, σ_d²), or a fifth of the positives harder than
  the rest: the more of it, the more positives are missed by all;
* one annotator who copies another on a share of the rows;
* annotators who mark rows at random, B_i = Π ε_j^l (1-ε_j)^(1-l);
* other links of the class;
* for constant propensities: slopes, and a rise with the class's own score.

Binary labels of two annotators hardly tell these apart, those of many do. So π is reported over all
forms that predict the labels as well, and not at one of them.
"""

from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp, roots_hermitenorm

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.factors import CURVES, Factor
from bayes_lepu.links import Array
from bayes_lepu.model.parameters import ARRAYS, Parameters
from bayes_lepu.result.numbers_in_words import share
from bayes_lepu.verdict.forms import AS_WELL, FORM_RANGE, Form, FormRange, Problem, Refit, form_of_h
from bayes_lepu.verdict.levels import SHARED_REMEDY, interval
from bayes_lepu.verdict.records import (
    FORM_WIDTH,
    Aspect,
    Check,
    grade,
    graded,
    judged_on,
    passed_if,
    relative,
)

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit
    from bayes_lepu.verdict.evidence import Evidence

INDEPENDENT = "annotators independent"
SPREADS = (0.5, 1.0, 1.5, 2.0)  # sd of the shared difficulty, in log odds of being marked
HARD = (0.2, -3.0)  # share of the positives that are harder, and by how much
SKIPPED = (0.5, 0.95)  # shares of the rows marked by another one that an annotator skips
COPIED = (0.25, 0.5)  # shares of the rows that one annotator copies
RISES = (0.5, 1.0)  # of the log odds of a constant s, over one sd of the class's predictor
FEW = 2.5  # labels per row that cannot tell a difficulty from a link of the class
RECAPTURES = (50.0, 10.0)  # rows labelled by two or more: relative error of a count about 1/sqrt
MATERIAL = 0.05  # share of the evidence from which another mode matters
WIDE = 1.96  # sd of π to either side of every form's own
TOO_ALIKE = (
    "Some positives are harder for everybody than x tells, or annotators copied each other: π "
    "comes out too low. Add columns that make rows hard, or audit rows nobody labelled (y=)."
)
REMEDY_OF_FORM = {
    "marks at random": "Let marks be false (false_marks=True), or leave that annotator out.",
    "propensities vary with x": "Fit model='spm', whose propensities vary with x.",
}


def check_overlap(evidence: "Evidence") -> list[Check]:
    """How many rows two annotators marked, which shows how many were missed; other modes."""
    data, spec = evidence.data, evidence.fit.spec
    if not evidence.several:
        return []
    twice = data.marked.sum(axis=1) > 1
    alone = [n for n, own in zip(data.annotators, data.marked.T, strict=True)
             if not (own & twice).any()]  # fmt: skip
    status = grade(int(twice.sum()), RECAPTURES)
    text = (
        f"{int((data.shown.sum(axis=1) > 1).sum())} of {data.n} rows were shown to two annotators "
        f"or more, {twice.sum()} were labelled by two or more."
    )
    if alone:
        text += f" {', '.join(alone)} shared no labelled row with anybody and is known by pooling."
        status = "weak" if status == "passed" else status
    if unseen := int((~data.shown.any(axis=1)).sum()):
        text += f" {unseen} rows were shown to nobody and count only where audited."
    exchangeable = spec.exchangeable and np.array_equal(data.class_mask, data.selection_mask)
    naming = (Aspect.ORIENTATION,) if exchangeable and not data.n_audited else ()
    other = 1.0 - float(evidence.fit.quality.figures.get("mode_weights", [1.0])[0])
    return [
        graded(
            "overlap",
            float(twice.sum()),
            RECAPTURES,
            text,
            SHARED_REMEDY,
            threshold="{} rows labelled twice",
            status=status,
            bears_on=(Aspect.LEVEL, *naming),
            needs="weak",
            consequence="too few rows were labelled by two annotators",
        ),
        Check(
            "modes",
            passed_if(other < MATERIAL),
            other,
            f"other modes hold less than {MATERIAL:.0%} of the evidence",
            f"Modes other than the sampled one hold {other:.1%} of the evidence (Gaussian at "
            "each).",
            SHARED_REMEDY,
            bears_on=(Aspect.ORIENTATION, Aspect.LEVEL),
            needs="weak",
            consequence="the posterior has separate modes",
        ),
    ]


# Other forms of marking -----------------------------------------------------------------------


def shared_difficulty(spread: float, curve: Factor) -> Form:
    """A difficulty of this sd that all annotators share, by Gauss–Hermite quadrature."""
    u, w = roots_hermitenorm(9)  # more nodes change π in the fourth digit
    name = f"shared difficulty {spread:g}, {curve.name} class"
    return Form(name, curve, shifts=spread * u, shares=w / w.sum())


def list_panel_forms(problem: Problem, pair: tuple[int, int], *, false_marks: bool) -> list[Form]:
    """All forms but the fitted one; ``pair`` are the annotators who agree most.

    Where the fit has false marks, all have them.
    """
    (share, shift), own, labels = HARD, problem.of_class, problem.rows.labels
    others = {name: curve for name, curve in CURVES.items() if curve is not own}
    forms = [replace(shared_difficulty(u, own), name=f"shared difficulty {u:g}") for u in SPREADS]
    shifts, shares = np.array([0.0, shift]), np.array([1 - share, share])
    forms.append(Form("some rows hard", own, shifts=shifts, shares=shares))
    if (labels >= 0).sum() < FEW * labels.shape[1]:
        tails = [others[name] for name in ("probit", "cauchit") if name in others]
        forms += [shared_difficulty(u, curve) for curve in tails for u in SPREADS[1:]]
    orders = pair, pair[::-1]
    forms += [Form(f"{k:.0%} copied", own, copied=(*o, k)) for o in orders for k in COPIED]
    if len(labels) < FEW:  # of many, no single one who skips rows moves π
        forms += [
            Form(
                f"{j + 1} skips {k:.0%} of the rows marked by {i + 1}",
                own,
                copied=(j, i, k),
                skips=True,
            )
            for j, i in permutations(range(len(labels)), 2)
            for k in SKIPPED
        ]
    forms += [Form(f"{name} class", curve) for name, curve in others.items()]
    if not problem.selection_mask.any():
        forms.append(Form("propensities vary with x", own, slopes=True))
    if np.any(problem.class_mask & ~problem.selection_mask):
        forms += [Form(f"s rises with t's score by {k:g} per sd", own, rise=k) for k in RISES]
    if false_marks:
        return [replace(form, false_marks=None) for form in forms]
    return [*forms, Form("marks at random", own, false_marks=None)]


def panel_forms(problem: Problem, *, false_marks: bool = False) -> pd.DataFrame:
    """π under every form, refitted from the answer at hand.

    Returns
    -------
    DataFrame
        Index form; columns pi, sd (of pi, delta method), c (share of the positives that somebody
        marked), below (log-likelihood units below the best form, one more for every parameter
        more), kept, and missed (P(y=1 | labels) of the rows that nobody marked).
    """
    own = Form(INDEPENDENT, problem.of_class, false_marks=None if false_marks else 0.0)
    first = problem.refit(own)
    problem = replace(problem, start=first.point(first.z))
    refits, z = [first], first.z
    for form in list_panel_forms(problem, most_alike(first), false_marks=false_marks):
        # The difficulties are climbed one from the other, the rest from independence.
        chained = form.shifts.size > 2 and form.of_class is problem.of_class
        refits.append(problem.refit(form, z if chained else None))
        z = refits[-1].z if chained else z
    records = [
        {"form": refit.form.name, **refit.figures(), "sd": refit.sd(), "size": refit.z.size}
        for refit in refits
    ]
    table = pd.DataFrame(records).set_index("form")
    loglik = table["loglik"] - table["size"]
    table["below"] = loglik.max() - loglik
    table["kept"] = table["below"] <= AS_WELL
    return table[["pi", "sd", "c", "below", "kept", "missed"]]


def most_alike(refit: Refit) -> tuple[int, int]:
    """The two annotators who agree most beyond what the independent form expects."""
    marked, shown = refit.rows.labels == 1, refit.rows.labels >= 0
    # The slope in ω is the residual of a mark, weighed by the probability of a positive row.
    off = np.where(shown, refit.slopes()[0][:-1], 0.0) * np.sqrt(refit.weight)
    scale = np.sqrt(np.maximum((off**2).sum(axis=1), 1e-12))
    alike = off @ off.T / np.outer(scale, scale)
    alike[~((marked.astype(int) @ marked.T.astype(int)) > 0)] = -1.0
    np.fill_diagonal(alike, -np.inf)
    one, other = np.unravel_index(int(alike.argmax()), alike.shape)
    return int(one), int(other)


def panel_range(evidence: "Evidence") -> FormRange:
    """π over all forms of marking that predict the labels as well, and with its own width."""
    # Medians: a few wild draws of an approximation would carry the means away.
    fit, draws = evidence.fit, evidence.fit.draws
    arrays = {name: getattr(draws, name) for name in ARRAYS}
    middle = {name: np.median(v, axis=0) for name, v in arrays.items() if v is not None}
    middle["log_w"] = middle["log_w"] - logsumexp(middle["log_w"], axis=-1, keepdims=True)
    point = evidence.standardised(replace(draws, **middle, pooling={}))
    problem = Problem.of(evidence.weak.data, point, fit.spec.propensity)
    table = panel_forms(problem, false_marks=fit.spec.false_marks)
    own_gap = float(table["below"].iloc[0])
    table.loc[INDEPENDENT, "kept"] = True
    kept, (low, high) = table[table["kept"]], interval(fit.pi_draws)
    # The refits have a weak ridge instead of the fit's priors: the fit's own answer counts too.
    low = min(low, float((kept["pi"] - WIDE * kept["sd"]).min()))
    high = max(high, float((kept["pi"] + WIDE * kept["sd"]).max()))
    missed, ends = np.stack(kept["missed"].tolist()), (max(low, 0.0), min(high, 1.0))
    table = table.drop(columns="missed")
    return FormRange(table, *ends, own_gap, len(problem.rows.X), missed=missed)


def check_panel_forms(evidence: "Evidence") -> list[Check]:
    """How far π would move if annotators did not mark independently, or marked at random."""
    found = evidence.forms
    if not evidence.several or found is None:
        return []
    told = ", ".join(f"{share(pi)} ({name})" for name, pi in found.kept["pi"].items())
    best = str(found.table["below"].idxmin())
    return [
        graded(
            FORM_RANGE,
            found.high - found.low,
            relative(FORM_WIDTH, evidence.pi),
            f"{len(found.kept)} of {len(found.table)} forms of marking predict the labels as well; "
            f"over them π is {share(found.low)} to {share(found.high)}: {told}."
            + judged_on(found.rows, evidence.data.n),
            TOO_ALIKE,
            threshold="width of π {}",
            bears_on=(Aspect.LEVEL,),
            needs="passed",
            consequence="forms of marking that predict the labels as well disagree about it",
        ),
        form_of_h(
            "form of marking",
            found,
            best,
            REMEDY_OF_FORM.get(best, TOO_ALIKE),
            f"another form of marking predicts the labels better ({best})",
        ),
    ]


# Agreement ------------------------------------------------------------------------------------

REPLICATES, LEAST_REPLICATES = 500, 100  # a p-value of .05 has a standard error of .01, or .02
MAX_CELLS = 200_000_000  # labels simulated in all: some seconds


@dataclass(frozen=True, eq=False)
class Agreement:
    """How many rows both of each pair labelled, and how many exactly 0, 1, ..., J annotators.

    Attributes
    ----------
    names : list of str
    observed : (k,) array
    replicated : (draw, k) array
        The same of labels simulated from the posterior.
    """

    names: list[str]
    observed: Array
    replicated: Array

    @property
    def z(self) -> Array:
        """Observed counts in standard deviations from the replicated mean."""
        return (self.observed - self.replicated.mean(axis=0)) / self._sd

    @property
    def _sd(self) -> Array:
        # A count that never varies is compared in units of one row.
        return np.maximum(self.replicated.std(axis=0, ddof=1), 0.5)

    def to_frame(self, tails: tuple[float, float]) -> pd.DataFrame:
        """The counts as a table."""
        lower, upper = np.quantile(self.replicated, tails, axis=0)
        return pd.DataFrame(
            {
                "observed": self.observed.astype(int),
                "expected": self.replicated.mean(axis=0),
                "lower": lower,
                "upper": upper,
                "z": self.z,
            },
            index=pd.Index(self.names, name="rows labelled by"),
        )


def agreement_of(fit: "Fit") -> Agreement:
    """The counts of a fit against labels replicated from its posterior."""
    rng = np.random.default_rng([fit.options.random_seed, 7])
    return compare_agreement(fit.draws, fit.data, rng)


def compare_agreement(draws: Parameters, data: PUData, rng: np.random.Generator) -> Agreement:
    """Counts of the data against counts of labels replicated from the posterior.

    A point estimate is replicated many times as it is.
    """
    data = data.as_counted(1_000_000)  # beyond, every departure is significant, however small
    shown, J = data.shown, data.n_annotators
    count = max(LEAST_REPLICATES, min(REPLICATES, MAX_CELLS // (data.n * J)))
    count = count if draws.b.size == 1 else min(count, draws.b.size)
    replicated = [
        counts(draws.take(i).simulate(data.X, rng, shown=shown)[1] == 1, shown)
        for i in np.linspace(0, draws.b.size - 1, count).astype(int)
    ]
    names = [f"{one} and {other}" for one, other in combinations(data.annotators, 2)]
    names += ["nobody"] + [f"exactly {k}" for k in range(1, J + 1)]
    return Agreement(names, counts(data.marked, shown), np.array(replicated))


def counts(labelled: NDArray[np.bool_], shown: NDArray[np.bool_]) -> Array:
    """Rows labelled by both of each pair, and by exactly 0, 1, ..., J; unseen rows left out."""
    J = labelled.shape[1]
    marks = labelled.astype(float)
    both = (marks.T @ marks)[np.triu_indices(J, 1)]
    per_row = labelled.sum(axis=1)[shown.any(axis=1)]
    return np.concatenate([both, np.bincount(per_row, minlength=J + 1)])
