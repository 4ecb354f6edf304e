r"""The fitted model against others on the same labels: whether the class bends, whether s varies.

*Curved class*, asked before anything is said of the annotator: two straight factors follow a curved
class by giving each a part of it, and the annotator is blamed for the curve. The fitted model is
compared with the same model on a learned class (`bayes_lepu.data.learned`) by how well both predict
labels that they have not seen (`bayes_lepu.choosing.held_out_rows`). So that no steep annotator is
taken for a curve, the straight class has the better of its default priors and of weak ones, and a
model whose s is constant is joined by SPM on both sides. Copies of a row are counted, since a
classifier trained on one knows the label of the other.

*Varying s*, by the log likelihood at the maximum of the weak density less the effective number of
parameters (J: expected information of the data, P: precision of the weak ridge), which approximates
leaving one row out,

.. math:: \mathrm{elpd} \approx \sum_i \log L_i(\hat\theta) - \operatorname{tr}\{J (J + P)^{-1}\}.

A difference counts beyond max(4, 2 se). The likelihood ratio is never compared with χ²: with s
constant the slopes α mean nothing, and the statistic exceeds its nominal 95 % point in up to half
of all data sets.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.choosing import FOLDS, Compared, classes_to_compare, held_out_rows
from bayes_lepu.data.learned import AUTO_LEARNERS, can_learn
from bayes_lepu.data.weights import total_and_error
from bayes_lepu.defaults import default_priors_of
from bayes_lepu.engines.map import fit_map
from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.engines.search import constant_starts
from bayes_lepu.errors import LepuWarning
from bayes_lepu.links import Array, RowKind, sigmoid
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.row_sums import row_terms
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import Priors
from bayes_lepu.result.numbers_in_words import UNITS
from bayes_lepu.rows.factoring import solve
from bayes_lepu.verdict.peaks import delta_sd, logit_pi, weak_density
from bayes_lepu.verdict.records import Aspect, Check, Status, judged_on, passed_if

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

# A curved class -------------------------------------------------------------------------------

ROWS = 5_000  # of a larger table an even part is compared: curves lead by tens of units there
MARKS = 500  # marked rows of that part, where there are as many
# Straight worlds give a learned class a lead of up to 8 by chance, curved tables one of 20 to 150.
CURVED = 10.0
LEARNERS = list(AUTO_LEARNERS)
STRAIGHT = "straight class"


@dataclass(frozen=True)
class Bend:
    """A straight against a learned class.

    Attributes
    ----------
    lead : float
        By how many log-likelihood units the learned class predicts unseen labels better.
    error : float
        Its standard error.
    pi : float
        The class prior with the learned class.
    rows : int
        How many rows were compared.
    """

    lead: float
    error: float
    pi: float
    rows: int

    @property
    def curved(self) -> bool:
        """Whether the labels ask for a learned class."""
        return self.lead > max(CURVED, 2 * self.error)


def measure_bend(evidence: "Evidence") -> Bend | None:
    """The comparison; None where the class is learned already or cannot be."""
    fit, data = evidence.fit, evidence.data
    if fit.choice is not None and fit.choice.bend is not None:
        best = max((c for c in fit.choice.candidates if c.learned), key=lambda c: c.held_out)
        return Bend(fit.choice.bend, 0.0, best.pi, data.n)
    if data.learned is not None or evidence.propensity.fixed is not None:
        return None
    data = data.counted()
    part = data.evenly(max(ROWS, data.n * MARKS // max(int(data.l.sum()), 1)))
    if not can_learn(part, FOLDS):
        return None
    seed, own = fit.options.random_seed, fit.spec
    varying = replace(get_model("spm"), of_class=own.of_class, false_marks=own.false_marks)
    specs = [own] if own.has_selection else [own, varying]
    # One learner: a fifth of the cost of both.
    plain, bent = classes_to_compare(part, "auto", seed, ("boosting",))

    def best_of(compared: Compared, *, weak: bool) -> tuple[Array, float]:
        """Log likelihoods of unseen labels, and π, by the model that predicts them best."""
        models: list[tuple[ModelSpec, Priors]] = []
        for spec in specs:
            models.append((spec, default_priors_of(spec, compared.part)))
            if weak and part.n_annotators == 1:  # these let s be steep
                models.append((spec, weak_density(spec, part).priors))
        found = [held_out_rows(spec, compared, priors, seed) for spec, priors in models]
        return max(found, key=lambda one: float(one[0] @ compared.part.weight))

    (straight, _), (learned, pi) = best_of(plain, weak=True), best_of(bent, weak=False)
    return Bend(*total_and_error(learned - straight, part.weight), pi, part.n)


def check_bend(evidence: "Evidence") -> list[Check]:
    """Whether straight lines in the columns are enough for the class."""
    found = evidence.bend
    if found is None or evidence.data.learned is not None:
        return []
    # With a constant s the order by t is the order by h, which the labels teach all the same.
    aspect = Aspect.RANKING if evidence.fit.spec.has_selection else Aspect.LABELS
    return [
        Check(
            STRAIGHT,
            passed_if(not found.curved),
            found.lead,
            f"at most {CURVED:g} {UNITS}",
            f"Against the straight class, one learned from the columns predicts unseen labels by "
            f"{found.lead:+.1f} ± {found.error:.1f} {UNITS}; its π is {found.pi:.2f}."
            + judged_on(found.rows, evidence.data.n),
            f"Let the class bend: lepu.fit(..., class_learner={LEARNERS!r}), or leave model= out.",
            bears_on=(aspect,),
            needs="passed",
            consequence="the class bends, and straight lines put its curve into both factors",
        )
    ]


# A varying s ----------------------------------------------------------------------------------

LEAST_DIFFERENCE = 4.0  # log-likelihood units: below that two models predict alike
STARTS = 6  # of SPM as a rival: its maximum is then found in all of the simulations
ANOTHER = "Fit model='scar', 'spm' or 'psychm'."


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
    rows : array
        The share of every row in ``elpd``, before its weight.
    point : Parameters
        The maximum, on standardised columns.
    """

    name: str
    spec: ModelSpec = field(repr=False)
    elpd: float
    difference: float
    se: float
    pi: float
    pi_sd: float
    rows: Array = field(repr=False)
    point: Parameters = field(repr=False)

    @property
    def refuted(self) -> bool:
        """Whether the best model predicts the labels better."""
        return self.difference > max(LEAST_DIFFERENCE, 2 * self.se)

    @property
    def reading(self) -> str:
        """What the difference says."""
        if self.difference == 0:
            return "predicts the labels best"
        if self.refuted:
            return "predicts the labels worse"
        return "no worse than chance allows"


