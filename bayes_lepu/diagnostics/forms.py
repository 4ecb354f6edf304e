r"""How far the form carries the answer: π and c under other forms that predict the labels as well.

Every row of the labels has probability

.. math:: h = t\,s + (1-t)\,\varepsilon, \qquad t = \kappa F(a \cdot x + b),

and the fitted model sets F = σ, κ = 1 and ε = 0. Here the class gets other links F (probit, both
complementary log-log links, cauchit), a ceiling κ below one, squares and products of the columns
that `columns` names; marks may be false at a small rate ε; and s may follow the class's own score
where the model keeps columns out of it. Each is refitted from the answer at hand, under the same
weak ridge. Forms whose log likelihood lies within 4 units of the best predict the labels as well:
what they say about π differs by the form alone, not by the data.

The range of π over them, widened by the distance from π to the ends of the usual likelihood set, is
the *form range*. Of a posterior it also holds its interval, moved by what each form moves π: where
priors shift the posterior, the interval of the fitted form alone is too short on the other side.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.diagnostics import thresholds
from bayes_lepu.diagnostics.climbing import Objective, climb
from bayes_lepu.diagnostics.columns import Term
from bayes_lepu.diagnostics.levels import LEVEL_REMEDY, OWN_BRANCHES, interval
from bayes_lepu.diagnostics.profile import Profile
from bayes_lepu.diagnostics.quick_likelihood import one_annotator
from bayes_lepu.diagnostics.records import Aspect, Check, not_computed, passed_if
from bayes_lepu.diagnostics.subject import WEAK_SLOPE_SCALE, Subject
from bayes_lepu.diagnostics.thresholds import grade, graded, judged_on
from bayes_lepu.likelihood import Links, Point, Rows, flat_order, make_links, make_point
from bayes_lepu.likelihood.formula import outside_moments, row_terms
from bayes_lepu.links import Array
from bayes_lepu.propensities import REGISTRY, Propensity
from bayes_lepu.result.numbers_in_words import UNITS, share

if TYPE_CHECKING:
    from bayes_lepu.diagnostics.evidence import Evidence

AS_WELL = 4.0  # log-likelihood units within which two forms predict the labels alike
WIDENING = 1.0  # times the half-width of the likelihood set of π, beyond the outermost forms
MAX_ROWS = 20_000  # beyond, the forms are refitted to an evenly spaced part of the rows
FALSE_MARKS = (0.0, 0.02, 0.05)
CEILINGS = (0.9, 0.8)
RISES = (0.5, 1.0, 2.0)  # of the log odds of a constant s, over one sd of the class's predictor
FLOORS = (0.05, 0.1, 0.2)  # of an s that follows t, from s = floor to s = 1 - floor
# Slopes of a link against those of the logistic one for about the same curve.
LINK_SCALES = {"logistic": 1.0, "probit": 0.6, "cloglog": 0.8, "loglog": 0.8, "cauchit": 0.8}
OTHER_LINKS = [name for name in LINK_SCALES if name != "logistic"]
TOP = 100
MOVED = "the penalty or prior of this fit moved it out of what the labels leave"


_WIDTH: dict[str, Any] = {
    "bears_on": (Aspect.LEVEL,),
    "needs": "passed",
    "consequence": "forms that predict the labels as well disagree about it",
}


@dataclass(frozen=True)
class Form:
    """One form of the label probability.

    Attributes
    ----------
    name : str
        In words.
    link : str
        Link of the class probability.
    ceiling : float
        Its highest value.
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
    link: str = "logistic"
    ceiling: float = 1.0
    false_marks: float = 0.0
    rise: float = 0.0
    floor: float = 0.0
    terms: tuple[Term, ...] = ()


@dataclass(frozen=True, eq=False)
class FormRange:
    """The class prior over all forms that predict the labels as well.

    Attributes
    ----------
    table : DataFrame
        One row per form: below (log-likelihood units below the best form), pi, c, top (share of
        the 100 unlabelled rows most likely to be positive that are the same), kept.
    low, high : float
        The form range of π.
    own_gap : float
        How far the fitted model's own form lies below the best one.
    rows : int
        How many rows the forms were refitted to.
    moved : bool
        Whether the estimate of π lies where the likelihood of no form does.
    """

    table: pd.DataFrame
    low: float
    high: float
    own_gap: float
    rows: int
    moved: bool = False

    @property
    def kept(self) -> pd.DataFrame:
        """The forms that predict the labels as well as the best one."""
        return self.table[self.table["kept"]]


