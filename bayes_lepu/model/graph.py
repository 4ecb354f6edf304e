r"""The PyMC graph of a model, from its table of blocks to the Bernoulli likelihood of the labels.

The likelihood is handed log h and log(1 - h) separately, both as sums of positive terms. PyMC's
own Bernoulli forms 1 - p (or a sigmoid of the logit) and returns -inf with NaN gradients from
τ = ω = 38 on, which optimisers and warm-up do visit.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.frames import as_coordinate
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.factors import RATES
from bayes_lepu.model.blocks import Block, table
from bayes_lepu.model.coordinates import Layout
from bayes_lepu.priors.prior import Priors
from bayes_lepu.rows import NOT_SHOWN

if TYPE_CHECKING:
    import pymc as pm

    from bayes_lepu.model.spec import ModelSpec

# What is added to a predictor ("tau" or "omega"), made inside the model.
Terms = Mapping[str, Callable[[], Any]]

NEVER = -1e10  # a log probability whose exponential is 0, with a finite difference to anything


def new_model(spec: "ModelSpec", data: PUData, priors: Priors) -> "pm.Model":
    """An empty PyMC model with the coordinates of the data, of the rates and of unknown scales."""
    import pymc as pm

    rows: dict[str, Any] = {
        "obs": as_coordinate(data.index),
        "feature": np.array(data.feature_names),
    }
    return pm.Model(coords=rows | Layout.of(spec, data, priors).coords)


def build(
    spec: "ModelSpec", data: PUData, priors: Priors, terms: Terms | None = None
) -> "pm.Model":
    """The PyMC model: one variable per block of the table, and the observed labels.

    The labels of one annotator are observed as ``l``, those of several as ``L`` with -1 where a row
    was not shown. Weights enter as multiples of every row's log-likelihood. Columns and labels are
    `pymc.Data` (``X`` on the internal scale, ``labels``). The predictors ``tau`` and ``omega`` and
    the probabilities ``t``, ``s`` and ``h`` are named variables with a value per row, which are not
    stored with the draws: ``pm.Deterministic("t_of_rows", model["t"])`` stores them. ``terms``
    holds what else is added to the predictors, as functions that are called inside the model.
    """
    if data.is_sparse:
        raise ModelError(
            "X is a sparse matrix, of which the PyMC model has no form. Use X.toarray(), or fewer "
            "columns; fit(method='map') takes it as it is."
        )
    import pymc as pm
    import pytensor.tensor as pt

    with new_model(spec, data, priors) as model:
        values: dict[str, Any] = {}
        blocks = table(spec, data, priors)
        hyper = {block.stem: block for block in blocks if block.role == "hyper"}
        for block in blocks:
            if block.role == "hyper":
                continue  # made with the slopes it belongs to
            if block.scales is not None:
                name = block.parameter
                values[name] = _stretched(name, block, hyper[name])
                continue
            if block.role == "deviation":
                mean, sigma = values[f"{block.stem}_mean"], values[f"sigma_{block.stem}"]
                z = block.prior.variable(block.name, dims=block.dims)
                values[block.stem] = _pooled(block, mean, sigma, z, spec)
                continue
            values[block.name] = block.prior.variable(block.name, dims=block.dims or None)
        X = pm.Data("X", data.X, dims=("obs", "feature"))
        if data.weighted:
            pm.Data("weight", data.weight, dims="obs")
        tau = _columns(X, data.class_mask) @ values["a"] + values["b"]
        several = data.n_annotators > 1
        omega = pt.zeros((X.shape[0], data.n_annotators)) if several else pt.zeros(X.shape[0])
        if spec.has_selection:
            omega = _columns(X, data.selection_mask) @ values["alpha"].T + values["beta"]
        if data.visit_names:  # (n, q, J) times (q,)
            visits = X[:, data.visit_places.ravel()].reshape((-1, *data.visit_places.shape))
            omega = omega + (visits * values["delta"][:, None]).sum(axis=1)
        own = ("obs", "annotator") if several else ("obs",)
        added = {name: term() for name, term in (terms or {}).items()}
        tau = _named(model, "tau", tau + added.get("tau", 0.0), ("obs",))
        omega = _named(model, "omega", omega + added.get("omega", 0.0), own)
        log_rates = _log_rates(spec, values.get(spec.rates_name), several=several)
        log_psi, log_not_psi = spec.propensity.graph(omega, log_rates)
        epsilon = values.get("epsilon")
        of_t = spec.of_class.graph(tau, pt.constant(spec.of_class.log_rates()))
        observe = _observe_several if several else _observe_one
        observe(data, *of_t, log_psi, log_not_psi, epsilon)
        t = _named(model, "t", pt.exp(of_t[0]), ("obs",))
        s = _named(model, "s", pt.exp(log_psi) + pt.zeros_like(omega), own)
        each_t = t[:, None] if several else t
        h = s * each_t + (0.0 if epsilon is None else epsilon * (1 - each_t))
        _named(model, "h", h, own)
        _summaries(spec, data, model, t, s)
    shown = {
        block.name: f"[{', '.join(f'{k:.3g}' for k in block.prior.concentration)}]"
        for block in blocks
        if block.prior.family == "dirichlet"
    }
    marks = "" if epsilon is None else ", epsilon"
    weight = ", weight" if data.weighted else ""
    shown |= {"l": f"h{weight}", "L": f"t, s{marks}{weight}", "y": f"t{weight}"}
    vars(model)["str_repr"] = partial(_as_text, model, shown)
    vars(model)["_repr_latex_"] = partial(_as_text, model, shown, "latex")
    return model


def _as_text(
    model: "pm.Model",
    shown: Mapping[str, str],
    formatting: str = "plain",
    include_params: bool = True,
) -> str:
    """PyMC's text of a model, with t, s and h, and with parameters that PyMC writes as f(...).

    ``shown`` has them by variable: of the labels their probability h, not the logarithms that the
    likelihood is computed from; of a Dirichlet its concentration.
    """
    from pymc.printing import str_for_model

    rows = [model[name] for name in ("t", "s", "h")]
    listed: Any = SimpleNamespace(
        data_vars=model.data_vars,
        free_RVs=model.free_RVs,
        observed_RVs=model.observed_RVs,
        deterministics=[*rows, *model.deterministics],
        potentials=model.potentials,
    )
    text: str = str_for_model(listed, formatting, include_params)
    latex, end = formatting == "latex", r"(?=\\\\|\n|$)"
    is_f = r"(\\text{[tsh]} &= &)\\operatorname{Deterministic}" if latex else r"^( *[tsh] = )\w+"
    text = re.sub(rf"{is_f}\((.*?)\){end}", r"\1\2", text, flags=re.MULTILINE)
    for name, parameters in shown.items() if include_params else ():
        before = (
            rf"\\text{{{name}}} &\\sim & \\operatorname{{\w+}}" if latex else rf"^ *{name} ~ \w+"
        )
        written = rf"\g<1>({parameters})"
        text = re.sub(rf"({before})\(.*?\){end}", written, text, count=1, flags=re.MULTILINE)
    return text


def _stretched(name: str, block: Block, hyper: Block) -> Any:
    """Slopes with unknown scales, shift + sigma z; z itself where a column has none."""
    import pymc as pm
    import pytensor.tensor as pt

    scales = block.scales
    assert scales is not None
    sigma = hyper.prior.variable(hyper.name, dims=hyper.dims or None)
    z = block.prior.variable(block.name, dims=block.dims)
    by_column = pt.concatenate([pt.atleast_1d(sigma), np.ones(1)])[scales.group]
    return pm.Deterministic(name, scales.shift + by_column * z, dims=block.dims)


def _columns(X: Any, mask: NDArray[np.bool_]) -> Any:
    return X if mask.all() else X[:, np.flatnonzero(mask)]


def _named(model: "pm.Model", name: str, value: Any, dims: tuple[str, ...]) -> Any:
    """A value per row under its name, not stored with the draws."""
    import pytensor.tensor as pt

    named = pt.as_tensor(value).copy(name=name)
    model.add_named_variable(named, dims=dims)
    return named


def _pooled(block: Block, mean: Any, sigma: Any, z: Any, spec: "ModelSpec") -> Any:
    """Coefficients of all annotators, mean + sigma z; rates by way of their coordinates."""
    import pymc as pm
    import pytensor.tensor as pt

    if block.slot != "rates":
        return pm.Deterministic(block.stem, mean + sigma * z, dims=block.dims)
    if spec.n_rates == 1:
        c = pt.sigmoid(pt.log(mean / (1 - mean)) + sigma * z)
        return pm.Deterministic(block.stem, c, dims="annotator")
    ratios = pt.log(mean[:-1]) - pt.log(mean[-1]) + sigma * z
    logits = pt.concatenate([ratios, pt.zeros((z.shape[0], 1))], axis=1)
    rates = pt.special.softmax(logits, axis=1)
    return pm.Deterministic(block.stem, rates, dims=("annotator", "rate"))


def _log_rates(spec: "ModelSpec", rates: Any, *, several: bool) -> Any:
    """(log γ, log λ, log ρ) along the last axis, one set per annotator where they differ."""
    import pytensor.tensor as pt

    fixed = spec.propensity.log_rates(np.zeros(spec.n_rates))
    if rates is None:
        return pt.constant(fixed)
    if spec.n_rates == 1:
        first, last = (RATES.index(name) for name in spec.propensity.free)
        parts: list[Any] = [pt.full_like(rates, -np.inf)] * 3
        parts[first], parts[last] = pt.log(rates), pt.log1p(-rates)
        return pt.stack(parts, axis=-1)
    return pt.log(rates)


def _summaries(spec: "ModelSpec", data: PUData, model: "pm.Model", t: Any, s: Any) -> None:
    """π, c of every annotator, single rates, and what is known from outside about them."""
    import pymc as pm
    import pytensor.tensor as pt

    weight = _weight(data, t)
    share = weight / weight.sum()
    pi = pm.Deterministic("pi", pt.dot(share, t))
    several = data.n_annotators > 1
    own = "annotator" if several else None
    marked = pt.dot(share, s * (t[:, None] if several else t))
    if not spec.certain and "c" not in model.named_vars:
        pm.Deterministic("c", marked / pi, dims=own)
    if spec.n_rates == 2:
        for i, name in enumerate(spec.propensity.components[:-1]):
            pm.Deterministic(name, model[spec.rates_name][..., i], dims=own)
    frequency = (marked / pi).mean() if several else marked / pi
    for name, value, (known, error) in zip(
        ("class_prior", "label_frequency"), (pi, frequency), data.outside, strict=True
    ):
        if not np.isnan(known):
            pm.Normal(name, value, np.float64(error), observed=np.float64(known))


def logaddexp(x: Any, y: Any) -> Any:
    """log(e^x + e^y) with bounded gradients everywhere, ties included."""
    import pytensor.tensor as pt

    return pt.switch(x > y, x + pt.softplus(y - x), y + pt.softplus(x - y))


def _observe_one(
    data: PUData, log_t: Any, log_not_t: Any, log_psi: Any, log_not_psi: Any, epsilon: Any
) -> None:
    r"""Observed labels ``l`` and audited classes ``y`` of one annotator.

    Unaudited rows: P(l=1) = Ψ t + ε (1 - t) and P(l=0) = (1 - ε)(1 - t) + (1 - Ψ) t. An audited row
    contributes P(y) P(l | y), where l | y=1 is Bernoulli(Ψ) and l | y=0 is Bernoulli(ε).
    """
    import pymc as pm
    import pytensor.tensor as pt

    log_h = log_psi + log_t
    log_not_h = log_not_t
    never, always = -np.inf + pt.zeros_like(log_t), pt.zeros_like(log_t)
    if epsilon is not None:
        never, always = pt.log(epsilon) + always, pt.log1p(-epsilon) + always
        log_h = logaddexp(log_h, log_not_t + never)
        log_not_h = log_not_t + always
    log_not_h = logaddexp(log_not_h, log_t + log_not_psi)
    if (audited := ~np.isnan(data.y)).any():
        _observe_audit(data, log_t, log_not_t)
        positive = data.y == 1
        log_h = pt.switch(
            audited, pt.switch(positive, log_psi + pt.zeros_like(log_t), never), log_h
        )
        log_not_h = pt.switch(
            audited, pt.switch(positive, log_not_psi + pt.zeros_like(log_t), always), log_not_h
        )
    labels = pm.Data("labels", data.l.astype(np.int64), dims="obs")
    log_bernoulli("l", log_h, log_not_h, labels, dims="obs", weight=_weight(data, log_t))


def _observe_audit(data: PUData, log_t: Any, log_not_t: Any) -> None:
    rows = np.flatnonzero(~np.isnan(data.y))
    weight = _weight(data, log_t)[rows]
    log_bernoulli("y", log_t[rows], log_not_t[rows], data.y[rows].astype(int), weight=weight)


def _weight(data: PUData, like: Any) -> Any:
    """Weights of the rows, as data of the model where they are given."""
    import pymc as pm
    import pytensor.tensor as pt

    return pm.modelcontext(None)["weight"] if data.weighted else pt.ones_like(like)


def _observe_several(
    data: PUData, log_t: Any, log_not_t: Any, log_psi: Any, log_not_psi: Any, epsilon: Any
) -> None:
    """Observed labels ``L`` (n, J) and audited classes ``y`` of several annotators."""
    import pymc as pm
    import pytensor.tensor as pt

    if (audited := ~np.isnan(data.y)).any():
        _observe_audit(data, log_t, log_not_t)
        positive = data.y == 1
        log_t = pt.switch(audited, np.where(positive, 0.0, NEVER), log_t)
        log_not_t = pt.switch(audited, np.where(positive, NEVER, 0.0), log_not_t)
    false = pt.full((data.n_annotators,), NEVER) if epsilon is None else pt.log(epsilon)
    silent = pt.zeros((data.n_annotators,)) if epsilon is None else pt.log1p(-epsilon)
    labels = pm.Data("labels", data.labels.astype(np.int64), dims=("obs", "annotator"))
    pm.CustomDist(
        "L",
        log_t,
        log_not_t,
        log_psi,
        log_not_psi,
        pt.zeros_like(log_psi) + false,
        pt.zeros_like(log_psi) + silent,
        _weight(data, log_t),
        pt.neq(labels, NOT_SHOWN).astype("int64"),
        logp=_row_logp,
        random=_row_draw,
        signature="(),(),(j),(j),(j),(j),(),(j)->(j)",
        class_name="LatentClass",
        observed=labels,
        dims=("obs", "annotator"),
        dtype="int64",
    )


def _row_logp(
    value: Any,
    log_t: Any,
    log_not_t: Any,
    log_s: Any,
    log_not_s: Any,
    log_false: Any,
    log_silent: Any,
    weight: Any,
    shown: Any,
) -> Any:
    """W log[t Π s^l (1-s)^(1-l) + (1-t) Π ε^l (1-ε)^(1-l)] over the annotators who saw the row."""
    import pytensor.tensor as pt

    marked, seen = pt.eq(value, 1), pt.eq(shown, 1)

    def product(if_marked: Any, if_not: Any) -> Any:
        return pt.switch(seen, pt.switch(marked, if_marked, if_not), 0.0).sum(axis=-1)

    positive = log_t + product(log_s, log_not_s)
    negative = log_not_t + product(log_false, log_silent)
    return weight * logaddexp(positive, negative)


def _row_draw(
    log_t: Any,
    log_not_t: Any,
    log_s: Any,
    log_not_s: Any,
    log_false: Any,
    log_silent: Any,
    weight: Any,
    shown: Any,
    rng: Any = None,
    size: Any = None,
) -> Any:
    log_t, log_s = np.asarray(log_t)[..., None], np.asarray(log_s)
    shape = np.broadcast_shapes(log_t.shape, log_s.shape)
    y = rng.random((*shape[:-1], 1)) < np.exp(log_t)
    labels = rng.random(shape) < np.where(y, np.exp(log_s), np.exp(log_false))
    return np.where(shown == 1, labels, NOT_SHOWN).astype(np.int64)


def log_bernoulli(
    name: str, log_p: Any, log_not_p: Any, observed: Any, *, weight: Any, dims: Any = None
) -> Any:
    """A Bernoulli variable given by log p and log(1 - p), its log density times a weight."""
    import pymc as pm

    return pm.CustomDist(
        name,
        log_p,
        log_not_p,
        weight,
        logp=_bernoulli_logp,
        random=_bernoulli_draw,
        observed=observed,
        dims=dims,
        dtype="int64",
        signature="(),(),()->()",
        class_name="Bernoulli",
    )


def _bernoulli_logp(value: Any, log_p: Any, log_not_p: Any, weight: Any) -> Any:
    import pytensor.tensor as pt

    return weight * pt.switch(pt.eq(value, 1), log_p, log_not_p)


def _bernoulli_draw(
    log_p: Any, log_not_p: Any, weight: Any, rng: Any = None, size: Any = None
) -> Any:
    p, _ = np.broadcast_arrays(np.exp(log_p), log_not_p)
    return (rng.random(p.shape if size is None else size) < p).astype(np.int64)
