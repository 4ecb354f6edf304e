r"""The fitted model against richer ones on the same labels: curves, and whether s varies.

*Curved class*, asked before anything is said of the annotator: two straight factors follow a curved
class by giving each a part of it. The fitted model is compared with the same model on a learned
class (`bayes_lepu.data.learned`) by how well both predict labels that they have not seen. So that
no steep annotator is taken for a curve, the straight class has the better of its default priors and
of weak ones, and a model whose s is constant is joined by SPM on both sides. Copies of a row are
counted, since a classifier trained on one knows the label of the other.

*Columns*, by a score test: with g and I gradient and expected information of the log likelihood at
its maximum, θ the model's own coordinates and q those of terms that the model leaves out,

.. math:: U = g_q - I_{q\theta} I_{\theta\theta}^{-1} g_\theta, \qquad
          V = I_{qq} - I_{q\theta} I_{\theta\theta}^{-1} I_{\theta q}, \qquad
          U' V^{-1} U \sim \chi^2 .

*Varying s*, by the log likelihood at the maximum of the weak density less the effective number of
parameters (J: expected information of the data, P: precision of the weak ridge), which approximates
leaving one row out: :math:`\sum_i \log L_i(\hat\theta) - \operatorname{tr}\{J (J + P)^{-1}\}`. A
difference counts beyond max(4, 2 se). The likelihood ratio is never compared with χ²: with s
constant the slopes α mean nothing, and it exceeds its nominal 95 % point in up to half of all data.
"""

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from bayes_lepu.choosing import FOLDS, Compared, classes_to_compare, held_out_rows
from bayes_lepu.data.learned import AUTO_LEARNERS, can_learn
from bayes_lepu.data.weights import total_and_error
from bayes_lepu.defaults import default_priors_of
from bayes_lepu.engines.map import fit_map
from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.engines.search import constant_starts
from bayes_lepu.errors import ConvergenceError, LepuWarning
from bayes_lepu.links import Array, RowKind, sigmoid
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.row_sums import row_terms
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import Priors
from bayes_lepu.result.numbers_in_words import UNITS
from bayes_lepu.rows import (
    CERTAIN_LINK,
    Links,
    flat_order,
    loglik_grad_info,
)
from bayes_lepu.rows.factoring import solve
from bayes_lepu.verdict.class_prior import delta_sd, logit_pi, weak_density
from bayes_lepu.verdict.records import Aspect, Check, Status, judged_on, passed_if

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

# A curved class -------------------------------------------------------------------------------

ROWS = 5_000  # of a larger table an even part is compared: curves lead by tens of units there
MARKS = 500  # marked rows of that part, where there are as many
# Straight worlds give a learned class a lead of up to 8 by chance, curved tables one of 20 to 150.
CURVED = 10.0
# Several annotators leave less to chance: 3 of 220 straight panels led by more than 4.5, all with
# false marks; humps lead by 5 to 240.
CURVED_PANEL = 4.0
LEARNERS = list(AUTO_LEARNERS)
STRAIGHT = "straight class"


class Bend(NamedTuple):
    """By how much a learned class predicts unseen labels better, its error, and the learned π."""

    lead: float  # log-likelihood units
    error: float
    pi: float
    rows: int  # that were compared
    bound: float  # a lead up to this is chance

    @property
    def curved(self) -> bool:
        """Whether the labels ask for a learned class."""
        return self.lead > self.bound


def measure_bend(evidence: "Evidence") -> Bend | None:
    """The comparison; None where the class is learned already or cannot be."""
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
    # One learner for a fifth of the cost of both. On the tuning tables the kernel finds the curves
    # that boosting finds, without refits; the threshold for several annotators is that of boosting.
    learner = "kernel" if part.n_annotators == 1 else "boosting"
    plain, bent = classes_to_compare(part, "auto", seed, (learner,))

    def best_of(compared: Compared, *, weak: bool) -> tuple[Array, float]:
        """Log likelihoods of unseen labels, and π, by the model that predicts them best."""
        models: list[tuple[ModelSpec, Priors]] = [
            (spec, default_priors_of(spec, compared.part)) for spec in specs
        ]
        if weak:  # these priors let s be steep
            models += [(spec, weak_density(spec, part).priors) for spec in specs]
        found = [held_out_rows(spec, compared, priors, seed) for spec, priors in models]
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
    # With a constant s the order by t is the order by h, which the labels teach all the same.
    aspect = Aspect.RANKING if evidence.fit.spec.has_selection else Aspect.LABELS
    return [
        Check(
            STRAIGHT,
            passed_if(not found.curved),
            found.lead,
            f"at most {found.bound:.3g} {UNITS}",
            f"Against the straight class, one learned from the columns predicts unseen labels by "
            f"{found.lead:+.1f} ± {found.error:.1f} {UNITS}; its π is {found.pi:.2f}."
            + judged_on(found.rows, evidence.data.n),
            f"Let the class bend: lepu.fit(..., class_learner={LEARNERS!r}), or leave model= out.",
            bears_on=(aspect,),
            needs="passed",
            consequence="the class bends, and straight lines put its curve into both factors",
        )
    ]