def list_forms(terms: tuple[Term, ...], *, kept_out: bool) -> list[Form]:
    """All forms, the fitted model's own first (``kept_out``: columns of t do not enter s)."""
    shapes = [Form("logistic", false_marks=0.0)]
    shapes += [Form(name, link=name) for name in OTHER_LINKS]
    shapes += [Form(f"ceiling {top:g}", ceiling=top) for top in CEILINGS]
    if terms:
        shapes.append(Form("with " + ", ".join(t.name for t in terms), terms=terms))
    forms = [
        form
        if not rate
        else replace(form, name=f"{form.name}, {rate:.0%} false marks", false_marks=rate)
        for form in shapes
        for rate in FALSE_MARKS
    ]
    if kept_out:
        forms += [Form(f"s rises with t's score by {k:g} per sd", rise=k) for k in RISES]
        forms += [Form(f"s = {f:g} + {1 - 2 * f:g} t", floor=f) for f in FLOORS]
    return forms


def form_range(
    subject: Subject, profile: Profile | None, terms: tuple[Term, ...]
) -> FormRange | None:
    """Refit every form and keep those that predict the labels as well."""
    known = subject.propensity.fixed is not None
    if profile is None or known or subject.peaks[0].point.epsilon is not None:
        return None  # fitted false marks are themselves one of the forms
    if subject.fit.spec.cases:
        return None  # the forms are those of rows that were drawn together
    problem = Problem.of(subject)
    own = subject.peaks[0]
    data = subject.data
    varies = subject.propensity.has_predictor
    kept_out = not varies or bool(np.any(data.class_mask & ~data.selection_mask))
    forms = list_forms(terms, kept_out=kept_out)
    records: list[dict[str, Any]] = []
    before: tuple[Form, Array] | None = None
    skip: Form | None = None
    for form in forms:
        shape = replace(form, name="", false_marks=0.0)
        if form.false_marks and shape == skip:
            continue
        warm = before[1] if before is not None and before[0] == shape else None
        z = problem.refit(form, warm)
        records.append({"form": form.name, **problem.reading(form, z)})
        before = shape, z
        # A rate of false marks that makes a form worse makes it worse still when higher.
        worse = form.false_marks and records[-1]["loglik"] < records[-2]["loglik"] - AS_WELL
        skip = shape if worse else None
    table = pd.DataFrame(records).set_index("form")
    table["below"] = table["loglik"].max() - table.pop("loglik")
    first = table["missed"].iloc[0]
    top = set(np.argsort(-first)[:TOP])
    table["top"] = [
        len(top & set(np.argsort(-missed)[:TOP])) / max(len(top), 1)
        for missed in table.pop("missed")
    ]
    table["kept"] = (table["below"] <= AS_WELL) | (np.arange(len(table)) == 0)
    pi = float(own.point.t(subject.weak.data.X).mean())
    pieces = profile.likelihood_set(branches=OWN_BRANCHES)
    kept = table.loc[table["kept"], "pi"]
    low = float(kept.min()) - WIDENING * max(pi - pieces[0][0], 0.0)
    high = float(kept.max()) + WIDENING * max(pieces[-1][1] - pi, 0.0)
    low = max(low, min(float(np.mean(subject.data.l)), float(kept.min())))
    estimate, rounding = float(np.mean(subject.pi_draws)), thresholds.ROUNDING
    moved = not low - rounding <= estimate <= high + rounding
    if not subject.fit.is_point:
        shifts, ends = kept - kept.iloc[0], interval(subject.pi_given_naming)
        low = min(low, ends[0] + float(shifts.min()))
        high = max(high, ends[1] + float(shifts.max()))
    return FormRange(
        table[["below", "pi", "c", "top", "kept"]],
        max(low, 0.0),
        min(high, 1.0),
        float(table["below"].iloc[0]),
        len(problem.rows.X),
        moved,
    )


