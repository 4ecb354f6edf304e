r"""Forms of the label probability, each refitted from the answer at hand.

.. math:: h = t\,s + (1-t)\,\varepsilon, \qquad t = \kappa F(a \cdot x + b)

The fitted model sets F = σ, κ = 1 and ε = 0; what the others say is compared in `forms`.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bayes_lepu.diagnostics.climbing import Objective, climb
from bayes_lepu.diagnostics.columns import Term
from bayes_lepu.diagnostics.quick_likelihood import one_annotator
from bayes_lepu.diagnostics.subject import WEAK_SLOPE_SCALE, Subject
from bayes_lepu.factors import CURVES, REGISTRY, Factor, ceiling
from bayes_lepu.likelihood import Links, Point, Rows, flat_order, make_links, make_point
from bayes_lepu.likelihood.formula import outside_moments, row_terms
from bayes_lepu.links import Array

MAX_ROWS = 20_000  # beyond, the forms are refitted to an evenly spaced part of the rows
FALSE_MARKS = (0.0, 0.02, 0.05)
CEILINGS = (0.9, 0.8)
RISES = (0.5, 1.0, 2.0)  # of the log odds of a constant s, over one sd of the class's predictor
FLOORS = (0.05, 0.1, 0.2)  # of an s that follows t, from s = floor to s = 1 - floor
# Slopes of a link against those of the logistic one for about the same curve.
LINK_SCALES = {"logistic": 1.0, "probit": 0.6, "cloglog": 0.8, "loglog": 0.8, "cauchit": 0.8}


def link_scale(curve: Factor) -> float:
    """Slopes of a curve against those of the logistic one."""
    return LINK_SCALES.get(curve.link.name, 1.0)


@dataclass(frozen=True)
class Form:
    """One form of the label probability.

    Attributes
    ----------
    name : str
        In words.
    of_class : Factor
        Link of the class probability, with a ceiling where it has one.
    false_marks : float
        Rate of marks on negative rows.
    rise : float
        By how much the log odds of s rise with one sd of the class's predictor, by the columns that
        the model keeps out of s.
    floor : float
        Where positive, s follows t: s = floor + (1 - 2 floor) t.
    terms : tuple of Term
        Squares and products that join the class's predictor.
    """

    name: str
    of_class: Factor
    false_marks: float = 0.0
    rise: float = 0.0
    floor: float = 0.0
    terms: tuple[Term, ...] = ()


def list_forms(own: Factor, terms: tuple[Term, ...], *, kept_out: bool) -> list[Form]:
    """All forms, the fitted model's ``own`` first (``kept_out``: columns of t do not enter s)."""
    shapes = [Form(own.name, own)]
    shapes += [Form(name, curve) for name, curve in CURVES.items() if curve is not own]
    shapes += [Form(f"ceiling {top:g}", ceiling(top)) for top in CEILINGS]
    if terms:
        shapes.append(Form("with " + ", ".join(t.name for t in terms), own, terms=terms))
    forms = [
        form
        if not rate
        else replace(form, name=f"{form.name}, {rate:.0%} false marks", false_marks=rate)
        for form in shapes
        for rate in FALSE_MARKS
    ]
    if kept_out:
        forms += [Form(f"s rises with t's score by {k:g} per sd", own, rise=k) for k in RISES]
        forms += [Form(f"s = {f:g} + {1 - 2 * f:g} t", own, floor=f) for f in FLOORS]
    return forms


