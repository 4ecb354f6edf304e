r"""Annotators who find the same rows hard: π as a curve over the spread of a shared difficulty.

.. math::
    A_i = \int \prod_j \psi_{ij}(u)^{l_{ij}} (1-\psi_{ij}(u))^{1-l_{ij}}\, dN(u; 0, \sigma_d^2),
    \qquad \psi_{ij}(u) = \sigma(\alpha_j \cdot x_i + \beta_j + u), \qquad
    L_i = t_i A_i + (1-t_i) B_i,

the integral by Gauss–Hermite quadrature. With σ_d = 0 annotators mark independently given x and the
class; the larger σ_d, the more positives are missed by all of them together. Binary labels hardly
tell σ_d, so π is reported as a curve and not at one estimate.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp, roots_hermitenorm

from bayes_lepu.links import Array

SPREADS = (0.0, 0.5, 1.0, 1.5)  # sd of the shared difficulty, in log odds of being marked
NODES = 9
MAX_ROWS = 4000
SLOPE_SCALE = 2.5  # of the weak ridge, on standardised columns
AS_WELL = 4.0  # log-likelihood units within which two spreads predict the labels alike
ITERATIONS = 60


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
    """

    X: Array
    labels: NDArray[np.int8]
    known: NDArray[np.int8]
    class_mask: NDArray[np.bool_]
    selection_mask: NDArray[np.bool_]

    def some(self) -> "Panel":
        """An evenly spaced part of at most `MAX_ROWS` rows."""
        keep = slice(None, None, max(1, -(-len(self.X) // MAX_ROWS)))
        return Panel(
            self.X[keep],
            self.labels[keep],
            self.known[keep],
            self.class_mask,
            self.selection_mask,
        )


def difficulty_curve(
    panel: Panel, *, a: Array, b: float, alpha: Array, beta: Array
) -> pd.DataFrame:
    """Best π for every spread of the shared difficulty, from the answer at hand.

    Returns
    -------
    DataFrame
        Index spread; columns pi, below (log-likelihood units below the best spread) and kept.
    """
    panel = panel.some()
    slopes = alpha[:, panel.selection_mask]
    z = np.concatenate([a[panel.class_mask], [b], np.column_stack([slopes, beta]).ravel()])
    records = []
    for spread in SPREADS:
        found = minimize(
            lambda w, s=spread: _negative(panel, w, s),
            z,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": ITERATIONS},
        )
        z = found.x
        k = int(panel.class_mask.sum())
        pi = float(expit(panel.X[:, panel.class_mask] @ z[:k] + z[k]).mean())
        records.append({"spread": spread, "pi": pi, "loglik": -float(found.fun)})
    table = pd.DataFrame(records).set_index("spread")
    table["below"] = table["loglik"].max() - table.pop("loglik")
    table["kept"] = table["below"] <= AS_WELL
    return table


def _negative(panel: Panel, z: Array, spread: float) -> tuple[float, Array]:
    value, grad = loglik_grad(panel, z, spread)
    slope = np.ones(z.size)
    k, q = int(panel.class_mask.sum()), int(panel.selection_mask.sum())
    slope[k] = 0.0
    slope[k + 1 :].reshape(-1, q + 1)[:, -1] = 0.0
    precision = slope / SLOPE_SCALE**2
    return -value + 0.5 * float(precision @ z**2), -grad + precision * z


def loglik_grad(panel: Panel, z: Array, spread: float) -> tuple[float, Array]:
    """Log likelihood and gradient in (a, b, then α_j, β_j of every annotator)."""
    k, J = int(panel.class_mask.sum()), panel.labels.shape[1]
    Xt = np.column_stack([panel.X[:, panel.class_mask], np.ones(len(panel.X))])
    Xs = np.column_stack([panel.X[:, panel.selection_mask], np.ones(len(panel.X))])
    tau = Xt @ z[: k + 1]
    omega = Xs @ z[k + 1 :].reshape(J, -1).T
    u, w = roots_hermitenorm(NODES)
    marked, shown = panel.labels == 1, panel.labels >= 0
    moved = omega[..., None] + spread * u  # (n, J, nodes)
    cells = np.where(marked[..., None], log_expit(moved), log_expit(-moved)) * shown[..., None]
    at_nodes = cells.sum(axis=1) + np.log(w / w.sum())
    log_A = logsumexp(at_nodes, axis=1)
    share = np.exp(at_nodes - log_A[:, None])
    log_B = np.where(marked.any(axis=1), -np.inf, 0.0)
    yes = np.where(panel.known == 0, -np.inf, log_expit(tau) + log_A)
    no = np.where(panel.known == 1, -np.inf, log_expit(-tau) + log_B)
    loglik = np.logaddexp(yes, no)
    m = np.exp(yes - loglik)
    residual = ((marked[..., None] - expit(moved)) * share[:, None, :]).sum(axis=2)
    d_omega = m[:, None] * residual * shown
    return float(loglik.sum()), np.concatenate([(m - expit(tau)) @ Xt, (d_omega.T @ Xs).ravel()])
