r"""Do the columns act in straight lines: a score test on squares and products, without refitting.

Let g and I be gradient and expected information of the log likelihood at its maximum, θ the model's
own coordinates and q those of terms that the model leaves out (with value 0). Then

.. math:: U = g_q - I_{q\theta} I_{\theta\theta}^{-1} g_\theta, \qquad
          V = I_{qq} - I_{q\theta} I_{\theta\theta}^{-1} I_{\theta q}, \qquad
          U' V^{-1} U \sim \chi^2

in large samples if the terms act nowhere. Four questions are put:

* squares and products of columns in t, all together and one by one (with Bonferroni's factor);
* the same in s, where columns enter s;
* the square of t's own predictor in t, one degree of freedom: another link, a ceiling;
* t's own score in s, one degree of freedom, where the model keeps it out: α = k a. This is the
  alternative that moves π most, and a test on all columns has little power against it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from bayes_lepu.links import Array
from bayes_lepu.rows import (
    CERTAIN_LINK,
    Links,
    flat_order,
    loglik_grad_info,
    make_point,
)
from bayes_lepu.rows.factoring import solve
from bayes_lepu.verdict.records import Aspect, Check, judged_on, passed_if

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

# Five tests are made; at .002 each, one straight data set in a hundred is called curved.
P_VALUE = 0.002


class Question(NamedTuple):
    """One of the questions, what the model leaves out, and what is said where it acts after all."""

    name: str
    what: str
    consequence: str
    remedy: str  # ends with the strongest term where there are several
    aspect: Aspect = Aspect.LABELS
    alone: bool = False  # whether it is one term


CURVES_OF_T, CURVES_OF_S = (
    Question(
        f"curves of {factor}",
        f"Squares and products of the columns in {factor}",
        f"the columns do not act on {factor} in straight lines",
        "Add the squares or products as columns, for example ",
    )
    for factor in "ts"
)
LINK_OF_T = Question(
    "link of t",
    "The square of t's own predictor",
    "the labels contradict the logistic form of t",
    "Read π as its range over other forms, and audit rows (y=).",
    alone=True,
)
S_ALONG_T = Question(
    "s along t",
    "t's own score in s",
    "positives that are more obvious are marked more often than this model allows",
    "Let all columns enter s (model='spm' or 'psychm', selection_features=), or audit rows (y=).",
    Aspect.LEVEL,
    alone=True,
)


class Term(NamedTuple):
    """The product of two columns (a square where they are the same)."""

    name: str
    first: int
    second: int

    def values(self, X: Array) -> Array:
        """The standardised product."""
        v = X[:, self.first] * X[:, self.second]
        return (v - v.mean()) / max(float(v.std()), 1e-12)


@dataclass(frozen=True, eq=False)
class ColumnScores:
    """Score statistics of what the model leaves out.

    Attributes
    ----------
    table : DataFrame
        One row per question and term: question, term, z (standardised efficient score).
    p_values : dict
        p of each `Question` that was put.
    named : tuple of Term
        The terms of t that stand out, the strongest first.
    rows : int
        How many rows were looked at.
    """

    table: pd.DataFrame
    p_values: dict[Question, float]
    named: tuple[Term, ...]
    rows: int


def list_terms(evidence: "Evidence") -> list[Term]:
    """Squares and products of the columns that matter most."""
    point, names = evidence.peaks[0].point, evidence.data.feature_names
    size = np.abs(point.a) + np.abs(point.alpha)
    # Products of the ten columns that matter most.
    best = np.sort(np.argsort(-size, kind="stable")[:10]).tolist()
    squares = [Term(f"{names[j]}²", j, j) for j in best]
    return squares + [Term(f"{names[i]}·{names[j]}", i, j) for i in best for j in best if i < j]


def enough_marks(term: Term, X: Array, marked: Array) -> bool:
    """Whether no cell of two columns of two values is too thin to be judged."""
    cells, at = np.unique(X[:, [term.first, term.second]], axis=0, return_inverse=True)
    # With five marks in each of four cells, one more or less is chance and no curve.
    return len(cells) > 4 or bool(np.bincount(at, weights=marked).min() >= 5)


def score_columns(evidence: "Evidence") -> ColumnScores:
    """The four questions at the maximum of the weak density."""
    data, point = evidence.weak.data, evidence.inside(evidence.peaks[0].point)
    # Beyond, every curve is significant, however small.
    part, propensity = data.evenly(50_000).as_rows, evidence.propensity
    X, tau, marked = part.X, point.tau(part.X), part.labels[0] == 1
    terms = [t for t in list_terms(evidence) if enough_marks(t, X, marked)]
    z = (tau - tau.mean()) / max(float(tau.std()), 1e-12)
    more = np.column_stack([*(t.values(X) for t in terms), z**2 - 1])
    rows = part._replace(X=np.ascontiguousarray(np.hstack([X, more])))
    where, p, m = flat_order(rows), X.shape[1], more.shape[1]
    varies, nothing = propensity.has_predictor, np.zeros(m)
    alpha, beta, rates = np.append(point.alpha, nothing), point.beta, point.log_w
    if not varies:  # a constant s as a logistic one with α = 0, so that slopes of s have a score
        c = float(np.clip(point.s(X[:1])[0], 1e-9, 1 - 1e-9))
        alpha, beta, rates = 0 * alpha, np.log(c) - np.log1p(-c), CERTAIN_LINK
    at = make_point(
        a=np.append(point.a, nothing),
        b=point.b,
        alpha=alpha,
        beta=beta,
        rates=rates,
        epsilon=0.0 if point.epsilon is None else point.epsilon,
        class_rates=point.of_class.log_rates(),
    )
    links = Links(propensity.link, point.of_class.link)
    _, grad, info = loglik_grad_info(rows, links, at)

    own = np.zeros(where.size, dtype=bool)
    free, of_s = where.entries(own), where.of_selection(0).start
    free.a[:p], free.b[...] = data.class_mask, True
    free.alpha[:, :p], free.beta[...] = data.selection_mask & varies, propensity.fixed is None
    if varies:
        free.uv[:, list(propensity.coordinate_rates)] = True
    unit = np.eye(where.size)
    questions = {CURVES_OF_T: unit[:, p : p + m - 1], LINK_OF_T: unit[:, p + m - 1 : p + m]}
    if varies:
        questions[CURVES_OF_S] = unit[:, of_s + p : of_s + p + m - 1]
    along = np.zeros((where.size, 1))
    along[of_s : of_s + p, 0] = np.where(varies & data.selection_mask, 0.0, point.a)
    if propensity.fixed is None and along.any():
        questions[S_ALONG_T] = along
    p_values, tables = {}, []
    for question, E in questions.items():
        p_values[question], stat = _p_value(*efficient_scores(grad, info, own, E))
        labels = [question.name] if question.alone else [t.name for t in terms]
        tables.append(pd.DataFrame({"question": question.name, "term": labels, "z": stat}))
    first = tables[0]["z"].to_numpy()
    order = np.argsort(-np.abs(first))[:3]  # handed on to be refitted
    stands_out = chdtrc(1, first**2) * (m - 1) < P_VALUE
    named = tuple(terms[i] for i in order if stands_out[i])
    if not named and p_values[CURVES_OF_T] < P_VALUE:
        named = tuple(terms[i] for i in order)
    return ColumnScores(pd.concat(tables, ignore_index=True), p_values, named, len(X))


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
    found = evidence.columns
    if evidence.too_large:
        name, text = CURVES_OF_T.name, evidence.too_large
        return [Check(name, "not computed", text=text, bears_on=(Aspect.LABELS,), needs="passed")]
    checks = []
    for question, p in ({} if found is None else found.p_values).items():
        assert found is not None
        part = found.table[found.table["question"] == question.name]
        if part.empty:  # all products of two columns have cells that are too thin
            continue
        strongest = part.loc[part["z"].abs().idxmax(), "term"]
        text = f"{question.what} would improve the fit with p = {p:.2g}"
        text += "." if question.alone else f"; the strongest is {strongest}."
        # Columns that are kept out of s name the factors, as long as they stay out of it.
        names_too = question is S_ALONG_T and evidence.fit.orientation.settled_by == "columns"
        checks.append(
            Check(
                question.name,
                passed_if(p >= P_VALUE),
                p,
                f"p at least {P_VALUE:g}",
                text + judged_on(found.rows, evidence.data.n),
                question.remedy + ("" if question.alone else f"{strongest}."),
                bears_on=(question.aspect, *([Aspect.ORIENTATION] if names_too else [])),
                needs="passed",
                consequence=question.consequence,
            )
        )
    return checks
