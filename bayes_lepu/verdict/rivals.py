r"""The fitted model compared with richer ones on the same labels: a curved class, and a varying s.

*Curved class*. This check comes first, because two straight factors can imitate a curved class if
each takes a part of the curve. The fitted model and the same model with a learned class
(`bayes_lepu.data.learned`) predict held-out labels. A steep annotator must not look like a curve:
the straight class uses the better of its default priors and of weak ones, and if s is constant in
the fitted model, SPM is tried on both sides too. Identical rows become one row with a weight, since
a classifier trained on one of them knows the label of the other.

*s along t* is a score test. With g and I the gradient and expected information of the log
likelihood at its maximum, θ the model's own coordinates, and q the slope of s along t's score in
the columns that the model keeps out of s,

.. math:: U = g_q - I_{q\theta} I_{\theta\theta}^{-1} g_\theta, \qquad
          V = I_{qq} - I_{q\theta} I_{\theta\theta}^{-1} I_{\theta q}, \qquad
          U^2 / V \sim \chi^2_1 .

*Varying s*. Models are compared by the log likelihood at the maximum of the weak density minus the
effective number of parameters (J: expected information of the data, P: precision of the weak
ridge): :math:`\sum_i \log L_i(\hat\theta) - \operatorname{tr}\{J (J + P)^{-1}\}`. This approximates
leave-one-out cross-validation. A difference counts beyond max(4, 2 se). A χ² test of the likelihood
ratio is not valid: if s is constant, the slopes α are not identified, and the ratio exceeds its
nominal 95 % point in up to half of all data sets.
"""

import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, logit

from bayes_lepu.choosing import FOLDS, Compared, classes_to_compare, held_out_rows
from bayes_lepu.data.learned import AUTO_LEARNERS, can_learn
from bayes_lepu.data.weights import total_and_error
from bayes_lepu.defaults import default_priors_of
from bayes_lepu.engines.map import fit_map
from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.engines.search import constant_starts
from bayes_lepu.errors import ConvergenceError, LepuWarning
from bayes_lepu.links import Array, sigmoid
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity, row_terms
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import Priors
from bayes_lepu.result.numbers_in_words import UNITS
from bayes_lepu.rows import (
    CERTAIN_LINK,
    Links,
    Rows,
    flat_order,
    loglik_grad_info,
)
from bayes_lepu.rows.factoring import solve
from bayes_lepu.verdict.class_prior import delta_sd, logit_pi, weak_density
from bayes_lepu.verdict.records import Aspect, Check, Status, judged_on, passed_if

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

# A curved class -------------------------------------------------------------------------------

ROWS = 5_000  # larger tables are thinned evenly; so many rows show a curve by tens of units
MARKS = 500  # marked rows of that part, where there are as many
# With a straight class the lead is at most 8 by chance; on curved tables it is 20 to 150.
CURVED = 10.0
# With several annotators chance is smaller: 3 of 220 straight panels had a lead above 4.5, all with
# false marks; humps have a lead of 5 to 240.
CURVED_PANEL = 4.0
LEARNERS = list(AUTO_LEARNERS)
STRAIGHT = "straight class"


class Bend(NamedTuple):
    """Lead of a learned over a straight class on held-out labels, its error, and the learned π."""

    lead: float  # log-likelihood units
    error: float
    pi: float
    rows: int  # number of rows compared
    bound: float  # a lead up to this can be chance

    @property
    def curved(self) -> bool:
        """Whether the learned class predicts better than by chance."""
        return self.lead > self.bound