# Squares, products and t's own score ----------------------------------------------------------

# Five tests are made; at .002 each, one straight data set in a hundred is called curved.
P_VALUE = 0.002


class Question(NamedTuple):
    """What the model leaves out, and what is said where it acts after all."""

    what: str
    consequence: str
    remedy: str  # ends with the strongest term where there are several
    aspect: Aspect = Aspect.LABELS


QUESTIONS = {
    f"curves of {factor}": Question(
        f"Squares and products of the columns in {factor}",
        f"the columns do not act on {factor} in straight lines",
        "Add the squares or products as columns, for example ",
    )
    for factor in "ts"
} | {
    "link of t": Question(
        "The square of t's own predictor",
        "the labels contradict the logistic form of t",
        "Read π as its range over other forms, and audit rows (y=).",
    ),
    "s along t": Question(
        "t's own score in s",
        "positives that are more obvious are marked more often than this model allows",
        "Let all columns enter s (model='spm' or 'psychm', selection_features=), or audit rows "
        "(y=).",
        Aspect.LEVEL,
    ),
}


class Term(NamedTuple):
    """The product of two columns (a square where they are the same)."""

    name: str
    first: int
    second: int

    def values(self, X: Array) -> Array:
        """The standardised product."""
        v = X[:, self.first] * X[:, self.second]
        return (v - v.mean()) / max(float(v.std()), 1e-12)

    def enough_marks(self, X: Array, marked: Array) -> bool:
        """Whether no cell of two columns of two values is too thin to be judged."""
        cells, at = np.unique(X[:, [self.first, self.second]], axis=0, return_inverse=True)
        # With five marks in each of four cells, one more or less is chance and no curve.
        return len(cells) > 4 or bool(np.bincount(at, weights=marked).min() >= 5)


class ColumnScores(NamedTuple):
    """Scores of what the model leaves out."""

    z: dict[str, "pd.Series[float]"]  # by question: the standardised efficient score of each term
    p_values: dict[str, float]  # by question
    named: tuple[Term, ...]  # the terms of t that stand out, the strongest first
    rows: int  # that were used


