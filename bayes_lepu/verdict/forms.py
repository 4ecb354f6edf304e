r"""How far the form carries the answer: π and c under other forms that predict the labels as well.

Every row of the labels has probability

.. math:: h = t\,s + (1-t)\,\varepsilon, \qquad t = \kappa F(a \cdot x + b),

and the fitted model sets F = σ, κ = 1 and ε = 0. Here the class gets other links F (probit, both
complementary log-log links, cauchit), a ceiling κ below one, squares and products of the columns
that `columns` names; marks may be false at a small rate ε; and s may follow the class's own score
where the model keeps columns out of it, or be lower for doubtful positives, at the same h. Each is
refitted from the answer at hand, under the same weak ridge. Forms whose log likelihood lies within
4 units of the best predict the labels as well: what they say about π differs by the form alone, not
by the data.

The range of π over them, widened by the distance from π to the ends of the usual likelihood set, is
the *form range*. Of a posterior it also holds its interval, moved by what each form moves π: where
priors shift the posterior, the interval of the fitted form alone is too short on the other side.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.factors import CURVES, Factor, ceiling
from bayes_lepu.links import Array, RowKind
from bayes_lepu.result.numbers_in_words import UNITS, share, worse
from bayes_lepu.verdict import thresholds
from bayes_lepu.verdict.climbing import share_positive
from bayes_lepu.verdict.columns import Term
from bayes_lepu.verdict.levels import LEVEL_REMEDY, OWN_BRANCHES, interval
from bayes_lepu.verdict.profile import Profile
from bayes_lepu.verdict.records import Aspect, Check, not_computed, passed_if
from bayes_lepu.verdict.refits import Form, Problem, Refit
from bayes_lepu.verdict.thresholds import grade, graded, judged_on

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

AS_WELL = 4.0  # log-likelihood units within which two forms predict the labels alike
FALSE_MARKS = (0.0, 0.02, 0.05)
CEILINGS = (0.9, 0.8)
RISES = (0.5, 1.0, 2.0)  # of the log odds of a constant s, over one sd of the class's predictor
FLOORS = (0.05, 0.1, 0.2)  # of an s that follows t, from s = floor to s = 1 - floor
WIDENING = 1.0  # times the half-width of the likelihood set of π, beyond the outermost forms
TOP = 100
SAME_ROWS = 0.5  # share of the first rows below which two forms send one to other rows
SPREAD = 5.0  # times as many missed positives at the upper end: the total is not known then
REFUTED = 8.0  # log-likelihood units below the best form at which the fitted one says nothing
ORDER = "order under other forms"
DOUBTFUL = "doubtful positives marked half as often"
MOVED = "the penalty or prior of this fit moved it out of what the labels leave"


_WIDTH: dict[str, Any] = {
    "bears_on": (Aspect.LEVEL,),
    "needs": "passed",
    "consequence": "forms that predict the labels as well disagree about it",
}


@dataclass(frozen=True, eq=False)
class FormRange:
    """The class prior over all forms that predict the labels as well.

    Attributes
    ----------
    table : DataFrame
        One row per form: below (log-likelihood units below the best form), pi, c, top (share of
        the 100 unlabelled rows most likely to be positive that are the same), yield (share of
        positives among these 100), kept.
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
        By how much the likelihood prefers this naming of the factors to the other, false marks
        allowed; infinite where the other is no answer or the question does not arise.
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


def list_forms(own: Factor, terms: tuple[Term, ...], *, kept_out: bool) -> list[tuple[Form, ...]]:
    """All forms, the fitted model's ``own`` first (``kept_out``: columns of t do not enter s).

    Those with more and more false marks stand together.
    """
    shapes = [Form(own.name, own)]
    shapes += [Form(name, curve) for name, curve in CURVES.items() if curve is not own]
    shapes += [Form(f"ceiling {top:g}", ceiling(top)) for top in CEILINGS]
    if terms:
        shapes.append(Form("with " + ", ".join(t.name for t in terms), own, terms=terms))
    forms = [
        (
            shape,
            *(
                replace(shape, name=f"{shape.name}, {rate:.0%} false marks", false_marks=rate)
                for rate in FALSE_MARKS[1:]
            ),
        )
        for shape in shapes
    ]
    if kept_out:
        forms += [(Form(f"s rises with t's score by {k:g} per sd", own, rise=k),) for k in RISES]
        forms += [(Form(f"s = {f:g} + {1 - 2 * f:g} t", own, floor=f),) for f in FLOORS]
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


