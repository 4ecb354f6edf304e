r"""The PyMC graph of a model, from its table of blocks to the Bernoulli likelihood of the labels.

The likelihood is handed log h and log(1 - h) separately, both as sums of positive terms. PyMC's
own Bernoulli forms 1 - p (or a sigmoid of the logit) and returns -inf with NaN gradients from
τ = ω = 38 on, which optimisers and warm-up do visit.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.data import PUData
from bayes_lepu.models.blocks import table
from bayes_lepu.priors import Priors

if TYPE_CHECKING:
    import pymc as pm

    from bayes_lepu.models.spec import ModelSpec


def new_model(data: PUData) -> "pm.Model":
    """An empty PyMC model with the coordinates of the data."""
    import pymc as pm

    names = np.array(data.feature_names)
    coords: dict[str, Any] = {"obs": np.arange(data.n), "feature": names}
    coords[data.class_dim] = names[data.class_mask]
    coords[data.selection_dim] = names[data.selection_mask]
    return pm.Model(coords=coords)


def build(spec: "ModelSpec", data: PUData, priors: Priors) -> "pm.Model":
    """The PyMC model: one variable per block of the table, and the observed labels."""
    import pymc as pm
    import pytensor.tensor as pt

    with new_model(data) as model:
        if len(spec.components) > 1:
            model.add_coord("rate", list(spec.components))
        values: dict[str, Any] = {
            block.name: block.prior.variable(block.name, block.dims or None)
            for block in table(spec, data, priors)
            if block.role == "value"
        }
        tau = data.X[:, data.class_mask] @ values["a"] + values["b"]
        omega = pt.zeros(data.n)
        if spec.has_selection:
            omega = data.X[:, data.selection_mask] @ values["alpha"] + values["beta"]
        rates = values.get(spec.rates_name)
        if len(spec.components) > 1:
            for i, name in enumerate(spec.components[:-1]):
                pm.Deterministic(name, values[spec.rates_name][i])
        observe(data, tau, *spec.log_psi(omega, rates))
    return model


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
