r"""How far the form carries the answer: π under other models that predict the labels as well.

Every alternative is the row formula at a point of its flat order, :math:`E z + \text{offset}`,

.. math:: L_i = \sum_k w_{ik}\, L_i(\theta_k), \qquad t = \kappa F(a \cdot x + b),

refitted from the answer at hand under the weak ridge. The fitted model sets F = σ and κ = 1, and no
mark is false. Here the class gets other links F (probit, both complementary log-log links,
cauchit), a ceiling κ below one, squares and products of the columns that `columns` names; marks may
be false at a small rate ε; and s may follow the class's own score where the model keeps columns out
of it, or be lower for doubtful positives, at the same h. Of several annotators a few such rows may
be mixed (k): with a difficulty :math:`u_k` added to every :math:`\beta_j`, or without the label of
an annotator who copied another (`several_annotators`). Models whose log likelihood lies within 4
units of the best predict the labels as well: what they say about π differs by the form alone.

The range of π over them, widened by the distance from π to the ends of the usual likelihood set, is
the *form range*. Of a posterior it also holds its interval, moved by what each form moves π: where
priors shift the posterior, the interval of the fitted form alone is too short on the other side.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.factors import CURVES, Factor, Link, ceiling
from bayes_lepu.factors.curves import LOGISTIC
from bayes_lepu.links import Array, RowKind
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.result.numbers_in_words import UNITS, share, worse
from bayes_lepu.rows import (
    CERTAIN_LINK,
    NOT_SHOWN,
    Links,
    Point,
    Rows,
    flat_order,
    loglik_grad,
    loglik_grad_info,
    make_point,
    row_slopes,
    row_terms,
)
from bayes_lepu.rows.factoring import inverse_root
from bayes_lepu.verdict.columns import Term
from bayes_lepu.verdict.levels import LEVEL_REMEDY, interval
from bayes_lepu.verdict.peaks import WEAK_SLOPE_SCALE, delta_sd, share_positive
from bayes_lepu.verdict.records import (
    FORM_WIDTH,
    MODE_GAP,
    ROUNDING,
    Aspect,
    Check,
    grade,
    graded,
    judged_on,
    passed_if,
    relative,
)

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

AS_WELL = 4.0  # log-likelihood units within which two models predict the labels alike
FALSE_MARKS = (0.02, 0.05)  # rates that go unnoticed in a table somebody looked through
CEILINGS = (0.9, 0.8)
RISES = (0.5, 1.0, 2.0)  # of the log odds of a constant s, over one sd of the class's predictor
FLOORS = (0.05, 0.1, 0.2)  # of an s that follows t, from s = floor to s = 1 - floor
TOP = 100  # rows that somebody looks through in a sitting
SAME_ROWS = 0.5  # share of the first rows below which two forms send one to other rows
SPREAD = 5.0  # times as many missed positives at the upper end: the total is not known then
FORM_RANGE = "form range"
ORDER = "order under other forms"
DOUBTFUL = "doubtful positives marked half as often"
_WIDTH: dict[str, Any] = {
    "bears_on": (Aspect.LEVEL,),
    "needs": "passed",
    "consequence": "forms that predict the labels as well disagree about it",
}
_MOVED = _WIDTH | {
    "consequence": "the penalty or prior of this fit moved it out of what the labels leave"
}

# One alternative, refitted --------------------------------------------------------------------

MAX_CELLS = 20_000  # labels; beyond, models are refitted to an evenly spaced part of the rows
LARGEST = 12.0  # log-odds of a rate at the start: beyond, it has no slope
# Slopes of a link against those of the logistic one for about the same curve.
LINK_SCALES = {"probit": 0.6, "cloglog": 0.8, "loglog": 0.8, "cauchit": 0.8}


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
    skips : bool
        Whether it is no copy: the annotator leaves out rows that the other one marked.
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
    skips: bool = False

    def parts(self, rows: Rows) -> list[tuple[Rows, Array | float, float]]:
        """The parts of a mixture: rows, logarithm of their share, what is added to every β."""
        if self.copied is None:
            return [(rows, np.log(w), u) for u, w in zip(self.shifts, self.shares, strict=True)]
        j, other, part = self.copied
        both = (rows.labels[j] >= 0) & (rows.labels[other] >= 0)
        same = both & (rows.labels[j] == rows.labels[other])
        if self.skips:
            both &= rows.labels[other] == 1
            same = both & (rows.labels[j] == 0)
        without = rows.labels.copy()
        without[j] = NOT_SHOWN
        with np.errstate(divide="ignore"):
            own, copies = np.log(np.where(both, 1 - part, 1.0)), np.log(np.where(same, part, 0.0))
        return [(rows, own, 0.0), (rows._replace(labels=without), copies, 0.0)]


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
        mask, link = data.selection_mask.copy(), propensity.link
        mask[data.visit_places] = True
        # Guesses and lapses of several annotators are kept as fitted.
        free = () if data.n_annotators > 1 else propensity.coordinate_rates
        if not propensity.has_predictor:
            # At s = 1 its log-odds have no slope to start from.
            s = np.clip(point.s(rows.X[:1])[..., 0], 1e-6, 0.98)
            point = replace(point, alpha=0 * point.alpha, beta=logit(s), log_w=CERTAIN_LINK)
            mask, free, link = mask & False, (), LOGISTIC
        start = make_point(
            a=point.a,
            b=point.b,
            alpha=point.alpha,
            beta=point.beta,
            rates=point.log_w,
            epsilon=0.0 if point.epsilon is None else point.epsilon,
        )
        return cls(rows, link, point.of_class, data.class_mask, mask, free, start)

    def swapped(self) -> "Problem":
        """The same with t and s swapped in the start."""
        at = self.start
        start = make_point(a=at.alpha[0], b=at.beta[0], alpha=at.a, beta=at.b, rates=at.rates)
        return replace(self, start=start)

    def refit(self, form: Form, z: Array | None = None) -> "Refit":
        """The mode next to the answer at hand, or to other coordinates."""
        found = Refit.of(self, form)
        start = found.z if z is None else z
        root = found.units(start)

        def loss(u: Array) -> tuple[float, Array]:
            value, grad = found.loss(start + root @ u)
            return value, root.T @ grad

        # A refit starts at a good answer: a bound for forms without a maximum.
        first, options = np.zeros(len(start)), {"maxiter": 200}
        best = minimize(loss, first, jac=True, method="L-BFGS-B", options=options)
        return replace(found, z=start + root @ best.x)


@dataclass(frozen=True, eq=False)
class Refit:
    """A form at coordinates z: the flat order of the row formula is E z + offset.

    ``precision`` is that of the weak ridge.
    """

    form: Form
    rows: Rows
    links: Links
    E: Array
    offset: Array
    precision: Array
    rates: Array
    free_rates: list[int]
    z: Array

    @classmethod
    def of(cls, problem: Problem, form: Form) -> "Refit":
        """The form at the answer at hand."""
        rows, start, p = problem.rows, problem.start, len(problem.start.a)
        if form.terms:
            more = np.column_stack([term.values(rows.X) for term in form.terms])
            rows = rows._replace(X=np.ascontiguousarray(np.hstack([rows.X, more])))
        where, scale = flat_order(rows), link_scale(form.of_class) / link_scale(problem.of_class)
        mask = problem.class_mask if form.slopes else problem.selection_mask
        rates, free_rates, link = start.rates, list(problem.free_rates), problem.link
        first, offset, precision = np.zeros((3, where.size))
        free = np.zeros(where.size, dtype=bool)
        at, is_free = where.entries(first), where.entries(free)
        at.a[:p], at.b[...] = scale * start.a, scale * start.b
        is_free.a[:p], is_free.a[p:], is_free.b[...] = problem.class_mask, True, True
        ridge = where.entries(precision)
        ridge.a[...], ridge.alpha[...] = (WEAK_SLOPE_SCALE * scale) ** -2, WEAK_SLOPE_SCALE**-2
        if form.floor:
            free_rates, link = [], LOGISTIC
            rates = np.log([[form.floor, form.floor, 1 - 2 * form.floor]])
        else:
            at.alpha[:, :p], at.beta[...] = start.alpha, start.beta
            is_free.alpha[:, :p], is_free.beta[...] = mask, True
            along = start.a / max(float((problem.rows.X @ start.a).std()), 1e-12)
            where.entries(offset).alpha[:, :p] = np.where(mask, 0.0, form.rise * along)
            ratios = (rates - rates[:, 2:])[:, free_rates]
            at.uv[:, free_rates] = np.clip(ratios, -LARGEST, LARGEST)
            is_free.uv[:, free_rates] = True
            is_free.e[...] = form.false_marks is None
            # A rate that is estimated starts at 1 %.
            at.e[...] = logit(np.where(start.epsilon > 0, start.epsilon, 0.01))
        E = np.eye(where.size)[:, free]
        if form.floor:  # (α, β) = (a, b)
            E[where.of_selection(0)] = E[where.of_class()]
        links = Links(link, form.of_class.link)
        return cls(form, rows, links, E, offset, precision[free], rates, free_rates, first[free])

    def point(self, z: Array) -> Point:
        """The point of the row formula."""
        at = flat_order(self.rows).entries(self.E @ z + self.offset)
        rates, marks = self.rates, self.form.false_marks
        if self.free_rates:
            logits = np.where(np.isneginf(rates), -np.inf, 0.0)
            logits[:, self.free_rates] = at.uv[:, self.free_rates]
            rates = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
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
        return self.rows.weight

    def mixed(self, z: Array) -> tuple[Array, list[tuple[Rows, Point, Array]], Array]:
        """Log likelihood of the rows, the parts with their posterior shares, P(y=1 | labels)."""
        point, links, found = self.point(z), self.links, []
        for rows, log_share, shift in self.form.parts(self.rows):
            at = point._replace(beta=point.beta + shift)
            loglik, m = row_terms(rows, links, at)
            found.append((rows, at, loglik + log_share, m))
        total = np.logaddexp.reduce([loglik for *_, loglik, _ in found])
        parts = [(rows, at, np.exp(loglik - total)) for rows, at, loglik, _ in found]
        m = sum(of * part[3] for (*_, of), part in zip(parts, found, strict=True))
        return total, parts, np.asarray(m)

    def loss(self, z: Array) -> tuple[float, Array]:
        """Minus the log likelihood with the weak ridge, and its gradient.

        The gradient of a mixture is that of its parts, each row weighted by its share in them.
        """
        links = self.links
        if len(self.form.shifts) == 1 and self.form.copied is None:
            value, grad = loglik_grad(self.rows, links, self.point(z))
        else:
            loglik, parts, _ = self.mixed(z)
            value, grad = float(self.weight @ loglik), np.zeros(len(self.E))
            for rows, at, of in parts:
                grad += loglik_grad(rows._replace(weight=self.weight * of), links, at)[1]
        return 0.5 * float(self.precision @ z**2) - value, self.precision * z - self.E.T @ grad

    def units(self, z: Array) -> Array:
        """Steps in which the curvature is one; of several annotators the coordinates themselves."""
        if len(self.rows.labels) > 1:
            return np.eye(len(z))
        info = loglik_grad_info(self.rows, self.links, self.point(z))[2]
        curvature = self.E.T @ info @ self.E + np.diag(self.precision)
        size = np.sqrt(np.maximum(np.diag(curvature), 1e-8))
        # Some directions have no curvature at all: a thousandth is added.
        root = inverse_root(curvature / np.outer(size, size) + 1e-3 * np.eye(len(z)))
        return np.diag(1 / size) if root is None else root / size[:, None]

    # What a refit says ------------------------------------------------------------------------

    @cached_property
    def found(self) -> tuple[Array, list[tuple[Rows, Point, Array]], Array]:
        """The rows at the mode, as `mixed` has them."""
        return self.mixed(self.z)

    @cached_property
    def score(self) -> Array:
        """The class's predictor."""
        point = self.point(self.z)
        return self.rows.X @ point.a + point.b

    def figures(self) -> dict[str, Any]:
        """Log likelihood, π, c (share of the positives that somebody marked), P(y=1 | labels)."""
        t, (loglik, _, m) = self.form.of_class.value(self.score), self.found
        pi, marked = float(np.average(t, weights=self.weight)), (self.rows.labels == 1).any(axis=0)
        return {
            "loglik": float(self.weight @ loglik),
            "pi": pi,
            "c": float(np.average(m * marked, weights=self.weight)) / max(pi, 1e-12),
            "missed": m[~marked],
        }

    def slopes(self) -> tuple[Array, Array]:
        """Slopes of every row in the predictors ``(J + 1, n)``, the class last, and in e."""
        links, once = self.links, np.ones(len(self.rows.X))  # weights come in `sd`
        slopes, false = np.zeros((2, len(self.rows.labels) + 1, len(self.rows.X)))
        for rows, at, of in self.found[1]:
            slopes += of * row_slopes(rows._replace(weight=once), links, at)
            m = row_terms(rows, links, at)[1]
            false[:-1] += (
                of * np.where(rows.labels >= 0, rows.labels - at.epsilon[:, None], 0) * (1 - m)
            )
        return slopes, false[:-1]

    def sd(self) -> float:
        """Standard deviation of π: delta method, information from the rows' own scores."""
        where, X1 = flat_order(self.rows), np.column_stack([self.rows.X, np.ones(len(self.rows.X))])
        slopes, false = self.slopes()
        G, w = np.zeros((len(X1), where.size)), self.weight
        G[:, where.of_class()] = slopes[-1][:, None] * X1
        for j in range(where.J):
            G[:, where.of_selection(j)] = slopes[j][:, None] * X1
            G[:, where.own(j).stop - 1] = false[j]
        G, curve, slope = G @ self.E, self.form.of_class, np.zeros(where.size)
        slope[where.of_class()] = w * np.exp(curve.logs(self.score, curve.log_rates())[2]) @ X1
        total = (G * w[:, None]).T @ G + np.diag(self.precision)
        return delta_sd(total, self.E.T @ slope / w.sum())

    def doubtful(self) -> dict[str, Any]:
        """The same h, of another class and propensity.

        With twice the odds of t and s lowered by as much, s t stays what it is at every row: the
        clearest positives are marked as the model says, doubtful ones down to half as often.
        """
        own, curve, unlabelled = self.figures(), self.form.of_class, self.rows.labels[0] == 0
        t, more = curve.value(self.score), expit(curve.log_odds(self.score) + np.log(2))
        pi, m = float(np.average(more, weights=self.weight)), own["missed"]
        h = (t[unlabelled] - m) / np.maximum(1 - m, 1e-12)
        missed = (more[unlabelled] - h) / np.maximum(1 - h, 1e-12)
        return {**own, "pi": pi, "c": own["c"] * own["pi"] / pi, "missed": missed}