def compare_rivals(evidence: "Evidence") -> tuple[Rival, ...]:
    """The fit's own model (first) and those it is compared with."""
    own, data = evidence.fit.spec, evidence.weak.data
    found = {own.name: (evidence.weak, max(evidence.peaks, key=lambda p: p.logp).z)}
    # Where unmarked rows are known to be positive, naive is out of the question.
    names = [] if np.any(evidence.data.kind == RowKind.MISSED) else ["naive"]
    names += ["scar"] if own.has_selection else ["scar", "spm"]
    for name in names:
        if name != own.name:
            spec = replace(get_model(name), false_marks=own.false_marks)
            density = weak_density(spec, data)
            found[name] = density, _best(density)
    return ranked(found)


def _best(density: LogDensity) -> Array:
    """The coordinates of the maximum of a rival's weak density."""
    if density.spec.has_selection:
        rng = np.random.default_rng(0)
        with warnings.catch_warnings():  # about the orientation, which no rival is asked for
            warnings.simplefilter("ignore", LepuWarning)
            found = fit_map(density.spec, density.data, density.priors, n_starts=STARTS, rng=rng)
        return found.modes[0].z
    starts = [np.zeros(density.dim)]
    if density.spec.n_rates:
        starts = [density.pack(p) for p in constant_starts(density.data)]
    return max((optimise(density, z) for z in starts), key=lambda o: o.logp).z