def measure_bend(evidence: "Evidence") -> Bend | None:
    """Compare a straight with a learned class; None if it is learned already or cannot be."""
    fit, data = evidence.fit, evidence.data
    if fit.choice is not None and fit.choice.bend is not None:
        best = max((c for c in fit.choice.candidates if c.learned), key=lambda c: c.held_out)
        return Bend(fit.choice.bend, 0.0, best.pi, data.n, CURVED)
    if data.learned is not None or evidence.propensity.fixed is not None:
        return None
    data = data.counted()
    part = data.evenly(max(ROWS, data.n * MARKS // max(int(data.l.sum()), 1)))
    if not can_learn(part, FOLDS):
        return None
    seed, own = fit.options.random_seed, fit.spec
    varying = replace(get_model("spm"), of_class=own.of_class, false_marks=own.false_marks)
    specs = [own] if own.has_selection else [own, varying]
    # One learner costs a fifth of both. On the tuning tables the kernel finds the same curves as
    # boosting, without refits. The threshold for several annotators was tuned with boosting.
    learner = "kernel" if part.n_annotators == 1 else "boosting"
    plain, bent = classes_to_compare(part, "auto", seed, (learner,))

    def best_of(compared: Compared, *, weak: bool) -> tuple[Array, float]:
        """Log likelihoods of held-out labels, and π, by the model that predicts them best."""
        models: list[tuple[ModelSpec, Priors]] = [
            (spec, default_priors_of(spec, compared.part)) for spec in specs
        ]
        if weak:  # weak priors allow a steep s
            models += [(spec, weak_density(spec, part).priors) for spec in specs]
        found = [held_out_rows(spec, compared, prior, seed) for spec, prior in models]
        return max(found, key=lambda one: float(one[0] @ compared.part.weight))

    straight, _ = best_of(plain, weak=not evidence.several)
    learned, pi = best_of(bent, weak=False)
    lead, error = total_and_error(learned - straight, part.weight)
    bound = CURVED_PANEL if evidence.several else max(CURVED, 2 * error)
    return Bend(lead, error, pi, part.n, bound)


def check_bend(evidence: "Evidence") -> list[Check]:
    """Whether straight lines in the columns are enough for the class."""
    found = evidence.bend
    if found is None or evidence.data.learned is not None:
        return []
    # With a constant s the order by t equals the order by h, which the labels identify anyway.
    aspect = Aspect.RANKING if evidence.fit.spec.has_selection else Aspect.LABELS
    return [
        Check(
            STRAIGHT,
            passed_if(not found.curved),
            found.lead,
            f"at most {found.bound:.3g} {UNITS}",
            f"A class learned from the columns predicts unseen labels by {found.lead:+.1f} ± "
            f"{found.error:.1f} {UNITS} compared with the straight class; its π is {found.pi:.2f}."
            + judged_on(found.rows, evidence.data.n),
            f"Learn the class: lepu.fit(..., class_learner={LEARNERS!r}), or leave model= out.",
            bears_on=(aspect,),
            needs="passed",
            consequence="the class is curved, and straight lines put its curve into both factors",
        )
    ]


# t's own score in s ---------------------------------------------------------------------------

P_VALUE = 0.002  # by chance the check fails in one of five hundred data sets
ALONG = "s along t"


def check_along_t(evidence: "Evidence") -> list[Check]:
    """Whether s depends on t's own score through the columns that the model keeps out of s."""
    data, propensity = evidence.data, evidence.propensity
    inside = data.selection_mask & propensity.has_predictor
    if not evidence.one_and_small or propensity.fixed is not None:
        return []
    if not np.any(data.class_mask & ~inside):
        return []
    # With more rows even a tiny departure is significant.
    part = evidence.weak.data.evenly(50_000).as_rows
    p = score_along_t(evidence, part, inside)
    # Columns kept out of s determine the orientation only if s does not depend on them.
    names_too = evidence.fit.orientation.settled_by == "columns"
    return [
        Check(
            ALONG,
            passed_if(p >= P_VALUE),
            p,
            f"p at least {P_VALUE:g}",
            f"t's own score in s would improve the fit with p = {p:.2g}."
            + judged_on(len(part.X), data.n),
            "Let all columns enter s (model='spm' or 'psychm', selection_features=), or audit rows "
            "(y=).",
            (Aspect.LEVEL, *([Aspect.ORIENTATION] if names_too else [])),
            "passed",
            "positives that are more obvious are marked more often than this model allows",
        )
    ]


def score_along_t(evidence: "Evidence", rows: Rows, inside: NDArray[np.bool_]) -> float:
    """The p value of the score test at the maximum of the weak density."""
    point, propensity = evidence.inside(evidence.peaks[0].point), evidence.propensity
    varies = propensity.has_predictor
    where = flat_order(rows)
    if not varies:  # a constant s is a logistic one with α = 0, so the slopes have a score
        c = np.clip(point.s(rows.X[:1])[0], 1e-9, 1 - 1e-9)
        point = replace(point, alpha=0 * point.alpha, beta=logit(c), log_w=CERTAIN_LINK)
    links = Links(propensity.link, point.of_class.link)
    _, grad, info = loglik_grad_info(rows, links, point.point)
    own, along = np.zeros(where.size, dtype=bool), np.zeros(where.size)
    free = where.entries(own)
    free.a[...], free.b[...] = evidence.data.class_mask, True
    free.alpha[...], free.beta[...] = inside, True
    if varies:
        free.uv[:, list(propensity.coordinate_rates)] = True
    where.entries(along).alpha[...] = np.where(inside, 0.0, point.a)
    score, variance = efficient_score(grad, info, own, along)
    if variance <= 1e-8 * along @ info @ along:  # the model's own terms nearly span the direction
        return 1.0
    return float(chdtrc(1, score**2 / variance))


def efficient_score(grad: Array, info: Array, own: Array, along: Array) -> tuple[float, float]:
    """Score of a direction with the model's own coordinates projected out, and its variance."""
    out = (info @ along)[own]
    fitted = solve(info[np.ix_(own, own)], np.column_stack([out, grad[own]]))
    U, V = along @ grad - out @ fitted[:, 1], along @ info @ along - out @ fitted[:, 0]
    return float(U), float(V)


# A varying s ----------------------------------------------------------------------------------

LEAST_DIFFERENCE = 4.0  # log-likelihood units; a smaller difference shows nothing
PER_COLUMN = 2.0  # threshold per column given for s: exceeded by chance in one of twenty
STARTS = 6  # starts of SPM as a rival; they found its maximum in all simulations


@dataclass(frozen=True, eq=False)
class Rival:
    """One model at the maximum of its weak density.

    ``elpd`` is the expected log predictive density of all rows, ``rows`` the term of every row in
    it (without its weight), and ``pi_sd`` the sd of π by the delta method.
    """

    name: str
    elpd: float
    pi: float
    pi_sd: float
    rows: Array = field(repr=False)

    @classmethod
    def at(cls, density: LogDensity, z: Array) -> "Rival":
        """The model of a weak density at its maximum."""
        data, total, (q, slope) = density.data, density.logp_grad_info(z)[2], logit_pi(density, z)
        effective = float(np.trace(solve(total, total - density.prior_precision(z))))
        rows = row_terms(density.unpack(z), data)[0] - effective / float(data.kind_weights.sum())
        pi, elpd = float(sigmoid(q)), total_and_error(rows, data.weight)[0]
        sd = pi * (1 - pi) * delta_sd(total, slope)
        return cls(density.spec.name, elpd, pi, sd, rows)


def compare_rivals(evidence: "Evidence") -> tuple[Rival, ...]:
    """The fitted model and its rival: SPM if s is constant in the fitted model, otherwise SCAR."""
    own, data = evidence.fit.spec, evidence.weak.data
    top = max(evidence.peaks, key=lambda p: p.logp)
    spec = replace(get_model("spm" if own.constant else "scar"), false_marks=own.false_marks)
    found, density = [Rival.at(evidence.weak, top.z)], weak_density(spec, data)
    with suppress(ConvergenceError):  # with weights of 1e9 some models have no mode
        found.append(Rival.at(density, _best(density)))
    return tuple(found)


def _best(density: LogDensity) -> Array:
    """The coordinates of the maximum of a rival's weak density."""
    if not density.spec.has_selection:
        starts = [density.pack(point) for point in constant_starts(density.data)]
        return max((optimise(density, z) for z in starts), key=lambda o: o.logp).z
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():  # the orientation of a rival does not matter
        warnings.simplefilter("ignore", LepuWarning)
        found = fit_map(density.spec, density.data, density.priors, n_starts=STARTS, rng=rng)
    return found.modes[0].z


def lead_of_own(evidence: "Evidence") -> tuple[float, float]:
    """Lead of the fitted model over its rival in predicting the labels, and its standard error."""
    own, rival = evidence.rivals
    return total_and_error(own.rows - rival.rows, evidence.weak.data.weight)


def refuted(evidence: "Evidence") -> bool:
    """Whether the rival predicts the labels better than the fit's own model."""
    if len(evidence.rivals) < 2:
        return False
    lead, error = lead_of_own(evidence)
    return -lead > max(LEAST_DIFFERENCE, 2 * error)


def check_constancy(evidence: "Evidence") -> list[Check]:
    """Whether s varies with x (or, for SCAR and naive, whether it may be taken as constant)."""
    spec, bend = evidence.fit.spec, evidence.bend
    how: dict[str, Any] = {"bears_on": (Aspect.LEVEL,), "needs": "weak"}
    if evidence.several:
        return []
    text = evidence.too_large
    if not text and spec.certain and evidence.data.n_audited:
        return []  # the naive model with audits has no missed positives, so s = 1
    if not text and bend is not None and bend.curved and evidence.data.learned is None:
        text = "The class is curved; fit a learned class first."
    if not text and len(evidence.rivals) < 2:
        text = "The model to compare with has no mode on these data."
    if text:
        return [Check("constancy of s", "not computed", text=text, **how)]
    ahead, se = lead_of_own(evidence)
    bound = max(LEAST_DIFFERENCE, 2 * se)
    if evidence.fit.options.selection_features is not None:
        # If the columns of s are given, a constant s is an ordinary null hypothesis.
        bound = min(bound, PER_COLUMN * int(evidence.data.selection_mask.sum()))
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
        status, remedy = "failed", "Fit model='spm' or 'psychm'."
        remark = "s varies with x: the assumption of SCAR is contradicted."
        if spec.certain:
            remark = "Not every positive is labelled: naive is contradicted."
    text = (
        f"Prediction of the labels against {evidence.rivals[1].name}: {ahead:+.1f} ± {se:.1f} "
        f"{UNITS} (expected log predictive density; counts beyond {bound:.1f}). {remark}"
    )
    how["consequence"] = "the labels do not show that s varies"
    if spec.constant:  # the split of h then rests on the constant s alone
        how["bears_on"] = (Aspect.RANKING,)
        how["consequence"] = "the split rests on a constant propensity, which these data contradict"
    threshold = f"beyond {bound:.1f}"
    return [Check("constancy of s", status, ahead, threshold, text, remedy, **how)]
