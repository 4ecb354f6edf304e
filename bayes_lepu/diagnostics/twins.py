r"""Different parameters, the same h: the explicit second solutions on the exceptional sets.

PsychM determines its parameters from h except where a = 0, a = α, a = -α, s is constant, or γ = 0;
SPM determines the unordered pair except where a = α = 0. With
:math:`g^* = \gamma e^{b-\beta}` and :math:`k^* = (1-\lambda) e^{b+\beta}`:

* a = 0: (γ, 1-λ, σ(b)) → (mγ, m(1-λ), σ(b)/m), a ridge;
* a = α, g* < 1-λ: β' = b, γ' = g*, b' = β;
* a = α, 1-λ < g* ≤ 1: annotator reversed, α' = -α, β' = -b, γ' = 1-λ, λ' = 1-g*, b' = β;
* a = -α, γ < k* ≤ 1: β' = -b, λ' = 1-k*, b' = -β;
* a = -α, k* < γ: annotator reversed, α' = -α, β' = b, γ' = k*, λ' = 1-γ, b' = -β;
* s constant, h = c σ(η): t = σ(η+d) for every d ≥ log c, by α = a or by α = -a;
* γ = 0: the factors exchanged (with λ kept).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_expit

from bayes_lepu.links import Array, sigmoid
from bayes_lepu.models.parameters import Parameters

MATERIAL_PI = 0.005


@dataclass(frozen=True, eq=False)
class Twin:
    """A second solution.

    Attributes
    ----------
    name : str
        Which formula gave it.
    point : Parameters
    """

    name: str
    point: Parameters

    def difference(self, other: Parameters, X: Array) -> float:
        """Largest difference of h over the rows."""
        return float(np.max(np.abs(self.point.h(X) - other.h(X))))


def class_zero(p: Parameters) -> list[Twin]:
    """Second solutions of a point with a = 0."""
    t, k = float(sigmoid(p.b)), 1 - float(p.lam)
    found = []
    for m in (1 / k, (1 + t) / 2):
        if abs(t / m - t) < MATERIAL_PI:
            continue
        point = Parameters.of(
            a=p.a,
            b=np.log(t / m) - np.log1p(-t / m),
            alpha=p.alpha,
            beta=p.beta,
            gamma=m * float(p.gamma),
            lam=max(1 - m * k, 0.0),
        )
        found.append(Twin("a = 0: level of t against guesses and lapses", point))
    return found


def parallel(p: Parameters) -> list[Twin]:
    """Second solution of a point with a = α, where one exists."""
    log_g, k = float(p.log_w[0] + p.b - p.beta), 1 - float(p.lam)
    if abs(p.b - p.beta) < 1e-9 or log_g > 0:
        return []
    g = float(np.exp(log_g))
    if g < k:
        point = Parameters.of(a=p.a, b=p.beta, alpha=p.alpha, beta=p.b, gamma=g, lam=p.lam)
        return [Twin("a = alpha: intercepts exchanged", point)]
    point = Parameters.of(a=p.a, b=p.beta, alpha=-p.alpha, beta=-p.b, gamma=k, lam=1 - g)
    return [Twin("a = alpha: annotator reversed", point)]


def opposite(p: Parameters) -> list[Twin]:
    """Second solution of a point with a = -α, where one exists."""
    gamma = float(p.gamma)
    log_k = float(np.log1p(-p.lam) + p.b + p.beta)
    if abs(p.b + p.beta) < 1e-9 or log_k > 0:
        return []
    k = float(np.exp(log_k))
    if gamma < k:
        point = Parameters.of(a=p.a, b=-p.beta, alpha=p.alpha, beta=-p.b, gamma=gamma, lam=1 - k)
        return [Twin("a = -alpha: intercepts exchanged", point)]
    point = Parameters.of(a=p.a, b=-p.beta, alpha=-p.alpha, beta=p.b, gamma=k, lam=1 - gamma)
    return [Twin("a = -alpha: annotator reversed", point)]


def constant_propensity(a: Array, b: float, c: float) -> list[Twin]:
    """PsychM points with the same h = c σ(a·x + b) as a constant propensity c."""
    gamma = c / math.e
    up = Parameters.of(a=a, b=b + np.log(c / gamma), alpha=a, beta=b, gamma=gamma, lam=1 - c)
    lam = 0.5 * (1 - c)
    down = Parameters.of(a=a, b=b - np.log((1 - lam) / c), alpha=-a, beta=-b, gamma=c, lam=lam)
    return [
        Twin("s constant: alpha = a, every higher level of t fits as well", up),
        Twin("s constant: alpha = -a, lower levels of t fit as well", down),
    ]


def both_zero(p: Parameters) -> list[Twin]:
    """Second solution of an SPM point with a = α = 0: h is one number."""
    t, s, not_t, not_s = (float(sigmoid(z)) for z in (p.b, p.beta, -p.b, -p.beta))
    # t' = (1 + t) / 2 and s' = s t / t', each complement as a sum of positive terms.
    point = Parameters.of(
        a=p.a,
        b=np.log(1 + t) - log_expit(-p.b),
        alpha=p.alpha,
        beta=np.log(t * s) - np.log(0.5 * not_t + t * not_s),
    )
    return [Twin("a = alpha = 0: any split of the constant h", point)]


def exchanged(p: Parameters) -> list[Twin]:
    """The factors exchanged, for γ = 0."""
    return [Twin("gamma = 0: factors exchanged", p.swap())]
