r"""How much π depends on the form of the model: π under alternative models with the same fit.

Every alternative is the row formula at parameters in flat order, :math:`E z + \text{offset}`,

.. math:: L_i = \sum_k w_{ik}\, L_i(\theta_k), \qquad t = \kappa F(a \cdot x + b),

refitted from the fitted parameters under the weak ridge. The class gets other links F or a ceiling
κ below one. Marks may be false at a small rate. Where the model keeps columns out of s, s may
follow the class's own score, or be lower for doubtful positives at the same h.

The fitted model assumes that several annotators mark independently given x and the class. The
alternatives are: rows that are harder for all annotators (so that all miss more positives), an
annotator who copies another one or skips rows that another one marked, marks at random, and, for
constant propensities, slopes and a rise with the class's own score. Labels of two annotators hardly
distinguish these forms; labels of many do.

Models whose log likelihood lies within 4 units of the best predict the labels as well. The range of
π over them, widened to the ends of the usual likelihood set, is the *form range*. For a posterior
it also covers the interval, shifted by the change of π under each form.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit, logsumexp, roots_hermitenorm

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines.nuts import SMALL_SHARE
from bayes_lepu.factors import CURVES, Factor, Link, ceiling
from bayes_lepu.factors.curves import LOGISTIC
from bayes_lepu.links import Array, RowKind
from bayes_lepu.model.parameters import ARRAYS, Parameters
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
    make_rows,
    row_slopes,
    row_terms,
)
from bayes_lepu.rows.factoring import inverse_root
from bayes_lepu.verdict.class_prior import (
    WEAK_SLOPE_SCALE,
    delta_sd,
    interval,
    share_positive,
)
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
TOP = 100  # rows that somebody reviews in one sitting
SAME_ROWS = 0.5  # share of common first rows below which two forms disagree about whom to review
SPREAD = 5.0  # ratio of upper to lower end of the missed positives; above it the total is unknown
FORM_RANGE = "form range"

# One alternative, refitted --------------------------------------------------------------------

MAX_CELLS = 20_000  # labels; beyond, models are refitted to an evenly spaced part of the rows
LARGEST = 12.0  # log-odds of a rate at the start; beyond, its gradient vanishes
# Slopes of a link relative to the logistic one, for about the same curve.
LINK_SCALES = {"probit": 0.6, "cloglog": 0.8, "loglog": 0.8, "cauchit": 0.8}
# The parts of a mixture: rows, logarithm of their share, what is added to every β.
Parts = list[tuple[Rows, Array | float, float]]


@dataclass(frozen=True, eq=False)
class Form:
    """One alternative to the fitted model.

    ``false_marks`` is the rate of marks on negative rows, None if it is estimated for every
    annotator. ``rise`` is the change of the log odds of s for one sd of the class's predictor,
    through the columns that the model keeps out of s. With a ``floor``, s is
    floor + (1 - 2 floor) t. ``slopes`` lets the columns of the class enter every s, and ``parts``
    makes the rows a mixture.
    """

    name: str
    of_class: Factor
    false_marks: float | None = 0.0
    rise: float = 0.0
    floor: float = 0.0
    slopes: bool = False
    parts: Callable[[Rows], Parts] | None = None


def shifted(shifts: Array, shares: Array) -> Callable[[Rows], Parts]:
    """Parts of a mixture that shift all annotators' log odds of marking, with their shares."""
    return lambda rows: [(rows, np.log(w), u) for u, w in zip(shifts, shares, strict=True)]