def score_columns(evidence: "Evidence") -> ColumnScores:
    """The four questions at the maximum of the weak density."""
    data, point = evidence.weak.data, evidence.inside(evidence.peaks[0].point)
    # Beyond, every curve is significant, however small.
    part, propensity = data.evenly(50_000).as_rows, evidence.propensity
    X, tau, marked = part.X, point.tau(part.X), part.labels[0] == 1
    names, size = data.feature_names, np.abs(evidence.peaks[0].point.a)
    size = size + np.abs(evidence.peaks[0].point.alpha)
    # Squares and products of the ten columns that matter most.
    best = np.sort(np.argsort(-size, kind="stable")[:10]).tolist()
    terms = [Term(f"{names[j]}²", j, j) for j in best]
    terms += [Term(f"{names[i]}·{names[j]}", i, j) for i, j in combinations(best, 2)]
    terms = [t for t in terms if t.enough_marks(X, marked)]
    z = (tau - tau.mean()) / max(float(tau.std()), 1e-12)
    more = np.column_stack([*(t.values(X) for t in terms), z**2 - 1])
    rows = part._replace(X=np.ascontiguousarray(np.hstack([X, more])))
    where, p, m = flat_order(rows), X.shape[1], more.shape[1]
    varies, nothing = propensity.has_predictor, np.zeros(m)
    alpha, beta, rates = np.append(point.alpha, nothing), point.beta, point.log_w
    if not varies:  # a constant s as a logistic one with α = 0, so that slopes of s have a score
        c = float(np.clip(point.s(X[:1])[0], 1e-9, 1 - 1e-9))
        alpha, beta, rates = 0 * alpha, np.log(c) - np.log1p(-c), CERTAIN_LINK
    wide = replace(point, a=np.append(point.a, nothing), alpha=alpha, beta=beta, log_w=rates)
    links = Links(propensity.link, point.of_class.link)
    _, grad, info = loglik_grad_info(rows, links, wide.point)

    own = np.zeros(where.size, dtype=bool)
    free, of_s = where.entries(own), where.of_selection(0).start
    free.a[:p], free.b[...] = data.class_mask, True
    free.alpha[:, :p], free.beta[...] = data.selection_mask & varies, propensity.fixed is None
    if varies:
        free.uv[:, list(propensity.coordinate_rates)] = True
    unit = np.eye(where.size)
    directions = {"curves of t": unit[:, p : p + m - 1], "link of t": unit[:, p + m - 1 : p + m]}
    if varies:
        directions["curves of s"] = unit[:, of_s + p : of_s + p + m - 1]
    along = np.zeros((where.size, 1))
    along[of_s : of_s + p, 0] = np.where(varies & data.selection_mask, 0.0, point.a)
    if propensity.fixed is None and along.any():
        directions["s along t"] = along
    p_values, scores = {}, {}
    for question, E in directions.items():
        p_values[question], stat = _p_value(*efficient_scores(grad, info, own, E))
        labels = [t.name for t in terms] if "curves" in question else [""]
        scores[question] = pd.Series(stat, index=labels)
    first = scores["curves of t"].to_numpy()
    order = np.argsort(-np.abs(first))[:3]  # handed on to be refitted
    stands_out = chdtrc(1, first**2) * (m - 1) < P_VALUE
    named = tuple(terms[i] for i in order if stands_out[i])
    if not named and p_values["curves of t"] < P_VALUE:
        named = tuple(terms[i] for i in order)
    return ColumnScores(scores, p_values, named, len(X))


def efficient_scores(grad: Array, info: Array, own: Array, E: Array) -> tuple[Array, Array, Array]:
    """Scores of the directions E with the model's own projected out: U, V, and V's own share."""
    I_own = info[np.ix_(own, own)]
    I_out = (info @ E)[own]
    fitted = solve(I_own, np.column_stack([I_out, grad[own]]))
    U = E.T @ grad - I_out.T @ fitted[:, -1]
    full = E.T @ info @ E
    V = full - I_out.T @ fitted[:, :-1]
    return U, (V + V.T) / 2, np.diag(V) / np.maximum(np.diag(full), 1e-300)


def _p_value(U: Array, V: Array, share: Array) -> tuple[float, Array]:
    """The smaller of the joint p and of Bonferroni's, doubled, and every term's z."""
    use = share > 1e-8  # else a term has hardly any information of its own
    z = np.where(use, U / np.sqrt(np.maximum(np.diag(V), 1e-300)), 0.0)
    if not use.any():
        return 1.0, z
    single = float(chdtrc(1, np.max(z**2))) * int(use.sum())
    if use.sum() == 1:
        return min(single, 1.0), z
    root = np.sqrt(np.diag(V)[use])
    scaled = V[np.ix_(use, use)] / root / root[:, None]
    values, vectors = np.linalg.eigh(np.clip(np.nan_to_num(scaled), -1.0, 1.0))
    # Directions that the model's own terms nearly span say nothing.
    clear = values > 1e-6
    inner = vectors[:, clear].T @ (U[use] / root)
    joint = float(chdtrc(int(clear.sum()), float(np.sum(inner**2 / values[clear]))))
    return min(2 * min(single, joint), 1.0), z


def check_columns(evidence: "Evidence") -> list[Check]:
    """One record for every question."""
    found, checks = evidence.columns, []
    if evidence.too_large:
        how: dict[str, Any] = {"text": evidence.too_large, "bears_on": (Aspect.LABELS,)}
        return [Check("curves of t", "not computed", needs="passed", **how)]
    for name, p in () if found is None else found.p_values.items():
        assert found is not None
        scores, question = found.z[name], QUESTIONS[name]
        if scores.empty:  # all products of two columns have cells that are too thin
            continue
        strongest = str(scores.abs().idxmax())
        text = f"{question.what} would improve the fit with p = {p:.2g}"
        text += f"; the strongest is {strongest}." if strongest else "."
        # Columns that are kept out of s name the factors, as long as they stay out of it.
        names_too = name == "s along t" and evidence.fit.orientation.settled_by == "columns"
        checks.append(
            Check(
                name,
                passed_if(p >= P_VALUE),
                p,
                f"p at least {P_VALUE:g}",
                text + judged_on(found.rows, evidence.data.n),
                question.remedy + (f"{strongest}." if strongest else ""),
                bears_on=(question.aspect, *([Aspect.ORIENTATION] if names_too else [])),
                needs="passed",
                consequence=question.consequence,
            )
        )
    return checks