def link_scale(curve: Factor) -> float:
    """Slopes of a curve against those of the logistic one."""
    return LINK_SCALES.get(curve.link.name, 1.0)


# The range over all of them -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FormRange:
    """The class prior over all models that predict the labels as well.

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
    call : str
        Options of `fit` that fit the best form; empty where no option does.
    moved : bool
        Whether the estimate of π lies where the likelihood of no form does.
    naming_gap : float
        By how much the likelihood prefers this orientation to the other, false marks allowed;
        infinite where the other is no answer or the question does not arise.
    missed : (forms kept, unlabelled rows) array
        P(y=1 | x, l=0) by every form kept, of the rows to which the forms were refitted.
    """

    table: pd.DataFrame
    low: float
    high: float
    own_gap: float
    rows: int
    call: str = ""
    moved: bool = False
    naming_gap: float = np.inf
    missed: Array = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def kept(self) -> pd.DataFrame:
        """The forms that predict the labels as well as the best one."""
        return self.table[self.table["kept"]]


def list_forms(own: Factor, terms: tuple[Term, ...], *, kept_out: bool) -> list[list[Form]]:
    """All forms, the fitted model's ``own`` first (``kept_out``: columns of t do not enter s).

    Those with more and more false marks stand together.
    """
    shapes = [Form(own.name, own)]
    shapes += [Form(name, curve) for name, curve in CURVES.items() if curve is not own]
    shapes += [Form(f"ceiling {top:g}", ceiling(top)) for top in CEILINGS]
    if terms:
        shapes.append(Form("with " + ", ".join(t.name for t in terms), own, terms=terms))
    forms = [[shape, *(
        replace(shape, name=f"{shape.name}, {rate:.0%} false marks", false_marks=rate)
        for rate in FALSE_MARKS
    )] for shape in shapes]  # fmt: skip
    if kept_out:
        forms += [[Form(f"s rises with t's score by {k:g} per sd", own, rise=k)] for k in RISES]
        forms += [[Form(f"s = {f:g} + {1 - 2 * f:g} t", own, floor=f)] for f in FLOORS]
    return forms