def ranked(found: Mapping[str, tuple[LogDensity, Array]]) -> tuple[Rival, ...]:
    """Models at a maximum of their weak density, against the best of them."""
    data = next(iter(found.values()))[0].data
    rows, sds = {}, {}
    for name, (density, z) in found.items():
        total, (q, slope) = density.logp_grad_info(z)[2], logit_pi(density, z)
        effective = float(np.trace(solve(total, total - density.prior_precision(z))))
        count = float(density.data.kind_weights.sum())
        rows[name] = row_terms(density.unpack(z), density.data)[0] - effective / count
        pi = float(sigmoid(q))
        sds[name] = pi, pi * (1 - pi) * delta_sd(total, slope)
    elpd = {name: total_and_error(values, data.weight)[0] for name, values in rows.items()}
    best = rows[max(elpd, key=elpd.__getitem__)]
    return tuple(
        Rival(
            name,
            found[name][0].spec,
            elpd[name],
            *total_and_error(best - rows[name], data.weight),
            *sds[name],
            rows[name],
            found[name][0].unpack(found[name][1]),
        )
        for name in found
    )


def check_constancy(evidence: "Evidence") -> list[Check]:
    """Whether s varies with x (or, for SCAR and naive, whether it may be taken as constant)."""
    name, spec = "constancy of s", evidence.fit.spec
    if evidence.several:
        return []
    text = evidence.too_large
    if not text and spec.certain and evidence.data.n_audited:
        return []  # audited rows leave no room for s < 1
    bend = evidence.bend
    if not text and bend is not None and bend.curved and evidence.data.learned is None:
        text = "The class bends; ask again once it may."
    if text:
        return [Check(name, "not computed", text=text, bears_on=(Aspect.LEVEL,), needs="weak")]
    own, *others = evidence.rivals
    # SCAR is compared with the richer model, whose s varies; all others with SCAR.
    rival = next(r for r in others if r.spec.constant != spec.constant and not r.spec.certain)
    ahead, se = total_and_error(own.rows - rival.rows, evidence.weak.data.weight)
    bound = max(LEAST_DIFFERENCE, 2 * se)
    status: Status = "passed"
    remark, remedy = "The data do not contradict the assumption on s.", ""
    if spec.has_selection and ahead > bound:
        remark = "s varies with x."
    elif spec.has_selection and spec.n_rates == 0:
        status, remedy = "weak", "Compare with model='scar'."
        remark = "A constant propensity predicts the labels as well. SPM identifies that case too."
    elif spec.has_selection:
        status = "failed"
        remedy = "Fit model='scar', or model='spm', which identifies a constant s."
        remark = "A constant propensity predicts the labels as well. Inside PsychM the level of t "
        remark += "is then not identified."
    elif -ahead > bound:
        status = "failed"
        remark = "s varies with x: the assumption of SCAR is contradicted."
        remedy = "Fit model='spm' or 'psychm'."
        if spec.certain:
            remark, remedy = "Not every positive is labelled: naive is contradicted.", ANOTHER
    return [
        Check(
            name,
            status,
            ahead,
            f"beyond max({LEAST_DIFFERENCE:g}, 2 se)",
            f"Prediction of the labels against {rival.name}: {ahead:+.1f} ± {se:.1f} {UNITS} "
            f"(expected log predictive density; counts beyond {bound:.1f}). {remark}",
            remedy,
            # The split of h that SCAR makes rests on nothing but its constant s.
            bears_on=(Aspect.RANKING if spec.constant else Aspect.LEVEL,),
            needs="weak",
            consequence="the split rests on a constant propensity, which these data contradict"
            if spec.constant
            else "the labels do not show that s varies",
        )
    ]


def check_split(evidence: "Evidence") -> list[Check]:
    """Whether the model splits h at all."""
    if not evidence.fit.spec.certain or evidence.several:
        return []
    return [
        Check(
            "split of h",
            "failed",
            text="This model sets s = 1, so t = h: nothing is split.",
            remedy="Fit model='scar', 'spm' or 'psychm' where positives may be unlabelled.",
            bears_on=(Aspect.RANKING,),
            needs="passed",
            consequence="it equals P(y=1 | x) only if every positive is labelled, which this model "
            "assumes and cannot check",
        )
    ]