# A varying s ----------------------------------------------------------------------------------

LEAST_DIFFERENCE = 4.0  # log-likelihood units: below that two models predict alike
PER_COLUMN = 2.0  # the same for every column that the user named: by chance in one of twenty
STARTS = 6  # of SPM as a rival: its maximum is then found in all of the simulations
ANOTHER = "Fit model='scar', 'spm' or 'psychm'."


@dataclass(frozen=True, eq=False)
class Rival:
    """One model at the maximum of its weak density.

    ``elpd`` is the expected log predictive density of all rows, and ``rows`` the share of every row
    in it, before its weight; ``difference`` is that of the best model minus this one's, with its
    standard error; ``pi_sd`` is the sd of π by the delta method.
    """

    name: str
    spec: ModelSpec = field(repr=False)
    elpd: float
    difference: float
    se: float
    pi: float
    pi_sd: float
    rows: Array = field(repr=False)

    @property
    def refuted(self) -> bool:
        """Whether the best model predicts the labels better."""
        return self.difference > max(LEAST_DIFFERENCE, 2 * self.se)

    @property
    def reading(self) -> str:
        """What the difference shows."""
        if self.difference == 0:
            return "predicts the labels best"
        return "predicts the labels worse" if self.refuted else "no worse than chance allows"


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
            with suppress(ConvergenceError):  # weights of 1e9 leave some models without a mode
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
    records = {}
    for name, (density, z) in found.items():
        data, total, (q, slope) = density.data, density.logp_grad_info(z)[2], logit_pi(density, z)
        effective = float(np.trace(solve(total, total - density.prior_precision(z))))
        rows = row_terms(density.unpack(z), data)[0] - effective / float(data.kind_weights.sum())
        pi, elpd = float(sigmoid(q)), total_and_error(rows, data.weight)[0]
        records[name] = elpd, pi, pi * (1 - pi) * delta_sd(total, slope), rows
    *_, best = max(records.values(), key=lambda record: record[0])
    return tuple(
        Rival(name, found[name][0].spec, elpd, *total_and_error(best - rows, data.weight), pi, sd,
              rows)
        for name, (elpd, pi, sd, rows) in records.items()
    )  # fmt: skip


def check_constancy(evidence: "Evidence") -> list[Check]:
    """Whether s varies with x (or, for SCAR and naive, whether it may be taken as constant)."""
    spec, bend = evidence.fit.spec, evidence.bend
    how: dict[str, Any] = {"bears_on": (Aspect.LEVEL,), "needs": "weak"}
    if evidence.several:
        return []
    text = evidence.too_large
    if not text and spec.certain and evidence.data.n_audited:
        return []  # audited rows leave no room for s < 1
    if not text and bend is not None and bend.curved and evidence.data.learned is None:
        text = "The class bends; ask again once it may."
    own, *others = (None,) if text else evidence.rivals
    # SCAR is compared with the richer model, whose s varies; all others with SCAR.
    fit_for_it = [r for r in others if r.spec.constant != spec.constant and not r.spec.certain]
    if own is None or not fit_for_it:
        text = text or "The model to compare with has no mode on these data."
        return [Check("constancy of s", "not computed", text=text, **how)]
    rival = fit_for_it[0]
    ahead, se = total_and_error(own.rows - rival.rows, evidence.weak.data.weight)
    bound = max(LEAST_DIFFERENCE, 2 * se)
    if evidence.fit.options.selection_features is not None:
        # Which columns s may follow is then known, and a constant s is an ordinary null hypothesis.
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
            remark, remedy = "Not every positive is labelled: naive is contradicted.", ANOTHER
    text = (
        f"Prediction of the labels against {rival.name}: {ahead:+.1f} ± {se:.1f} {UNITS} "
        f"(expected log predictive density; counts beyond {bound:.1f}). {remark}"
    )
    how["consequence"] = "the labels do not show that s varies"
    if spec.constant:  # the split of h then rests on nothing but that
        how["bears_on"] = (Aspect.RANKING,)
        how["consequence"] = "the split rests on a constant propensity, which these data contradict"
    threshold = f"beyond {bound:.1f}"
    return [Check("constancy of s", status, ahead, threshold, text, remedy, **how)]