def options_of(form: Form, own: Factor) -> str:
    """Options of `fit` that fit a form; empty where no option does."""
    if form.terms or form.rise or form.floor:
        return ""
    curve, options = form.of_class, []
    if curve.fixed is not None:
        options.append(f"class_link=bayes_lepu.factors.ceiling({curve.fixed[2]:g})")
    elif curve is not own:
        options.append(f"class_link={curve.name!r}")
    return ", ".join([*options, *(["false_marks=True"] if form.false_marks else [])])


def form_range(evidence: "Evidence") -> FormRange | None:
    """Refit every form and keep those that predict the labels as well."""
    profile, own, columns = evidence.profile, evidence.peaks[0], evidence.columns
    known = evidence.propensity.fixed is not None
    if profile is None or known or own.point.epsilon is not None:
        return None  # fitted false marks are themselves one of the forms
    data, mask = evidence.data, evidence.data.class_mask & ~evidence.data.selection_mask
    problem = Problem.of(evidence.weak.data, evidence.inside(own.point), evidence.propensity)
    kept_out = not evidence.propensity.has_predictor or bool(mask.any())
    terms = () if columns is None else columns.named
    groups: list[list[tuple[Form, Refit, dict[str, Any]]]] = []
    for forms in list_forms(problem.of_class, terms, kept_out=kept_out):
        group: list[tuple[Form, Refit, dict[str, Any]]] = []
        for form in forms:
            refit = problem.refit(form, group[-1][1].z if group else None)
            group.append((form, refit, refit.figures()))
            # A rate of false marks that makes a form worse makes it worse still when higher.
            if len(group) > 1 and group[-1][2]["loglik"] < group[-2][2]["loglik"] - AS_WELL:
                break
        groups.append(group)
    records = {form.name: found for group in groups for form, _, found in group}
    calls = {form.name: options_of(form, problem.of_class) for g in groups for form, *_ in g}
    if kept_out:
        records[DOUBTFUL] = groups[0][0][1].doubtful()
    naming_gap = max(f["loglik"] for *_, f in groups[0]) - _other_naming(evidence, problem)
    table = pd.DataFrame.from_dict(records, orient="index").rename_axis("form")
    table["below"] = table["loglik"].max() - table["loglik"].astype(float)
    missed = np.stack(table.pop("missed").tolist())
    table = table.astype(float)
    likeliest = np.argsort(-missed[0])[:TOP]
    top = set(likeliest)
    table["top"] = [len(top & set(np.argsort(-m)[:TOP])) / max(len(top), 1) for m in missed]
    table["kept"] = (table["below"] <= AS_WELL) | (np.arange(len(table)) == 0)
    pi, pieces = share_positive(own.point, evidence.weak.data), evidence.likelihood_pieces
    kept = table.loc[table["kept"], "pi"]
    low = float(kept.min()) - max(pi - pieces[0][0], 0.0)
    high = float(kept.max()) + max(pieces[-1][1] - pi, 0.0)
    low = max(low, min(float(np.average(data.l, weights=data.weight)), float(kept.min())))
    moved = not low - ROUNDING <= evidence.pi <= high + ROUNDING
    if not evidence.fit.is_point:
        shifts, ends = kept - kept.iloc[0], interval(evidence.pi_given_naming)
        low = min(low, ends[0] + float(shifts.min()))
        high = max(high, ends[1] + float(shifts.max()))
    return FormRange(
        table[["below", "pi", "c", "top", "kept"]],
        max(low, 0.0),
        min(high, 1.0),
        float(table["below"].iloc[0]),
        len(problem.rows.X),
        calls.get(str(table["below"].idxmin()), ""),
        moved,
        naming_gap,
        missed[table["kept"].to_numpy()],
    )