def dependent(j: int, other: int, part: float, *, skips: bool) -> Callable[[Rows], Parts]:
    """Annotator j copies another one on a part of the rows, or skips a part of the rows that the
    other one marked.
    """

    def parts(rows: Rows) -> Parts:
        both = (rows.labels[j] >= 0) & (rows.labels[other] >= 0)
        same = both & (rows.labels[j] == rows.labels[other])
        if skips:
            both &= rows.labels[other] == 1
            same = both & (rows.labels[j] == 0)
        without = rows.labels.copy()
        without[j] = NOT_SHOWN
        with np.errstate(divide="ignore"):
            own, copies = np.log(np.where(both, 1 - part, 1.0)), np.log(np.where(same, part, 0.0))
        return [(rows, own, 0.0), (rows._replace(labels=without), copies, 0.0)]

    return parts


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows on standardised columns, the curves, and the parameters at which refits start.

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
            # At s = 1 the gradient of its log-odds vanishes, so the start is below 1.
            s = np.clip(point.s(rows.X[:1])[..., 0], 1e-6, 0.98)
            point = replace(point, alpha=0 * point.alpha, beta=logit(s), log_w=CERTAIN_LINK)
            mask, free, link = mask & False, (), LOGISTIC
        return cls(rows, link, point.of_class, data.class_mask, mask, free, point.point)

    def swapped(self) -> "Problem":
        """The same problem with t and s swapped at the start."""
        at = self.start
        start = make_point(a=at.alpha[0], b=at.beta[0], alpha=at.a, beta=at.b, rates=at.rates)
        return replace(self, start=start)

    def refit(self, form: Form, z: Array | None = None) -> "Refit":
        """The mode next to the start, or to other coordinates."""
        found = Refit.of(self, form)
        start = found.z if z is None else z
        root = found.units(start)

        def loss(u: Array) -> tuple[float, Array]:
            value, grad = found.loss(start + root @ u)
            return value, root.T @ grad

        # A refit starts near its mode; the bound is for forms without a maximum.
        first, options = np.zeros(len(start)), {"maxiter": 200}
        best = minimize(loss, first, jac=True, method="L-BFGS-B", options=options)
        return replace(found, z=start + root @ best.x)

    def refit_all(self, groups: Sequence[Sequence[Form]]) -> list["Refit"]:
        """Refit all forms; in a group each starts from the mode of the one before."""
        refits = []
        for forms in groups:
            group: list[Refit] = []
            for form in forms:
                group.append(self.refit(form, group[-1].z if group else None))
                # If a rate of false marks makes a form worse, a higher rate makes it worse still.
                if form.false_marks and group[-1].loglik < group[-2].loglik - AS_WELL:
                    break
            refits += group
        return refits


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
        """The form with the start as its coordinates."""
        rows, start = problem.rows, problem.start
        to, at_hand = (LINK_SCALES.get(f.of_class.link.name, 1.0) for f in (form, problem))
        where, scale = flat_order(rows), to / at_hand
        mask = problem.class_mask if form.slopes else problem.selection_mask
        rates, free_rates, link = start.rates, list(problem.free_rates), problem.link
        first, offset, precision = np.zeros((3, where.size))
        free = np.zeros(where.size, dtype=bool)
        at, is_free = where.entries(first), where.entries(free)
        at.a[...], at.b[...] = scale * start.a, scale * start.b
        is_free.a[...], is_free.b[...] = problem.class_mask, True
        ridge = where.entries(precision)
        ridge.a[...], ridge.alpha[...] = (WEAK_SLOPE_SCALE * scale) ** -2, WEAK_SLOPE_SCALE**-2
        if form.floor:
            free_rates, link = [], LOGISTIC
            rates = np.log([[form.floor, form.floor, 1 - 2 * form.floor]])
        else:
            at.alpha[...], at.beta[...] = start.alpha, start.beta
            is_free.alpha[...], is_free.beta[...] = mask, True
            along = start.a / max(float((rows.X @ start.a).std()), 1e-12)
            where.entries(offset).alpha[...] = np.where(mask, 0.0, form.rise * along)
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
        both = {"rates": rates, "class_rates": self.form.of_class.log_rates()}
        epsilon = expit(at.e) if marks is None else marks
        return make_point(a=at.a, b=at.b, alpha=at.alpha, beta=at.beta, epsilon=epsilon, **both)

    def mixed(self, z: Array) -> tuple[Array, list[tuple[Rows, Point, Array]], Array]:
        """Log likelihood of the rows, parts with their posterior shares, and P(y=1 | labels)."""
        point, parts, found = self.point(z), self.form.parts or shifted(np.zeros(1), np.ones(1)), []
        for rows, log_share, shift in parts(self.rows):
            at = point._replace(beta=point.beta + shift)
            loglik, m = row_terms(rows, self.links, at)
            found.append((rows, at, loglik + log_share, m))
        total = np.logaddexp.reduce([loglik for *_, loglik, _ in found])
        shares = [np.exp(loglik - total) for *_, loglik, _ in found]
        m = sum(of * part[3] for of, part in zip(shares, found, strict=True))
        return total, [(*part[:2], of) for part, of in zip(found, shares, strict=True)], m

    def loss(self, z: Array) -> tuple[float, Array]:
        """Minus the log likelihood with the weak ridge, and its gradient.

        The gradient of a mixture is that of its parts, each row weighted by its share in them.
        """
        if self.form.parts is None:
            value, grad = loglik_grad(self.rows, self.links, self.point(z))
        else:
            loglik, parts, _ = self.mixed(z)
            value, grad = float(self.rows.weight @ loglik), np.zeros(len(self.E))
            for rows, at, of in parts:
                weight = self.rows.weight * of
                grad += loglik_grad(rows._replace(weight=weight), self.links, at)[1]
        return 0.5 * float(self.precision @ z**2) - value, self.precision * z - self.E.T @ grad

    def units(self, z: Array) -> Array:
        """Units in which the curvature is about one; for several annotators the coordinates."""
        if len(self.rows.labels) > 1:
            return np.eye(len(z))
        # Of many rows every k-th: the units need the shape of the curvature only.
        rows, k = self.rows, max(1, len(self.rows.X) // max(2_000, 10 * len(z)))
        labels, weight = rows.labels[:, ::k].T, k * rows.weight[::k]
        some = make_rows(rows.X[::k], labels, known=rows.known[::k], weight=weight)
        info = loglik_grad_info(some, self.links, self.point(z))[2]
        curvature = self.E.T @ info @ self.E + np.diag(self.precision)
        size = np.sqrt(np.maximum(np.diag(curvature), 1e-8))
        # Some directions have no curvature at all: a thousandth is added.
        root = inverse_root(curvature / np.outer(size, size) + 1e-3 * np.eye(len(z)))
        return np.diag(1 / size) if root is None else root / size[:, None]

    @cached_property
    def found(self) -> tuple[Array, list[tuple[Rows, Point, Array]], Array]:
        """The result of `mixed` at the mode."""
        return self.mixed(self.z)

    @property
    def loglik(self) -> float:
        """Log likelihood at the mode."""
        return float(self.rows.weight @ self.found[0])

    @cached_property
    def score(self) -> Array:
        """The class's predictor."""
        point = self.point(self.z)
        return self.rows.X @ point.a + point.b

    def figures(self) -> dict[str, Any]:
        """Log likelihood, π, c (share of the positives that somebody marked), P(y=1 | labels)."""
        t, m, weight = self.form.of_class.value(self.score), self.found[2], self.rows.weight
        pi, marked = float(np.average(t, weights=weight)), (self.rows.labels == 1).any(axis=0)
        c = float(np.average(m * marked, weights=weight)) / max(pi, 1e-12)
        return {"loglik": self.loglik, "pi": pi, "c": c, "missed": m[~marked]}

    def slopes(self) -> tuple[Array, Array]:
        """Derivatives of every row's log likelihood in the predictors ``(J + 1, n)``, with the
        class last, and in e (the logit of the rate of false marks).
        """
        once = np.ones(len(self.rows.X))  # weights come in `sd`
        slopes, false = np.zeros((2, len(self.rows.labels) + 1, len(self.rows.X)))
        for rows, at, of in self.found[1]:
            slopes += of * row_slopes(rows._replace(weight=once), self.links, at)
            off = np.where(rows.labels >= 0, rows.labels - at.epsilon[:, None], 0)
            false[:-1] += of * off * (1 - row_terms(rows, self.links, at)[1])
        return slopes, false[:-1]

    def sd(self) -> float:
        """Standard deviation of π: delta method, information from the rows' own scores."""
        where, X1 = flat_order(self.rows), np.column_stack([self.rows.X, np.ones(len(self.rows.X))])
        slopes, false = self.slopes()
        G, w = np.zeros((len(X1), where.size)), self.rows.weight
        G[:, where.of_class()] = slopes[-1][:, None] * X1
        for j in range(where.J):
            G[:, where.of_selection(j)] = slopes[j][:, None] * X1
            G[:, where.own(j).stop - 1] = false[j]
        G, curve, slope = G @ self.E, self.form.of_class, np.zeros(where.size)
        slope[where.of_class()] = w * np.exp(curve.logs(self.score, curve.log_rates())[2]) @ X1
        total = (G * w[:, None]).T @ G + np.diag(self.precision)
        return delta_sd(total, self.E.T @ slope / w.sum())

    def doubtful(self) -> dict[str, Any]:
        """Figures of a model with the same h but another class and propensity.

        The odds of t are doubled, and s is lowered so that s t stays the same at every row. Clear
        positives are then marked as often as in the model, doubtful ones down to half as often.
        """
        own, curve, unlabelled = self.figures(), self.form.of_class, self.rows.labels[0] == 0
        t, more = curve.value(self.score), expit(curve.log_odds(self.score) + np.log(2))
        pi, m = float(np.average(more, weights=self.rows.weight)), own["missed"]
        h = (t[unlabelled] - m) / np.maximum(1 - m, 1e-12)
        missed = (more[unlabelled] - h) / np.maximum(1 - h, 1e-12)
        return {**own, "pi": pi, "c": own["c"] * own["pi"] / max(pi, 1e-300), "missed": missed}


# The list of them -----------------------------------------------------------------------------

FALSE_MARKS = (0.02, 0.05)  # rates that go unnoticed in a table somebody looked through
CEILINGS = (0.9, 0.8)
RISES = (0.5, 1.0, 2.0)  # of the log odds of a constant s, over one sd of the class's predictor
FLOORS = (0.05, 0.1, 0.2)  # of an s that follows t, from s = floor to s = 1 - floor
DOUBTFUL = "doubtful positives marked half as often"
INDEPENDENT = "annotators independent"
SPREADS = (0.5, 1.0, 1.5, 2.0)  # sd of the shared difficulty, in log odds of being marked
HARD = (0.2, -3.0)  # share of the positives that are harder, and by how much
SKIPPED = (0.25, 0.5, 0.8, 0.95)  # shares of the rows marked by another one that an annotator skips
COPIED = (0.25, 0.5)  # shares of the rows that one annotator copies
FEW = 2.5  # with fewer labels per row, a shared difficulty looks like another link of the class

Groups = list[list[Form]]  # the forms of a group are ordered by their distance from the fitted one


def list_forms(own: Form, *, kept_out: bool) -> Groups:
    """All forms for one annotator, the fitted one first (``kept_out``: some columns are not in s).

    Forms that differ only in the rate of false marks are one group, with rising rates.
    """
    curve = own.of_class
    shapes = [own, *other_links(curve)]
    shapes += [Form(f"ceiling {top:g}", ceiling(top)) for top in CEILINGS]
    forms = [[shape, *(
        replace(shape, name=f"{shape.name}, {rate:.0%} false marks", false_marks=rate)
        for rate in FALSE_MARKS
    )] for shape in shapes]  # fmt: skip
    if kept_out:
        forms += [[rising(curve, k)] for k in RISES]
        forms += [[Form(f"s = {f:g} + {1 - 2 * f:g} t", curve, floor=f)] for f in FLOORS]
    return forms


def other_links(own: Factor, ending: str = "") -> list[Form]:
    """Forms with the links that the class does not have."""
    return [Form(name + ending, curve) for name, curve in CURVES.items() if curve is not own]


def rising(own: Factor, k: float) -> Form:
    """The form in which clear cases are marked more readily."""
    return Form(f"s rises with t's score by {k:g} per sd", own, rise=k)


def shared_difficulty(spread: float, curve: Factor, name: str = "") -> Form:
    """Form with a normal difficulty that all annotators share, by Gauss–Hermite quadrature."""
    u, w = roots_hermitenorm(9)  # more nodes change π in the fourth digit
    name = name or f"shared difficulty {spread:g}, {curve.name} class"
    return Form(name, curve, parts=shifted(spread * u, w / w.sum()))


def list_panel_forms(own: Form, problem: Problem, pair: tuple[int, int]) -> Groups:
    """All forms for several annotators, the fitted one first; ``pair`` are the two most alike.

    Where the fit has false marks, all forms have them.
    """
    (share, shift), curve, labels = HARD, own.of_class, problem.rows.labels
    hard = shifted(np.array([0.0, shift]), np.array([1 - share, share]))
    forms = [Form("some rows hard", curve, parts=hard)]
    if (labels >= 0).sum() < FEW * labels.shape[1]:
        tails = [CURVES[name] for name in ("probit", "cauchit") if CURVES[name] is not curve]
        forms += [shared_difficulty(u, tail) for tail in tails for u in SPREADS[1:]]
    for order in (pair, pair[::-1]):
        for k in COPIED:
            forms.append(Form(f"{k:.0%} copied", curve, parts=dependent(*order, k, skips=False)))
    if len(labels) < FEW:  # among many annotators, one who skips rows hardly changes π
        for j, i in permutations(range(len(labels)), 2):
            for k in SKIPPED:
                name = f"{j + 1} skips {k:.0%} of the rows marked by {i + 1}"
                forms.append(Form(name, curve, parts=dependent(j, i, k, skips=True)))
    forms += other_links(curve, " class")
    if not problem.selection_mask.any():
        forms.append(Form("propensities vary with x", curve, slopes=True))
    if np.any(problem.class_mask & ~problem.selection_mask):
        forms += [rising(curve, k) for k in RISES[:2]]
    spreads = [shared_difficulty(u, curve, f"shared difficulty {u:g}") for u in SPREADS]
    groups = [[own], spreads, *([form] for form in forms)]
    if own.false_marks is None:
        return [[replace(form, false_marks=None) for form in group] for group in groups]
    return [*groups, [Form("marks at random", curve, false_marks=None)]]


def refit_forms(
    problem: Problem, *, kept_out: bool = False, false_marks: bool = False
) -> list[Refit]:
    """Refit all forms. The fitted form comes first; the others start at its mode."""
    several = len(problem.rows.labels) > 1
    name = INDEPENDENT if several else problem.of_class.name
    own = Form(name, problem.of_class, false_marks=None if false_marks else 0.0)
    first = problem.refit(own)
    problem = replace(problem, start=first.point(first.z))
    if several:
        return problem.refit_all(list_panel_forms(own, problem, most_alike(first)))
    return problem.refit_all(list_forms(own, kept_out=kept_out))


def most_alike(refit: Refit) -> tuple[int, int]:
    """The two annotators who agree most beyond what the independent form expects."""
    marked, shown = refit.rows.labels == 1, refit.rows.labels >= 0
    # The slope in ω is the residual of a mark, weighed by the probability of a positive row.
    off = np.where(shown, refit.slopes()[0][:-1], 0.0) * np.sqrt(refit.rows.weight)
    scale = np.sqrt(np.maximum((off**2).sum(axis=1), 1e-12))
    alike = off @ off.T / np.outer(scale, scale)
    alike[~((marked.astype(int) @ marked.T.astype(int)) > 0)] = -1.0
    np.fill_diagonal(alike, -np.inf)
    one, other = np.unravel_index(int(alike.argmax()), alike.shape)
    return int(one), int(other)


# The range over all of them -------------------------------------------------------------------

WIDE = 1.96  # standard errors to either side


@dataclass(frozen=True, eq=False)
class FormRange:
    """The range of the class prior over all models that predict the labels as well.

    ``table`` has a row per form, the fitted one first: below (log-likelihood units below the best
    form; with several annotators plus one for every additional parameter), pi, c, kept, top (share
    of the 100 unlabelled rows most likely to be positive that both forms have), and for several
    annotators sd (of pi). ``missed`` is P(y=1 | x, l=0) of the ``rows`` used, for every form kept.
    """

    table: pd.DataFrame
    low: float
    high: float
    rows: int
    missed: Array
    moved: bool = False  # whether the estimate of π lies outside the ranges of all forms
    # Log-likelihood units by which this orientation fits better if marks may be false.
    orientation_gap: float = np.inf

    @property
    def kept(self) -> pd.DataFrame:
        """The forms that predict the labels as well as the best one."""
        return self.table[self.table["kept"]]

    @property
    def own_gap(self) -> float:
        """Log-likelihood units by which the fitted form lies below the best one."""
        return float(self.table["below"].iloc[0])

    @property
    def same(self) -> float:
        """Smallest share of the first rows that a kept form has in common with the fitted one."""
        return float(self.kept["top"].min())


def compared(refits: Sequence[Refit], *more: dict[str, Any]) -> pd.DataFrame:
    """Figures of the forms, the fitted one first, with P(y=1 | x, l=0) of every row."""
    several = len(refits[0].rows.labels) > 1
    records = [{"form": refit.form.name, **refit.figures()} for refit in refits]
    table = pd.DataFrame([*records, *more]).set_index("form")
    loglik = table.pop("loglik")
    if several:
        loglik = loglik - [float(refit.z.size) for refit in refits]
        table["sd"] = [refit.sd() for refit in refits]
    table.insert(0, "below", loglik.max() - loglik)
    table["kept"] = (table["below"] <= AS_WELL) | (np.arange(len(table)) == 0)
    first, *_ = tops = [set(np.argsort(-m)[:TOP]) for m in table["missed"]]
    table["top"] = [len(first & top) / max(len(first), 1) for top in tops]
    return table


def form_range(evidence: "Evidence", more: Sequence[float]) -> FormRange | None:
    """Refit every form and keep those that predict the labels as well.

    ``more``: π by other models that do, such as those that ``model="auto"`` compared.
    """
    fit, several, ends = evidence.fit, evidence.several, evidence.likelihood_range
    propensity, data, moved, gap = evidence.propensity, evidence.data, False, np.inf
    known = propensity.fixed is not None or fit.spec.false_marks  # false marks are one of the forms
    if not several and (ends is None or known):
        return None
    point = middle_of(evidence) if several else evidence.inside(evidence.peaks[0].point)
    problem = Problem.of(evidence.weak.data, point, propensity)
    kept_out = bool(np.any(data.class_mask & ~data.selection_mask)) or not propensity.has_predictor
    refits = refit_forms(problem, kept_out=kept_out, false_marks=fit.spec.false_marks)
    doubtful = [{"form": DOUBTFUL, **refits[0].doubtful()}] if kept_out and not several else []
    table = compared(refits, *doubtful)
    kept = table[table["kept"]]
    if several:
        # The refits have a weak ridge instead of the fit's priors, so the fit's interval is added.
        low, high = interval(fit.pi_draws)
        low = min(low, *more, float((kept["pi"] - WIDE * kept["sd"]).min()))
        high = max(high, *more, float((kept["pi"] + WIDE * kept["sd"]).max()))
    else:
        # The fitted form with and without false marks.
        like_own = [r for r in refits if r.form.name.split(",")[0] == refits[0].form.name]
        gap = max(r.loglik for r in like_own) - _other_orientation(evidence, problem)
        assert ends is not None
        pi, of_forms = share_positive(evidence.peaks[0].point, evidence.weak.data), kept["pi"]
        lowest, highest = min([*of_forms, *more]), max([*of_forms, *more])
        least = min(float(np.average(data.l, weights=data.weight)), lowest)
        low = max(lowest - max(pi - ends[0], 0.0), least)
        high = highest + max(ends[1] - pi, 0.0)
        moved = not low - ROUNDING <= evidence.pi <= high + ROUNDING
        if fit.is_point:
            reach = WIDE * evidence.local.sd()
            low, high = min(low, evidence.pi - reach), max(high, evidence.pi + reach)
        else:
            shifts, own = of_forms - of_forms.iloc[0], interval(evidence.pi_given_orientation)
            low = min(low, own[0] + float(shifts.min()))
            high = max(high, own[1] + float(shifts.max()))
    missed, rows = np.stack(kept["missed"].tolist()), len(problem.rows.X)
    shown = table.drop(columns="missed")
    return FormRange(shown, max(low, 0.0), min(high, 1.0), rows, missed, moved, gap)


def given_range(data: PUData) -> tuple[float, float]:
    """Range of π from external figures, two standard errors to each side.

    A figure of c gives π = P(l=1) / c, except with several annotators or false marks.
    """
    (pi, error), (c, its_error) = data.outside
    ends = [(pi - WIDE * error, pi + WIDE * error)]
    if data.n_annotators == 1:
        marked = float(np.average(data.l, weights=data.weight))
        ends.append((marked / (c + WIDE * its_error), marked / max(c - WIDE * its_error, marked)))
    low, high = np.array(ends).T
    return float(np.nanmax([0.0, *low])), float(np.nanmin([1.0, *high]))


def middle_of(evidence: "Evidence") -> Parameters:
    """Medians of the draws; means would depend on outliers of an approximation."""
    draws = evidence.fit.draws
    arrays = {name: getattr(draws, name) for name in ARRAYS}
    middle = {name: np.median(v, axis=0) for name, v in arrays.items() if v is not None}
    middle["log_w"] = middle["log_w"] - logsumexp(middle["log_w"], axis=-1, keepdims=True)
    return evidence.standardised(replace(draws, **middle, pooling={}))


def _other_orientation(evidence: "Evidence", problem: Problem) -> float:
    """Highest log likelihood with t and s swapped, false marks allowed; -inf without one.

    False marks give h a floor. The fitted model attributes a floor to the annotator's guesses and
    identifies the annotator by it, so it may swap class and annotator with false certainty.
    """
    fit = evidence.fit
    if evidence.symmetric or not fit.density.can_exchange or evidence.data.n_audited:
        return -np.inf
    if fit.orientation.settled_by == "priors":  # the orientation does not rest on the floor
        return -np.inf
    other, found, X = problem.swapped(), [-np.inf], problem.rows.X
    for rate in (0.0, *FALSE_MARKS):
        refit = other.refit(Form("", problem.of_class, false_marks=rate))
        slopes = other.start.a, other.start.alpha[0]
        here, there = (np.corrcoef(refit.score, X @ a)[0, 1] for a in slopes)
        if here > there:  # the refit has stayed in the swapped orientation
            found.append(refit.loglik)
    return max(found)


# Checks ---------------------------------------------------------------------------------------

LEVEL_REMEDY = (
    "Audit some unlabelled rows (y=), have several annotators label the same rows "
    "(one column of l each), give a column that enters only one factor, or give an external "
    "class prior (class_prior=)."
)
TOO_ALIKE = (
    "Some positives are harder for everybody than the columns show, or annotators copied each "
    "other: π is then too low. Add columns that make rows hard, or audit rows that nobody labelled "
    "(y=)."
)
REMEDY_OF_FORM = {
    "marks at random": "Let marks be false (false_marks=True), or leave that annotator out.",
    "propensities vary with x": "Fit model='spm', whose propensities vary with x.",
}


def check_forms(evidence: "Evidence") -> list[Check]:
    """Whether π is about the same under other forms, and whether the fitted form fits well."""
    found, several = evidence.forms, evidence.several
    width: dict[str, Any] = {"bears_on": (Aspect.LEVEL,), "needs": "passed"}
    if found is None:
        if evidence.propensity.fixed is not None or several:
            return []
        why = evidence.too_large.rstrip(".")
        if evidence.fit.spec.false_marks:
            why = "False marks are fitted, and other forms are tried without them"
        width["consequence"] = "it was not computed how far it depends on the form"
        text = f"{why}: how far π depends on the form is not known."
        return [Check(FORM_RANGE, "not computed", text=text, **width)]
    kept, bounds = found.kept, relative(FORM_WIDTH, evidence.pi)
    what, best = "forms of marking" if several else "forms", str(found.table["below"].idxmin())
    few, many = missed_between(evidence.data, found.low, found.high)
    wide = not several and many > SPREAD * few
    status = grade(found.high - found.low, bounds)
    if status == "passed" and (found.moved or wide):
        status = "weak"
    text = f"{len(kept)} of {len(found.table)} {what} predict the labels as well; over them π is "
    text += f"{share(found.low)} to {share(found.high)}"
    text += f", c {kept['c'].min():.2f} to {kept['c'].max():.2f}, and {found.same:.0%} or more of "
    text += f"the {TOP} likeliest missed rows are the same."
    text += judged_on(found.rows, evidence.data.n)
    text += f" In rows: {few:.0f} to {many:.0f} missed positives." if wide else ""
    width["consequence"] = f"{what} that predict the labels as well disagree about it"
    if found.moved:
        text += f" The penalty or prior moved the estimate, {share(evidence.pi)}, away from them."
        moved = "the penalty or prior of this fit moved it out of the range that the labels allow"
        width["consequence"] = moved
    remedy = TOO_ALIKE if several else LEVEL_REMEDY
    how: dict[str, Any] = {"threshold": "width of π {}", "status": status} | width
    checks = [graded(FORM_RANGE, found.high - found.low, bounds, text, remedy, **how)]

    name, remedy = "form of h", "Fit the form that the labels prefer, or quote the range of π."
    consequence = "another form of t predicts the labels better"
    if several:
        name, remedy = "form of marking", REMEDY_OF_FORM.get(best, TOO_ALIKE)
        consequence = f"another form of marking predicts the labels better ({best})"
    checks.append(
        Check(
            name,
            passed_if(found.own_gap <= AS_WELL),
            found.own_gap,
            f"at most {AS_WELL:g} {UNITS} below the best form",
            f"The best form ({best}) is {found.own_gap:.1f} {UNITS} better than the fitted one.",
            remedy,
            (Aspect.LABELS,),
            "passed",
            consequence,
        )
    )
    if several:
        return checks
    gap = found.orientation_gap
    if np.isfinite(gap):
        text = f"If some marks were false, the model with t and s swapped would be {worse(gap)}."
        remedy = (
            "Audit some rows (y=), labelled ones among them, or give a column that enters only "
            "one factor: where marks are false, labels alone may swap the factors."
        )
        how = {"bears_on": (Aspect.ORIENTATION,), "needs": "passed"}
        how["consequence"] = "with some false marks the labels would prefer the factors swapped"
        checks.append(graded("orientation with false marks", gap, MODE_GAP, text, remedy, **how))
    return checks


RECAPTURES = (50.0, 10.0)  # n rows labelled twice: a count has a relative error of about 1/sqrt(n)
SHARED_REMEDY = (
    "Show more rows to two annotators or more, audit some unlabelled rows (y=), or give a column "
    "that enters only one factor."
)


def check_overlap(evidence: "Evidence") -> list[Check]:
    """Two checks: enough rows marked by two annotators to estimate the missed ones; one mode."""
    data, spec = evidence.data, evidence.fit.spec
    if not evidence.several:
        return []
    twice = data.marked.sum(axis=1) > 1
    shared = data.marked[twice].any(axis=0)
    alone = [name for name, some in zip(data.annotators, shared, strict=True) if not some]
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
    how: dict[str, Any] = {"threshold": "{} rows labelled twice", "status": status}
    how |= {"bears_on": (Aspect.LEVEL, *naming), "needs": "weak"}
    how["consequence"] = "too few rows were labelled by two annotators"
    other = 1.0 - float(evidence.fit.quality.figures.get("mode_weights", [1.0])[0])
    modes = Check(
        "modes",
        passed_if(other < SMALL_SHARE),
        other,
        f"other modes have less than {SMALL_SHARE:.0%} of the posterior weight",
        f"Modes other than the sampled one have {other:.1%} of the posterior weight (by Laplace's "
        "method).",
        SHARED_REMEDY,
        (Aspect.ORIENTATION, Aspect.LEVEL),
        "weak",
        "the posterior has separate modes",
    )
    return [
        graded("overlap", float(twice.sum()), RECAPTURES, text, SHARED_REMEDY, **how),
        modes,
    ]


def missed_between(data: PUData, low: float, high: float) -> tuple[float, float]:
    """A range of π as numbers of missed positives among the open rows, counted by weight."""
    weights = data.kind_weights
    known, most = weights[[RowKind.LABELLED, RowKind.MISSED]].sum(), weights[RowKind.UNLABELLED]
    few, many = (min(max(pi * weights.sum() - known, 0.0), most) for pi in (low, high))
    return float(few), float(many)