def form_range(
    subject: "Evidence", profile: Profile | None, terms: tuple[Term, ...]
) -> FormRange | None:
    """Refit every form and keep those that predict the labels as well."""
    known, own = subject.propensity.fixed is not None, subject.peaks[0]
    if profile is None or known or own.point.epsilon is not None:
        return None  # fitted false marks are themselves one of the forms
    data, varies = subject.data, subject.propensity.has_predictor
    problem = Problem.of(subject.weak.data, subject.inside(own.point), subject.propensity)
    kept_out = not varies or bool(np.any(data.class_mask & ~data.selection_mask))
    records: list[dict[str, Any]] = []
    calls: dict[str, str] = {}
    fitted: list[Refit] = []  # the fitted form, with no and more false marks
    for number, forms in enumerate(list_forms(problem.of_class, terms, kept_out=kept_out)):
        z = None
        for form in forms:
            refit = problem.refit(form, z)
            z = refit.z
            records.append({"form": form.name, **refit.figures()})
            calls[form.name] = options_of(form, problem.of_class)
            if number == 0:
                fitted.append(refit)
            # A rate of false marks that makes a form worse makes it worse still when higher.
            if form.false_marks and records[-1]["loglik"] < records[-2]["loglik"] - AS_WELL:
                break
    with_marks = max(record["loglik"] for record in records[: len(fitted)])
    if kept_out:
        records.append({**fitted[0].doubtful(), "form": DOUBTFUL})
    naming_gap = with_marks - _other_naming(subject, problem)
    table = pd.DataFrame(records).set_index("form")
    table["below"] = table["loglik"].max() - table.pop("loglik")
    missed = np.stack(table.pop("missed").tolist())
    likeliest = np.argsort(-missed[0])[:TOP]
    top = set(likeliest)
    table["top"] = [len(top & set(np.argsort(-m)[:TOP])) / max(len(top), 1) for m in missed]
    table["yield"] = missed[:, likeliest].mean(axis=1) if top else 0.0
    table["kept"] = (table["below"] <= AS_WELL) | (np.arange(len(table)) == 0)
    pi = share_positive(own.point, subject.weak.data)
    pieces = profile.likelihood_set(branches=OWN_BRANCHES)
    kept = table.loc[table["kept"], "pi"]
    low = float(kept.min()) - WIDENING * max(pi - pieces[0][0], 0.0)
    high = float(kept.max()) + WIDENING * max(pieces[-1][1] - pi, 0.0)
    low = max(low, min(float(np.average(data.l, weights=data.row_weights)), float(kept.min())))
    estimate, rounding = float(np.mean(subject.pi_draws)), thresholds.ROUNDING
    moved = not low - rounding <= estimate <= high + rounding
    if not subject.fit.is_point:
        shifts, ends = kept - kept.iloc[0], interval(subject.pi_given_naming)
        low = min(low, ends[0] + float(shifts.min()))
        high = max(high, ends[1] + float(shifts.max()))
    return FormRange(
        table[["below", "pi", "c", "top", "yield", "kept"]],
        max(low, 0.0),
        min(high, 1.0),
        float(table["below"].iloc[0]),
        len(problem.rows.X),
        calls.get(str(table["below"].idxmin()), ""),
        moved,
        naming_gap,
        missed[table["kept"].to_numpy()],
    )


def _other_naming(subject: "Evidence", problem: Problem) -> float:
    """Highest log likelihood with the factors exchanged, false marks allowed; -inf without one.

    False marks leave a floor below h, and a floor is what tells the annotator (his guesses) from
    the class: without this the fitted form may call the annotator the class, and be sure of it.
    """
    if subject.symmetric or not subject.foldable or subject.data.n_audited:
        return -np.inf
    if subject.fit.orientation.settled_by == "priors":  # signs name the factors, not the floor
        return -np.inf
    other, found, X = problem.swapped(), [-np.inf], problem.rows.X
    for rate in FALSE_MARKS:
        refit = other.refit(Form("", problem.of_class, false_marks=rate))
        slopes = other.start.a, other.start.alpha[0]
        here, there = (np.corrcoef(refit.score, X @ a)[0, 1] for a in slopes)
        if here > there:  # the refit did not find its way back
            found.append(refit.figures()["loglik"])
    return max(found)


