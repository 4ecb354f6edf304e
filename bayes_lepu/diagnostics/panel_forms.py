r"""Several annotators: π under other forms of how they mark, as far as the labels allow them.

.. math::
    A_i = \sum_k w_k \prod_j \psi_{ij}(u_k)^{l_{ij}} (1-\psi_{ij}(u_k))^{1-l_{ij}}, \qquad
    \psi_{ij}(u) = \gamma_j + (1-\gamma_j-\lambda_j)\,\sigma(\alpha_j \cdot x_i + \beta_j + u),
    \qquad L_i = t_i A_i + (1-t_i) B_i.

The fitted model has u = 0: annotators mark independently given x and the class. Others are

* a difficulty u that all annotators share, u ~ N(0, σ_d²) by Gauss–Hermite quadrature, or a fifth
  of the positives harder than the rest: the more of it, the more positives are missed by all;
* one annotator who copies another on a share of the rows;
* annotators who mark rows at random, B_i = Π ε_j^l (1-ε_j)^(1-l);
* other links of the class;
* for constant propensities: slopes, and a rise with the class's own score.

Binary labels of two annotators hardly tell these apart, those of many do. So π is reported over all
forms that predict the labels as well, and not at one of them.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit, logsumexp, roots_hermitenorm

from bayes_lepu.diagnostics.form_refits import link_scale
from bayes_lepu.diagnostics.forms import AS_WELL
from bayes_lepu.diagnostics.subject import WEAK_SLOPE_SCALE
from bayes_lepu.factors import CURVES, Factor
from bayes_lepu.factors.logistic import FACTOR as LOGISTIC
from bayes_lepu.likelihood.factoring import solve
from bayes_lepu.links import Array

SPREADS = (0.5, 1.0, 1.5, 2.0)  # sd of the shared difficulty, in log odds of being marked
HARD = (0.2, -3.0)  # share of the positives that are harder, and by how much
COPIED = (0.25, 0.5)  # shares of the rows that one annotator copies
RISES = (0.5, 1.0)  # of the log odds of a constant s, over one sd of the class's predictor
FEW = 2.5  # labels per row that cannot tell a difficulty from a link of the class
NODES = 9
MAX_CELLS = 20_000
ITERATIONS = 60
FIRST_FALSE = 0.01  # rate of false marks from which the refit starts
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Panel:
    """Rows with the labels of several annotators.

    Attributes
    ----------
    X : (n, p) array
    labels : (n, J) array
        1, 0, or -1 where the row was not shown.
    known : (n,) array
        Audited class 1 or 0, else -1.
    class_mask, selection_mask : (p,) arrays
        Which columns enter t and the s_j; none for constant propensities.
    rates : (J, 2) array
        Guesses and lapses (γ, λ) of every annotator, held as fitted.
    weight : (n,) array
        How often every row counts.
    of_class : Factor
        The fitted curve of the class.
    """

    X: Array
    labels: NDArray[np.int8]
    known: NDArray[np.int8]
    class_mask: NDArray[np.bool_]
    selection_mask: NDArray[np.bool_]
    rates: Array
    weight: Array
    of_class: Factor = LOGISTIC

    def some(self) -> "Panel":
        """An evenly spaced part of the rows with at most `MAX_CELLS` labels."""
        keep = slice(None, None, max(1, -(-self.labels.size // MAX_CELLS)))
        return replace(
            self,
            X=self.X[keep],
            labels=self.labels[keep],
            known=self.known[keep],
            weight=self.weight[keep],
        )


@dataclass(frozen=True, eq=False)
class PanelForm:
    """One form of how several annotators mark.

    Attributes
    ----------
    name : str
        In words.
    shifts, shares : arrays
        What all annotators' log odds of marking a row have in common, and how often.
    copied : (int, int, float) or None
        Which annotator copies which other one, on which share of the rows.
    of_class : Factor, optional
        Another curve of the class.
    false_marks : bool
        Whether every annotator has a rate of marks on negative rows.
    slopes : bool
        Whether constant propensities get slopes.
    rise : float
        By how much all log odds rise with one sd of t's predictor, by columns kept out of s.
    """

    name: str
    shifts: Array = field(default_factory=lambda: np.zeros(1))
    shares: Array = field(default_factory=lambda: np.ones(1))
    copied: tuple[int, int, float] | None = None
    of_class: Factor | None = None
    false_marks: bool = False
    slopes: bool = False
    rise: float = 0.0


INDEPENDENT = "annotators independent"


def shared_difficulty(spread: float, curve: Factor | None = None) -> PanelForm:
    """A difficulty of this sd that all annotators share."""
    u, w = roots_hermitenorm(NODES)
    name = f"shared difficulty {spread:g}" + (f", {curve.name} class" if curve else "")
    return PanelForm(name, spread * u, w / w.sum(), of_class=curve)


def list_panel_forms(
    panel: Panel, pair: tuple[int, int], *, false_marks: bool = False
) -> list[PanelForm]:
    """All forms, the fitted one first; ``pair`` are the annotators who agree most.

    Where the fit has false marks, all have them.
    """
    share, shift = HARD
    others = {name: curve for name, curve in CURVES.items() if curve is not panel.of_class}
    hard = PanelForm("some rows hard", np.array([0.0, shift]), np.array([1 - share, share]))
    forms = [PanelForm(INDEPENDENT), *map(shared_difficulty, SPREADS), hard]
    if (panel.labels >= 0).sum() < FEW * len(panel.labels):
        tails = [others[name] for name in ("probit", "cauchit") if name in others]
        forms += [shared_difficulty(u, curve) for curve in tails for u in SPREADS[1:]]
    forms += [
        PanelForm(f"{part:.0%} copied", copied=(*order, part))
        for order in (pair, pair[::-1])
        for part in COPIED
    ]
    forms += [PanelForm(f"{name} class", of_class=curve) for name, curve in others.items()]
    if not false_marks:
        forms.append(PanelForm("marks at random", false_marks=True))
    if not panel.selection_mask.any():
        forms.append(PanelForm("propensities vary with x", slopes=True))
    if np.any(panel.class_mask & ~panel.selection_mask):
        forms += [PanelForm(f"s rises with t's score by {k:g} per sd", rise=k) for k in RISES]
    return [replace(form, false_marks=form.false_marks or false_marks) for form in forms]


def panel_forms(
    panel: Panel, *, a: Array, b: float, alpha: Array, beta: Array, false_marks: bool = False
) -> pd.DataFrame:
    """π under every form, refitted from the answer at hand.

    Returns
    -------
    DataFrame
        Index form; columns pi, sd (of pi, delta method), c (share of the positives that somebody
        marked), below (log-likelihood units below the best form, one more for every parameter
        more) and kept.
    """
    panel = panel.some()
    tau = panel.X @ a + b
    along = np.where(panel.class_mask & ~panel.selection_mask, a, 0.0) / max(tau.std(), TINY)
    start = np.concatenate(
        [a[panel.class_mask], [b], np.column_stack([alpha[:, panel.selection_mask], beta]).ravel()]
    )
    fitted = PanelForm(INDEPENDENT, false_marks=false_marks)
    first = Fitted.climb(panel, fitted, start, along)
    pair = most_alike(panel, first)
    records, z = [], first.z
    for form in list_panel_forms(panel, pair, false_marks=false_marks):
        # The difficulties are climbed one from the other, the rest from independence.
        chained = form.shifts.size > 2 and form.of_class is None
        found = Fitted.climb(panel, form, z if chained else first.z, along)
        z = found.z if chained else z
        more = found.z.size - first.z.size
        records.append({"form": form.name, "loglik": found.loglik - more, **found.shares()})
    table = pd.DataFrame(records).set_index("form")
    table["below"] = table["loglik"].max() - table.pop("loglik")
    table["kept"] = table["below"] <= AS_WELL
    return table


@dataclass(frozen=True, eq=False)
class Fitted:
    """A form at its maximum."""

    panel: Panel
    form: PanelForm
    along: Array
    z: Array
    loglik: float

    @classmethod
    def climb(cls, panel: Panel, form: PanelForm, start: Array, along: Array) -> "Fitted":
        """The maximum next to the answer ``start``, with or without rates of false marks."""
        if form.slopes:
            panel = replace(panel, selection_mask=panel.class_mask)
        z = _start(panel, form, start)
        precision = _ridge(panel, form, z.size)

        def negative(w: Array) -> tuple[float, Array]:
            value, grad = loglik_grad(panel, w, form, along)
            return -value + 0.5 * float(precision @ w**2), -grad + precision * w

        found = minimize(negative, z, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
        return cls(panel, form, along, found.x, loglik_grad(panel, found.x, form, along)[0])

    def shares(self) -> dict[str, float]:
        """π with its sd, and the share of the positives that somebody marked."""
        panel, form = self.panel, self.form
        parts, (Xt, Xs) = _evaluate(panel, self.z, form, self.along), _designs(panel)
        # The information is that of the rows' own scores, and the weak ridge.
        scores = [parts.d_tau[:, None] * Xt]
        scores += [d[:, None] * Xs for d in parts.d_omega.T]
        scores += [parts.d_false] if form.false_marks else []
        G, w = np.hstack(scores), panel.weight
        total = (G * w[:, None]).T @ G + np.diag(_ridge(panel, form, self.z.size))
        slope = np.zeros(self.z.size)
        slope[: Xt.shape[1]] = (w * parts.t_slope) @ Xt / w.sum()
        pi, marked = float(np.average(parts.t, weights=w)), (panel.labels == 1).any(axis=1)
        return {
            "pi": pi,
            "sd": float(np.sqrt(max(float(slope @ solve(total, slope)), 0.0))),
            "c": float(np.average(parts.m * marked, weights=w)) / max(pi, TINY),
        }


@dataclass(frozen=True, eq=False)
class _Parts:
    """Everything about the rows that value and gradient need."""

    t: Array
    t_slope: Array
    loglik: Array
    m: Array  # P(y = 1 | x, labels)
    d_tau: Array
    d_omega: Array
    d_false: Array


def loglik_grad(
    panel: Panel, z: Array, form: PanelForm, along: Array | float = 0.0
) -> tuple[float, Array]:
    """Log likelihood and gradient in (a, b, then α_j, β_j of every annotator, then logit ε_j)."""
    parts = _evaluate(panel, z, form, along)
    (Xt, Xs), w = _designs(panel), panel.weight
    grad = [(w * parts.d_tau) @ Xt, ((w[:, None] * parts.d_omega).T @ Xs).ravel()]
    if form.false_marks:
        grad.append(w @ parts.d_false)
    return float(w @ parts.loglik), np.concatenate(grad)


def _evaluate(panel: Panel, z: Array, form: PanelForm, along: Array | float) -> _Parts:
    (Xt, Xs), J = _designs(panel), panel.labels.shape[1]
    curve = form.of_class or panel.of_class
    k, q = Xt.shape[1], Xs.shape[1]
    omega = Xs @ z[k : k + J * q].reshape(J, q).T
    if form.rise:
        omega = omega + form.rise * (panel.X @ np.asarray(along))[:, None]
    epsilon = expit(z[k + J * q :]) if form.false_marks else np.zeros(J)
    marked, shown = panel.labels == 1, panel.labels >= 0
    # Every cell under every shift: (n, J, shifts).
    sigma = expit(omega[..., None] + form.shifts)
    guess, lapse = panel.rates.T[..., None]
    psi = np.clip(guess + (1 - guess - lapse) * sigma, TINY, 1 - TINY)
    cells = np.log(np.where(marked[..., None], psi, 1 - psi)) * shown[..., None]
    slope = (1 - guess - lapse) * sigma * (1 - sigma)
    residual = (marked[..., None] - psi) * slope / (psi * (1 - psi)) * shown[..., None]
    at = cells.sum(axis=1) + np.log(form.shares)
    if form.copied is not None:
        at, residual = _with_copies(form.copied, panel.labels, at, cells, residual)
    log_A = logsumexp(at, axis=1)
    share = np.exp(at - log_A[:, None])
    with np.errstate(divide="ignore"):
        log_false, log_true = np.log(epsilon), np.log1p(-epsilon)
    log_B = np.where(shown, np.where(marked, log_false, log_true), 0.0).sum(axis=1)
    log_t, log_not, log_slope = curve.logs(Xt @ z[:k], curve.log_rates())
    yes = np.where(panel.known == 0, -np.inf, log_t + log_A)
    no = np.where(panel.known == 1, -np.inf, log_not + log_B)
    loglik = np.logaddexp(yes, no)
    m, t = np.exp(yes - loglik), np.exp(log_t)
    return _Parts(
        t,
        np.exp(log_slope),
        loglik,
        m,
        (m - t) * np.exp(log_slope - log_t - log_not),
        m[:, None] * (residual * share[:, None, :]).sum(axis=2),
        (1 - m)[:, None] * (marked - epsilon) * shown,
    )


def _with_copies(
    copied: tuple[int, int, float],
    labels: NDArray[np.int8],
    at: Array,
    cells: Array,
    residual: Array,
) -> tuple[Array, Array]:
    """Besides the independent rows those on which one annotator has another's label."""
    j, other, part = copied
    both = (labels[:, j] >= 0) & (labels[:, other] >= 0)
    same = both & (labels[:, j] == labels[:, other])
    own = at[:, 0] + np.where(both, np.log1p(-part), 0.0)
    copies = np.where(same, at[:, 0] - cells[:, j, 0] + np.log(part), -np.inf)
    residual = np.repeat(residual, 2, axis=2)
    residual[:, j, 1] = 0.0
    return np.column_stack([own, copies]), residual