def _other_naming(evidence: "Evidence", problem: Problem) -> float:
    """Highest log likelihood with t and s swapped, false marks allowed; -inf without one.

    False marks leave a floor below h, and a floor is what tells the annotator (his guesses) from
    the class: without this the fitted form may call the annotator the class, and be sure of it.
    """
    fit = evidence.fit
    if evidence.symmetric or not fit.density.can_exchange or evidence.data.n_audited:
        return -np.inf
    if fit.orientation.settled_by == "priors":  # signs name the factors, not the floor
        return -np.inf
    other, found, X = problem.swapped(), [-np.inf], problem.rows.X
    for rate in (0.0, *FALSE_MARKS):
        refit = other.refit(Form("", problem.of_class, false_marks=rate))
        slopes = other.start.a, other.start.alpha[0]
        here, there = (np.corrcoef(refit.score, X @ a)[0, 1] for a in slopes)
        if here > there:  # the refit did not find its way back
            found.append(refit.figures()["loglik"])
    return max(found)


def check_forms(evidence: "Evidence") -> list[Check]:
    """Whether π stays where it is under other forms, and whether the fitted form is among them."""
    if evidence.several:
        return []
    found = evidence.forms
    if found is None:
        if evidence.propensity.fixed is not None:
            return []
        why = evidence.too_large.rstrip(".")
        if evidence.fit.spec.false_marks:
            why = "False marks are fitted, and other forms are tried without them"
        text = f"{why}: how far the form carries π is not known."
        told = {"consequence": "how far its form carries it was not computed"}
        return [Check(FORM_RANGE, "not computed", text=text, **_WIDTH | told)]
    kept, width = found.kept, found.high - found.low
    bounds = relative(FORM_WIDTH, evidence.pi)
    few, many = missed_between(evidence.data, found.low, found.high)
    wide, status = many > SPREAD * few, grade(width, bounds)
    if status == "passed" and (found.moved or wide):
        status = "weak"
    least = float(kept["top"].min())
    text = (
        f"{len(kept)} of {len(found.table)} forms predict the labels as well; over them π is "
        f"{share(found.low)} to {share(found.high)}, c {kept['c'].min():.2f} to "
        f"{kept['c'].max():.2f}, and {least:.0%} or more of the {TOP} likeliest missed "
        f"rows are the same.{judged_on(found.rows, evidence.data.n)}"
    )
    if wide:
        text += f" In rows: {few:.0f} to {many:.0f} missed positives."
    if found.moved:
        text += (
            f" The penalty or prior put the estimate, {share(evidence.pi)}, where no form has it."
        )
    best, call = found.table["below"].idxmin(), found.call and f" ({found.call})"
    by_marks = found.naming_gap
    checks = [
        graded(
            FORM_RANGE,
            width,
            bounds,
            text,
            LEVEL_REMEDY,
            threshold="width of π {}",
            status=status,
            **(_MOVED if found.moved else _WIDTH),
        ),
        form_of_h(
            "form of h",
            found,
            str(best),
            f"Fit the form that the labels prefer{call}, or read π as its range.",
            "another form of t predicts the labels better",
        ),
        Check(
            ORDER,
            # Only a better form can refute the order.
            passed_if(
                least >= SAME_ROWS,
                # From 8 units behind the best form, the fitted one says nothing.
                otherwise="weak" if found.own_gap <= 8.0 else "failed",
            ),
            least,
            f"at least {SAME_ROWS:.0%} of the first {TOP} rows the same",
            f"Of the {TOP} open rows that are most likely positive, {least:.0%} or more are the "
            "same under every form that predicts the labels as well.",
            "Audit some of these rows, or fit the form that the labels prefer.",
            bears_on=(Aspect.RANKING,),
            consequence="a form that predicts the labels better names other rows",
        ),
    ]
    if np.isfinite(by_marks):
        checks.append(
            graded(
                "naming with false marks",
                by_marks,
                MODE_GAP,
                f"If some marks were false, the factors exchanged would be {worse(by_marks)}.",
                "Audit some rows (y=), labelled ones among them, or name a column that enters only "
                "one factor: where marks are false, labels alone may name the factors wrongly.",
                bears_on=(Aspect.ORIENTATION,),
                needs="passed",
                consequence="with some false marks the labels would name the factors the other way",
            )
        )
    return checks


def form_of_h(name: str, found: FormRange, best: str, remedy: str, consequence: str) -> Check:
    """Whether another form predicts the labels better than the fitted one."""
    return Check(
        name,
        passed_if(found.own_gap <= AS_WELL),
        found.own_gap,
        f"at most {AS_WELL:g} {UNITS} below the best form",
        f"The best form ({best}) is {found.own_gap:.1f} {UNITS} better than the fitted one.",
        remedy,
        bears_on=(Aspect.LABELS,),
        needs="passed",
        consequence=consequence,
    )


def missed_between(data: PUData, low: float, high: float) -> tuple[float, float]:
    """A range of π as numbers of missed positives among the open rows, by their weights."""
    weights = data.kind_weights
    known, most = weights[[RowKind.LABELLED, RowKind.MISSED]].sum(), weights[RowKind.UNLABELLED]
    few, many = (min(max(pi * weights.sum() - known, 0.0), most) for pi in (low, high))
    return float(few), float(many)