@dataclass(frozen=True, eq=False)
class Problem:
    """The rows, the fitted propensity and the answer at hand, in the kernel's flat order."""

    rows: Rows
    propensity: Factor
    of_class: Factor
    class_mask: NDArray[np.bool_]
    selection_mask: NDArray[np.bool_]
    start: Point
    spread: float  # sd of t's predictor

    @property
    def direction(self) -> Array:
        """The slopes of t for a predictor of sd 1."""
        return self.start.a / self.spread

    @classmethod
    def of(cls, subject: Subject) -> "Problem":
        """The problem on standardised columns."""
        data, point = subject.weak.data, subject.inside(subject.peaks[0].point)
        rows = data.evenly(MAX_ROWS).as_rows
        tau = point.tau(rows.X)
        return cls(
            rows,
            subject.propensity,
            point.of_class,
            data.class_mask,
            data.selection_mask,
            make_point(a=point.a, b=point.b, alpha=point.alpha, beta=point.beta, rates=point.log_w),
            max(float(tau.std()), 1e-12),
        )

    def exchanged(self) -> "Problem":
        """The same with a start whose factors are exchanged."""
        start = self.start
        turned = make_point(
            a=start.alpha[0], b=start.beta[0], alpha=start.a, beta=start.b, rates=start.rates[0]
        )
        return replace(self, start=turned, spread=max(float((self.rows.X @ turned.a).std()), 1e-12))

    def stays(self, form: Form, z: Array) -> bool:
        """Whether a refit ended nearer to its start than to the start with exchanged factors."""
        score = self.rows.X @ self.point(form, self.free(form), z).a
        slopes = self.start.a, self.start.alpha[0]
        here, there = (np.corrcoef(score, self.rows.X @ a)[0, 1] for a in slopes)
        return bool(here > there)

    def doubtful(self, z: Array, own: dict[str, Any]) -> dict[str, Any]:
        """The fitted form's own h, of another class and propensity.

        With twice the odds of t and s lowered by as much, s t stays what it is at every row: the
        clearest positives are marked as the model says, doubtful ones down to half as often.
        """
        form = Form("", self.of_class)
        rows, point = self.rows_of(form), self.point(form, self.free(form), z)
        tau = rows.X @ point.a + point.b
        t = self.of_class.value(tau)
        more = expit(self.of_class.log_odds(tau) + np.log(2))
        share_of = rows.weight if rows.weight.size else None
        pi, new = (float(np.average(v, weights=share_of)) for v in (t, more))
        m, unlabelled = own["missed"], rows.labels[0] == 0
        h = (t[unlabelled] - m) / np.maximum(1 - m, 1e-12)
        missed = (more[unlabelled] - h) / np.maximum(1 - h, 1e-12)
        return {**own, "pi": new, "c": own["c"] * pi / new, "missed": missed}

    # One form -----------------------------------------------------------------------------------

    def rows_of(self, form: Form) -> Rows:
        """The rows, with the squares and products that a form adds."""
        if not form.terms:
            return self.rows
        more = np.column_stack([term.values(self.rows.X) for term in form.terms])
        return self.rows._replace(X=np.ascontiguousarray(np.hstack([self.rows.X, more])))

    def links_of(self, form: Form) -> Links:
        """The links of a form."""
        return make_links(self._propensity(form).link, form.of_class.link)

    def _propensity(self, form: Form) -> Factor:
        constant = not self.propensity.has_predictor
        return REGISTRY["logistic"] if form.floor or (form.rise and constant) else self.propensity

    def free(self, form: Form) -> NDArray[np.bool_]:
        """Which of the flat coordinates are free."""
        where, extra = flat_order(self.rows_of(form)), len(form.terms)
        free = np.zeros(where.size, dtype=bool)
        free[where.of_class()] = [*self.class_mask, *[True] * extra, True]
        propensity = self._propensity(form)
        level = propensity.has_predictor and not form.floor
        slopes = [False] * extra + [level]
        masked = self.selection_mask & (level and self.propensity.has_predictor)
        free[where.of_selection(0)] = [*masked, *slopes]
        free[where.own(0).start + np.array(propensity.coordinate_rates, dtype=int)] = True
        return free

    def point(self, form: Form, free: NDArray[np.bool_], z: Array) -> Point:
        """The point of free coordinates."""
        where, extra = flat_order(self.rows_of(form)), len(form.terms)
        flat = np.zeros(where.size)
        if form.rise:  # of the columns that the model keeps out of s
            kept_out = ~free[where.of_selection(0)][: len(self.direction)]
            slopes = np.where(kept_out, form.rise * self.direction, 0.0)
            flat[where.of_selection(0)][: len(self.direction)] = slopes
        flat[free] = z
        if form.floor:
            flat[where.of_selection(0)] = flat[where.of_class()]
        slopes = flat[where.of_selection(0)]
        propensity = self._propensity(form)
        places = where.own(0).start + np.array(propensity.coordinate_rates, dtype=int)
        return make_point(
            a=flat[: where.p],
            b=flat[where.p],
            alpha=np.concatenate([slopes[: where.p - extra], np.zeros(extra)]),
            beta=slopes[-1],
            rates=_log([form.floor, form.floor, 1 - 2 * form.floor])
            if form.floor
            else propensity.log_rates(flat[places]),
            epsilon=form.false_marks,
            class_rates=form.of_class.log_rates(),
        )

    def first(self, form: Form, free: NDArray[np.bool_]) -> Array:
        """Where a form's refit starts: the answer at hand, slopes on the link's own scale."""
        where, extra = flat_order(self.rows_of(form)), len(form.terms)
        flat, start, scale = np.zeros(where.size), self.start, self._scale(form)
        flat[where.of_class()] = scale * np.concatenate([start.a, np.zeros(extra), [start.b]])
        propensity = self._propensity(form)
        if self.propensity.has_predictor and not form.floor:
            flat[where.of_selection(0)] = [*start.alpha[0], *np.zeros(extra), start.beta[0]]
        elif form.rise:
            c = float(np.exp(start.rates[0, 0]))
            flat[where.of_selection(0)][-1] = np.log(c) - np.log1p(-min(c, 0.999))
        rates = np.clip(propensity.coordinates(start.rates[0]), -12, 12)
        flat[where.own(0).start + np.array(propensity.coordinate_rates, dtype=int)] = rates
        return flat[free]

    def objective(self, form: Form, free: NDArray[np.bool_]) -> Objective:
        """Log likelihood with the weak ridge."""
        rows, links = self.rows_of(form), self.links_of(form)
        precision = self._ridge(form)[free]
        count, moved, where = int(free.sum()), free.copy(), flat_order(rows)
        tie = np.eye(count)
        if form.floor:  # (α, β) = (a, b): the same coordinates move both
            moved[where.of_selection(0)] = free[where.of_class()]
            tie = np.vstack([tie, tie])
        evaluate = one_annotator(rows, links, moved)

        def objective(z: Array) -> tuple[float, Array, Array]:
            value, grad, info = evaluate(self.point(form, free, z))
            grad, info = tie.T @ grad, tie.T @ info @ tie
            return (
                value - 0.5 * float(precision @ z**2),
                grad - precision * z,
                info + np.diag(precision),
            )

        return objective

    def _scale(self, form: Form) -> float:
        """Slopes of a form's class against those of the fitted one."""
        return link_scale(form.of_class) / link_scale(self.of_class)

    def _ridge(self, form: Form) -> Array:
        where = flat_order(self.rows_of(form))
        precision = np.zeros(where.size)
        precision[: where.p] = (WEAK_SLOPE_SCALE * self._scale(form)) ** -2
        precision[where.of_selection(0)] = WEAK_SLOPE_SCALE**-2
        precision[where.of_selection(0).stop - 1] = 0.0
        return precision

    def refit(self, form: Form, warm: Array | None) -> Array:
        """Free coordinates at the form's maximum next to the answer at hand."""
        free = self.free(form)
        start = self.first(form, free) if warm is None else warm
        return climb(self.objective(form, free), start, max_iterations=60)[0]

    def reading(self, form: Form, z: Array) -> dict[str, Any]:
        """Log likelihood (without the ridge), π, c, and P(y=1 | x, labels) of every row."""
        rows, links = self.rows_of(form), self.links_of(form)
        point = self.point(form, self.free(form), z)
        loglik, m = row_terms(rows, links, point)
        total, T, _, M, _ = outside_moments(rows, links, point)
        unlabelled = rows.labels[0] == 0
        return {
            "loglik": float(rows.weight @ loglik if rows.weight.size else loglik.sum()),
            "pi": T / total,
            "c": float(M[0]) / max(T, 1e-300),
            "missed": m[unlabelled],
        }


def _log(rates: list[float]) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(rates)
