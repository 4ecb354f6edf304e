r"""Pieces of the PyMC graphs: slopes, predictors, and the Bernoulli likelihood of the labels.

The likelihood is handed log h and log(1 - h) separately, both as sums of positive terms. PyMC's
own Bernoulli forms 1 - p (or a sigmoid of the logit) and returns -inf with NaN gradients from
τ = ω = 38 on, which optimisers and warm-up do visit.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.priors import Prior

if TYPE_CHECKING:
    import pymc as pm


def new_model(data: PUData) -> "pm.Model":
    """An empty PyMC model with the coordinates of the data."""
    import pymc as pm

    names = np.array(data.feature_names)
    coords: dict[str, Any] = {"obs": np.arange(data.n), "feature": names}
    coords[data.class_dim] = names[data.class_mask]
    coords[data.selection_dim] = names[data.selection_mask]
    return pm.Model(coords=coords)


def variable(name: str, prior: Prior, dims: str | None = None) -> Any:
    """A PyMC variable with this prior (inside a model context).

    Numbers are handed over as float64: PyTensor takes a plain 1.5 for a float32 and computes its
    logarithm with seven digits.
    """
    import pymc as pm

    if prior.family == "flat":
        return pm.Flat(name, dims=dims)
    if prior.family == "beta":
        return pm.Beta(name, *map(np.float64, prior.concentration))
    if prior.family == "dirichlet":
        return pm.Dirichlet(name, np.array(prior.concentration), dims=dims)
    loc, scale = np.float64(prior.loc), _scale(name, prior)
    if prior.family == "normal":
        return pm.Normal(name, loc, scale, dims=dims)
    if prior.family == "laplace":
        return pm.Laplace(name, loc, scale, dims=dims)
    raise ModelError(f"{name} cannot have a {prior.family} prior.")


def _scale(name: str, prior: Prior) -> Any:
    import pymc as pm

    scale: Any = prior.scale
    if isinstance(scale, Prior):
        return pm.HalfNormal(f"sigma_{name}", np.float64(scale.scale))  # type: ignore[arg-type]
    return np.float64(scale)


def predictor(data: PUData, slope: str, intercept: str, priors: Any) -> Any:
    """The linear predictor X·slope + intercept over the columns its mask allows."""
    of_class = slope == "a"
    mask = data.class_mask if of_class else data.selection_mask
    dim = data.class_dim if of_class else data.selection_dim
    coefficients = variable(slope, priors[slope], dim)
    return data.X[:, mask] @ coefficients + variable(intercept, priors[intercept])


def log_sigmoid(z: Any) -> Any:
    """Logarithm of σ(z)."""
    import pytensor.tensor as pt

    return -pt.softplus(-z)


def logaddexp(x: Any, y: Any) -> Any:
    """log(e^x + e^y) with bounded gradients everywhere, ties included."""
    import pytensor.tensor as pt

    return pt.switch(x > y, x + pt.softplus(y - x), y + pt.softplus(x - y))


def observe(data: PUData, tau: Any, log_psi: Any, log_not_psi: Any) -> None:
    r"""Observed labels ``l`` (and audited classes ``y``), with class probability pi as a summary.

    Unaudited rows: P(l=1) = Ψ t and 1 - Ψ t = (1 - t) + t (1 - Ψ). An audited row contributes
    P(y) P(l | y), where l | y=1 is Bernoulli(Ψ) and l | y=0 is 0.
    """
    import pymc as pm
    import pytensor.tensor as pt

    log_t, log_not_t = log_sigmoid(tau), log_sigmoid(-tau)
    log_h = log_psi + log_t
    log_not_h = logaddexp(log_not_t, log_t + log_not_psi)
    if (audited := ~np.isnan(data.y)).any():
        rows = np.flatnonzero(audited)
        log_bernoulli("y", log_t[rows], log_not_t[rows], data.y[rows].astype(int))
        never = -np.inf * np.ones(data.n)
        positive = data.y == 1
        log_h = pt.switch(audited, pt.switch(positive, log_psi + 0 * tau, never), log_h)
        log_not_h = pt.switch(
            audited, pt.switch(positive, log_not_psi + 0 * tau, np.zeros(data.n)), log_not_h
        )
    log_bernoulli("l", log_h, log_not_h, data.l.astype(int), dims="obs")
    pm.Deterministic("pi", pt.sigmoid(tau).mean())


def log_bernoulli(name: str, log_p: Any, log_not_p: Any, observed: Any, dims: Any = None) -> Any:
    """A Bernoulli variable given by log p and log(1 - p)."""
    import pymc as pm

    return pm.CustomDist(
        name,
        log_p,
        log_not_p,
        logp=_bernoulli_logp,
        random=_bernoulli_draw,
        observed=observed,
        dims=dims,
        dtype="int64",
        signature="(),()->()",
    )


def _bernoulli_logp(value: Any, log_p: Any, log_not_p: Any) -> Any:
    import pytensor.tensor as pt

    return pt.switch(pt.eq(value, 1), log_p, log_not_p)


def _bernoulli_draw(log_p: Any, log_not_p: Any, rng: Any = None, size: Any = None) -> Any:
    p, _ = np.broadcast_arrays(np.exp(log_p), log_not_p)
    return (rng.random(p.shape if size is None else size) < p).astype(np.int64)
