r"""Alternative models of the same labels, each refitted from the answer at hand.

.. math:: L_i = \sum_k w_{ik}\, L_i(\theta_k), \qquad t = \kappa F(a \cdot x + b)

Every one is the row formula at a point of its flat order, :math:`E z + \text{offset}`, under the
weak ridge: other links F and ceilings κ of the class, false marks at a rate ε, squares and products
of columns, an s that follows the class's own score. Of several annotators also a few such rows
mixed (k): with a difficulty :math:`u_k` added to every :math:`\beta_j`, or without the label of an
annotator who copied another.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.factors import Factor, Link
from bayes_lepu.factors.logistic import LINK as LOGISTIC
from bayes_lepu.links import Array
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.rows import (
    CERTAIN_LINK,
    NOT_SHOWN,
    Links,
    Point,
    Rows,
    by_number,
    flat_order,
    formula,
    loglik_grad,
    loglik_grad_info,
    make_links,
    make_point,
    row_terms,
)
from bayes_lepu.rows.evaluation import row_slopes
from bayes_lepu.rows.factoring import solve
from bayes_lepu.verdict.climbing import WEAK_SLOPE_SCALE, Objective, climb
from bayes_lepu.verdict.columns import Term

MAX_CELLS = 20_000  # labels; beyond, the models are refitted to an evenly spaced part of the rows
STEPS = 60  # a refit starts at a good answer
SOME_FALSE = 0.01  # rate of false marks from which a rate that is estimated starts
# Slopes of a link against those of the logistic one for about the same curve.
LINK_SCALES = {"probit": 0.6, "cloglog": 0.8, "loglog": 0.8, "cauchit": 0.8}
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Form:
    """One alternative to the fitted model.

    Attributes
    ----------
    name : str
        In words.
    of_class : Factor
        Curve of the class, with a ceiling where it has one.
    false_marks : float or None
        Rate of marks on negative rows; None where every annotator's is estimated.
    rise : float
        By how much the log odds of s rise with one sd of the class's predictor, by the columns that
        the model keeps out of s.
    floor : float
        Where positive, s follows t: s = floor + (1 - 2 floor) t.
    terms : tuple of Term
        Squares and products that join the class's predictor.
    slopes : bool
        Whether the columns of the class enter every s.
    shifts, shares : arrays
        What all annotators' log odds of marking a row have in common, and how often.
    copied : (int, int, float) or None
        Which annotator copies which other one, on which share of the rows.
    """

    name: str
    of_class: Factor
    false_marks: float | None = 0.0
    rise: float = 0.0
    floor: float = 0.0
    terms: tuple[Term, ...] = ()
    slopes: bool = False
    shifts: Array = field(default_factory=lambda: np.zeros(1))
    shares: Array = field(default_factory=lambda: np.ones(1))
    copied: tuple[int, int, float] | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows on standardised columns, the curves, and the answer at hand.

    ``free_rates`` are the coordinates of the propensity's rates that are refitted.
    """

    rows: Rows
    link: Link
    of_class: Factor
    class_mask: NDArray[np.bool_]
    selection_mask: NDArray[np.bool_]
    free_rates: tuple[int, ...]
    start: Point

    @classmethod
    def of(cls, data: PUData, point: Parameters, propensity: Factor) -> "Problem":
        """The problem of standardised columns; a constant s is a logistic one without slopes."""
        rows = data.evenly(MAX_CELLS // data.n_annotators).as_rows
        mask, free, link = data.selection_mask.copy(), propensity.coordinate_rates, propensity.link
        mask[data.visit_places] = True
        if not propensity.has_predictor:
            s = np.clip(point.s(rows.X[:1])[..., 0], 1e-6, 1 - 1e-6)
            point = replace(point, alpha=0 * point.alpha, beta=logit(s), log_w=CERTAIN_LINK)
            mask, free, link = mask & False, (), LOGISTIC
        start = make_point(
            a=point.a, b=point.b, alpha=point.alpha, beta=point.beta, rates=point.log_w
        )
        if point.epsilon is not None:
            start = start._replace(epsilon=np.atleast_1d(point.epsilon))
        # Guesses and lapses of several annotators are kept as fitted.
        free = () if data.n_annotators > 1 else free
        return cls(rows, link, point.of_class, data.class_mask, mask, free, start)

    def swapped(self) -> "Problem":
        """The same with t and s swapped in the start."""
        at = self.start
        start = make_point(a=at.alpha[0], b=at.beta[0], alpha=at.a, beta=at.b, rates=at.rates)
        return replace(self, start=start)

    def refit(self, form: Form, z: Array | None = None) -> "Refit":
        """The mode next to the answer at hand, or to other coordinates."""
        found = Refit.of(self, form)
        z = found.z if z is None else z
        if len(self.rows.labels) == 1:
            return replace(found, z=climb(found.objective, z, max_iterations=STEPS)[0])
        best = minimize(found.loss, z, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
        return replace(found, z=best.x)


@dataclass(frozen=True, eq=False)
class Refit:
    """A form at coordinates z: the flat order of the row formula is E z + offset.

    ``precision`` is that of the weak ridge. ``parts`` are the rows of every part of a mixture,
    with the logarithms of their shares and what is added to every β.
    """

    form: Form
    rows: Rows
    links: Links
    E: Array
    offset: Array
    precision: Array
    rates: Array
    free_rates: tuple[int, ...]
    parts: tuple[tuple[Rows, Array | float, float], ...]
    z: Array

    @classmethod
    def of(cls, problem: Problem, form: Form) -> "Refit":
        """The form at the answer at hand."""
        rows, start, extra = problem.rows, problem.start, np.zeros(len(form.terms))
        if form.terms:
            more = np.column_stack([term.values(rows.X) for term in form.terms])
            rows = rows._replace(X=np.ascontiguousarray(np.hstack([rows.X, more])))
        where, p = flat_order(rows), len(start.a)
        scale = link_scale(form.of_class) / link_scale(problem.of_class)
        along = start.a / max(float((problem.rows.X @ start.a).std()), TINY)
        mask = problem.class_mask if form.slopes else problem.selection_mask
        rates, free_rates, link = start.rates, list(problem.free_rates), problem.link
        if form.floor:
            rates, free_rates, link = (
                np.log([[form.floor, form.floor, 1 - 2 * form.floor]]),
                [],
                LOGISTIC,
            )

        free = np.zeros(where.size, dtype=bool)
        first, offset, precision = np.zeros((3, where.size))
        free[where.of_class()] = [*problem.class_mask, *[True] * extra.size, True]
        first[where.of_class()] = scale * np.array([*start.a, *extra, start.b])
        precision[: where.p] = (WEAK_SLOPE_SCALE * scale) ** -2
        for j in range(0 if form.floor else where.J):
            at, uv, e = where.of_selection(j), where.own(j).start, where.own(j).stop - 1
            free[at] = [*mask, *[False] * extra.size, True]
            first[at] = [*start.alpha[j], *extra, start.beta[j]]
            offset[at][:p] = np.where(mask, 0.0, form.rise * along)
            precision[at.start : at.stop - 1] = WEAK_SLOPE_SCALE**-2
            ratios = start.rates[j] - start.rates[j, 2]
            free[[uv + k for k in free_rates]] = True
            first[[uv + k for k in free_rates]] = np.clip(ratios[free_rates], -12, 12)
            free[e], first[e] = form.false_marks is None, logit(start.epsilon[j] or SOME_FALSE)
        E = np.eye(where.size)[:, free]
        if form.floor:  # (α, β) = (a, b)
            E[where.of_selection(0)] = E[where.of_class()]
        return cls(
            form,
            rows,
            make_links(link, form.of_class.link),
            E,
            offset,
            precision[free],
            rates,
            tuple(free_rates),
            _parts(rows, form),
            first[free],
        )

    def point(self, z: Array) -> Point:
        """The point of the row formula."""
        at = flat_order(self.rows).entries(self.E @ z + self.offset)
        rates = self.rates
        if self.free_rates:
            logits = np.where(np.isneginf(rates), -np.inf, 0.0)
            logits[:, self.free_rates] = at.uv[:, self.free_rates]
            rates = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        marks = self.form.false_marks
        return make_point(
            a=at.a,
            b=at.b,
            alpha=at.alpha,
            beta=at.beta,
            rates=rates,
            epsilon=expit(at.e) if marks is None else marks,
            class_rates=self.form.of_class.log_rates(),
        )

    @property
    def weight(self) -> Array:
        """How often every row counts."""
        return self.rows.weight if self.rows.weight.size else np.ones(len(self.rows.X))

    @property
    def objective(self) -> Objective:
        """Log likelihood of one annotator with the weak ridge."""
        rows, links, E, ridge = self.rows, by_number(self.links), self.E, self.precision

        def slopes(z: Array) -> tuple[float, Array]:
            value, grad = loglik_grad(rows, links, self.point(z))
            return value - 0.5 * float(ridge @ z**2), E.T @ grad - ridge * z

        def curvature(z: Array) -> Array:
            return E.T @ loglik_grad_info(rows, links, self.point(z))[2] @ E + np.diag(ridge)

        return Objective(slopes, curvature)

    def loss(self, z: Array) -> tuple[float, Array]:
        """Minus the log likelihood of any number of annotators, with the weak ridge."""
        where, at = flat_order(self.rows), self.evaluate(z)
        slopes, grad = self.weight * at.slopes, np.zeros(where.size)
        by_column = np.vstack([self.rows.X.T @ slopes.T, slopes.sum(axis=1)])
        entries = where.entries(grad)
        entries.a[...], entries.b[...] = by_column[:-1, -1], by_column[-1, -1]
        entries.alpha[...], entries.beta[...] = by_column[:-1, :-1].T, by_column[-1, :-1]
        entries.e[...] = at.false @ self.weight
        value = float(self.weight @ at.loglik) - 0.5 * float(self.precision @ z**2)
        return -value, self.precision * z - self.E.T @ grad

    def evaluate(self, z: Array) -> "Evaluated":
        """What the rows say at coordinates, the parts of a mixture taken together."""
        point, links, found = self.point(z), by_number(self.links), []
        for rows, log_share, shift in self.parts:
            at = point._replace(beta=point.beta + shift)
            loglik, m = row_terms(rows, links, at)
            d = row_slopes(rows, links, at)[1]
            false = np.where(rows.labels >= 0, rows.labels - point.epsilon[:, None], 0.0) * (1 - m)
            found.append(Evaluated(loglik + log_share, m, d, false))
        if len(found) == 1:
            return found[0]
        loglik = np.logaddexp.reduce([part.loglik for part in found])
        shares = [np.exp(part.loglik - loglik) for part in found]
        mixed = zip(
            *([s * v for v in part[1:]] for s, part in zip(shares, found, strict=True)), strict=True
        )
        return Evaluated(loglik, *(sum(parts) for parts in mixed))

    # What a refit says ------------------------------------------------------------------------

    @cached_property
    def found(self) -> "Evaluated":
        """The rows at the mode; of one annotator without their slopes."""
        if len(self.rows.labels) > 1:
            return self.evaluate(self.z)
        nothing = np.zeros((0, len(self.rows.X)))
        loglik, m = formula.row_terms(self.rows, self.links, self.point(self.z))
        return Evaluated(loglik, m, nothing, nothing)

    @cached_property
    def score(self) -> Array:
        """The class's predictor."""
        point = self.point(self.z)
        return self.rows.X @ point.a + point.b

    def figures(self) -> dict[str, Any]:
        """Log likelihood, π, c (share of the positives that somebody marked), P(y=1 | labels)."""
        t, at = self.form.of_class.value(self.score), self.found
        pi, marked = float(np.average(t, weights=self.weight)), (self.rows.labels == 1).any(axis=0)
        return {
            "loglik": float(self.weight @ at.loglik),
            "pi": pi,
            "c": float(np.average(at.m * marked, weights=self.weight)) / max(pi, TINY),
            "missed": at.m[self.rows.labels[0] == 0],
        }

    def sd(self) -> float:
        """Standard deviation of π: delta method, information from the rows' own scores."""
        where, at, X1 = flat_order(self.rows), self.found, _with_one(self.rows.X)
        G = np.zeros((len(X1), where.size))
        G[:, where.of_class()] = at.slopes[-1][:, None] * X1
        for j in range(where.J):
            G[:, where.of_selection(j)] = at.slopes[j][:, None] * X1
            G[:, where.own(j).stop - 1] = at.false[j]
        G, w = G @ self.E, self.weight
        curve = self.form.of_class
        slope = np.zeros(where.size)
        slope[where.of_class()] = w * np.exp(curve.logs(self.score, curve.log_rates())[2]) @ X1
        by_pi = self.E.T @ slope / w.sum()
        total = (G * w[:, None]).T @ G + np.diag(self.precision)
        return float(np.sqrt(max(float(by_pi @ solve(total, by_pi)), 0.0)))

    def doubtful(self) -> dict[str, Any]:
        """The same h, of another class and propensity.

        With twice the odds of t and s lowered by as much, s t stays what it is at every row: the
        clearest positives are marked as the model says, doubtful ones down to half as often.
        """
        own, curve, unlabelled = self.figures(), self.form.of_class, self.rows.labels[0] == 0
        t, more = curve.value(self.score), expit(curve.log_odds(self.score) + np.log(2))
        pi, m = float(np.average(more, weights=self.weight)), own["missed"]
        h = (t[unlabelled] - m) / np.maximum(1 - m, TINY)
        missed = (more[unlabelled] - h) / np.maximum(1 - h, TINY)
        return {**own, "pi": pi, "c": own["c"] * own["pi"] / pi, "missed": missed}


class Evaluated(NamedTuple):
    """Every row's log likelihood, P(y=1 | labels), and its slopes in the predictors and in e."""

    loglik: Array
    m: Array
    slopes: Array  # (J + 1, n), the class last
    false: Array  # (J, n)


def _parts(rows: Rows, form: Form) -> tuple[tuple[Rows, Array | float, float], ...]:
    """The parts of a mixture."""
    rows = rows._replace(weight=np.zeros(0))
    if form.copied is None:
        return tuple((rows, np.log(w), u) for u, w in zip(form.shifts, form.shares, strict=True))
    j, other, part = form.copied
    both = (rows.labels[j] >= 0) & (rows.labels[other] >= 0)
    same = both & (rows.labels[j] == rows.labels[other])
    without = rows.labels.copy()
    without[j] = NOT_SHOWN
    with np.errstate(divide="ignore"):
        own, copies = np.log(np.where(both, 1 - part, 1.0)), np.log(np.where(same, part, 0.0))
    return (rows, own, 0.0), (rows._replace(labels=without), copies, 0.0)


def link_scale(curve: Factor) -> float:
    """Slopes of a curve against those of the logistic one."""
    return LINK_SCALES.get(curve.link.name, 1.0)


def _with_one(X: Array) -> Array:
    return np.column_stack([X, np.ones(len(X))])