def _designs(panel: Panel) -> tuple[Array, Array]:
    one = np.ones((len(panel.X), 1))
    return (
        np.hstack([panel.X[:, panel.class_mask], one]),
        np.hstack([panel.X[:, panel.selection_mask], one]),
    )


def _start(panel: Panel, form: PanelForm, start: Array) -> Array:
    """The independent answer with what the form adds to it."""
    k, J = int(panel.class_mask.sum()) + 1, panel.labels.shape[1]
    stop = k + J * (1 if form.slopes else int(panel.selection_mask.sum()) + 1)
    of_class, selection, more = _scale(panel, form) * start[:k], start[k:stop], start[stop:]
    if form.slopes:
        flat = np.zeros((J, int(panel.selection_mask.sum())))
        selection = np.column_stack([flat, selection]).ravel()
    if form.false_marks and not more.size:
        more = np.full(J, logit(FIRST_FALSE))
    return np.concatenate([of_class, selection, more])


def _scale(panel: Panel, form: PanelForm) -> float:
    """Slopes of a form's class against those of the fitted one."""
    return link_scale(form.of_class or panel.of_class) / link_scale(panel.of_class)


def _ridge(panel: Panel, form: PanelForm, size: int) -> Array:
    """Precision of the weak ridge: on slopes only."""
    k, q = int(panel.class_mask.sum()), int(panel.selection_mask.sum())
    J = panel.labels.shape[1]
    slope = np.zeros(size)
    slope[:k] = _scale(panel, form) ** -2
    slope[k + 1 : k + 1 + J * (q + 1)].reshape(J, q + 1)[:, :-1] = 1.0
    return slope / WEAK_SLOPE_SCALE**2


def most_alike(panel: Panel, fitted: Fitted) -> tuple[int, int]:
    """The two annotators who agree most beyond what the independent form expects."""
    marked, shown = panel.labels == 1, panel.labels >= 0
    parts = _evaluate(panel, fitted.z, fitted.form, fitted.along)
    # d_omega is the residual of a mark, weighed by the probability that the row is positive.
    off = np.where(shown, parts.d_omega, 0.0) * np.sqrt(panel.weight)[:, None]
    scale = np.sqrt(np.maximum((off**2).sum(axis=0), TINY))
    alike = off.T @ off / np.outer(scale, scale)
    alike[~((marked.T.astype(int) @ marked.astype(int)) > 0)] = -1.0
    np.fill_diagonal(alike, -np.inf)
    one, other = np.unravel_index(int(alike.argmax()), alike.shape)
    return int(one), int(other)