@dataclass(frozen=True, eq=False)
class Problem:
    """The rows, the fitted propensity and the answer at hand, in the kernel's flat order."""

    rows: Rows
    propensity: Propensity
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
            data.class_mask,
            data.selection_mask,
            make_point(a=point.a, b=point.b, alpha=point.alpha, beta=point.beta, rates=point.log_w),
            max(float(tau.std()), 1e-12),
        )

    # One form -----------------------------------------------------------------------------------

    def rows_of(self, form: Form) -> Rows:
        """The rows, with the squares and products that a form adds."""
        if not form.terms:
            return self.rows
        more = np.column_stack([term.values(self.rows.X) for term in form.terms])
        return self.rows._replace(X=np.ascontiguousarray(np.hstack([self.rows.X, more])))

    def links_of(self, form: Form) -> Links:
        """The links of a form."""
        return make_links(self._propensity(form).link, REGISTRY[form.link].link)

    def _propensity(self, form: Form) -> Propensity:
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
            class_rates=_log([0.0, 1.0 - form.ceiling, form.ceiling]),
        )

    def first(self, form: Form, free: NDArray[np.bool_]) -> Array:
        """Where a form's refit starts: the answer at hand, slopes on the link's own scale."""
        where, extra = flat_order(self.rows_of(form)), len(form.terms)
        flat, start, scale = np.zeros(where.size), self.start, LINK_SCALES[form.link]
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

    def _ridge(self, form: Form) -> Array:
        where = flat_order(self.rows_of(form))
        precision = np.zeros(where.size)
        precision[: where.p] = (WEAK_SLOPE_SCALE * LINK_SCALES[form.link]) ** -2
        precision[where.of_selection(0)] = WEAK_SLOPE_SCALE**-2
        precision[where.of_selection(0).stop - 1] = 0.0
        return precision

    def refit(self, form: Form, warm: Array | None) -> Array:
        """Free coordinates at the form's maximum next to the answer at hand."""
        free = self.free(form)
        start = self.first(form, free) if warm is None else warm
        return climb(self.objective(form, free), start, max_iterations=60)[0]

    def reading(self, form: Form, z: Array) -> dict[str, object]:
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


def check_forms(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Whether π stays where it is under other forms, and whether the fitted form is among them."""
    found = evidence.forms
    if found is None:
        if subject.propensity.fixed is not None:
            return []
        why = subject.too_large.rstrip(".")
        if subject.fit.spec.false_marks:
            why = "False marks are fitted, and other forms are tried without them"
        if subject.fit.spec.cases:
            why = "Other forms are tried on rows that were drawn together only"
        text = f"{why}: how far the form carries π is not known."
        return [not_computed("form range", text, **_WIDTH)]
    kept, pi = found.kept, float(np.mean(subject.pi_draws))
    bounds = thresholds.relative(thresholds.FORM_WIDTH, pi)
    width = found.high - found.low
    status = grade(width, bounds)
    if found.moved and status == "passed":
        status = "weak"
    text = (
        f"{len(kept)} of {len(found.table)} forms predict the labels as well; over them π is "
        f"{share(found.low)} to {share(found.high)}, c {kept['c'].min():.2f} to "
        f"{kept['c'].max():.2f}, and {kept['top'].min():.0%} or more of the {TOP} likeliest missed "
        f"rows are the same.{judged_on(found.rows, subject.data.n)}"
    )
    if found.moved:
        text += f" The penalty or prior put the estimate, {share(pi)}, where no form has it."
    best = found.table["below"].idxmin()
    return [
        graded(
            "form range",
            width,
            bounds,
            text,
            LEVEL_REMEDY,
            threshold="width of π {}",
            status=status,
            **(_WIDTH | {"consequence": MOVED} if found.moved else _WIDTH),
        ),
        passed_if(
            found.own_gap <= AS_WELL,
            "form of h",
            found.own_gap,
            f"at most {AS_WELL:g} {UNITS} below the best form",
            f"The best form ({best}) is {found.own_gap:.1f} {UNITS} better than the fitted one.",
            "Fit the form that the labels prefer, or read π as its range.",
            bears_on=(Aspect.LABELS,),
            needs="passed",
            consequence="another form of t predicts the labels better",
        ),
    ]