def check_forms(evidence: "Evidence") -> list[Check]:
    """Whether π stays where it is under other forms, and whether the fitted form is among them."""
    found = evidence.forms
    if found is None:
        if evidence.propensity.fixed is not None:
            return []
        why = evidence.too_large.rstrip(".")
        if evidence.fit.spec.false_marks:
            why = "False marks are fitted, and other forms are tried without them"
        text = f"{why}: how far the form carries π is not known."
        told = {"consequence": "how far its form carries it was not computed"}
        return [not_computed("form range", text, **_WIDTH | told)]
    kept, pi = found.kept, float(np.mean(evidence.pi_draws))
    bounds = thresholds.relative(thresholds.FORM_WIDTH, pi)
    width = found.high - found.low
    status = grade(width, bounds)
    few, many = missed_between(evidence.data, found.low, found.high)
    if status == "passed" and (found.moved or many > SPREAD * few):
        status = "weak"
    text = (
        f"{len(kept)} of {len(found.table)} forms predict the labels as well; over them π is "
        f"{share(found.low)} to {share(found.high)}, c {kept['c'].min():.2f} to "
        f"{kept['c'].max():.2f}, and {kept['top'].min():.0%} or more of the {TOP} likeliest missed "
        f"rows are the same.{judged_on(found.rows, evidence.data.n)}"
    )
    if many > SPREAD * few:
        text += f" In rows: {few:.0f} to {many:.0f} missed positives."
    if found.moved:
        text += f" The penalty or prior put the estimate, {share(pi)}, where no form has it."
    best, call = found.table["below"].idxmin(), found.call and f" ({found.call})"
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
            f"Fit the form that the labels prefer{call}, or read π as its range.",
            bears_on=(Aspect.LABELS,),
            needs="passed",
            consequence="another form of t predicts the labels better",
        ),
        _order(found),
        *_naming(found),
    ]


def missed_between(data: PUData, low: float, high: float) -> tuple[float, float]:
    """A range of π as numbers of missed positives among the open rows, by their weights."""
    weights = data.kind_weights
    known, most = weights[[RowKind.LABELLED, RowKind.MISSED]].sum(), weights[RowKind.UNLABELLED]
    few, many = (min(max(pi * weights.sum() - known, 0.0), most) for pi in (low, high))
    return float(few), float(many)


def _naming(found: FormRange) -> list[Check]:
    """Whether the naming of the factors survives false marks."""
    gap = found.naming_gap
    if not np.isfinite(gap):
        return []
    return [
        graded(
            "naming with false marks",
            gap,
            thresholds.MODE_GAP,
            f"If some marks were false, the factors exchanged would be {worse(gap)}.",
            "Audit some rows (y=), labelled ones among them, or name a column that enters only one "
            "factor: where marks are false, labels alone may name the factors wrongly.",
            bears_on=(Aspect.ORIENTATION,),
            needs="passed",
            consequence="with some false marks the labels would name the factors the other way",
        )
    ]


def _order(found: FormRange) -> Check:
    """Whether forms agree on the rows to look at first; only a better form can refute the order."""
    least = float(found.kept["top"].min())
    return passed_if(
        least >= SAME_ROWS,
        ORDER,
        least,
        f"at least {SAME_ROWS:.0%} of the first {TOP} rows the same",
        f"Of the {TOP} open rows that are most likely positive, {least:.0%} or more are the same "
        "under every form that predicts the labels as well.",
        "Audit some of these rows, or fit the form that the labels prefer.",
        otherwise="weak" if found.own_gap <= REFUTED else "failed",
        bears_on=(Aspect.RANKING,),
        consequence="a form that predicts the labels better names other rows",
    )
