r"""The PyMC graph of a model, from its table of blocks to the likelihood of the labels.

The likelihood uses log t, log(1 - t), log s and log(1 - s), all sums of positive terms. PyMC's own
Bernoulli computes 1 - p (or a sigmoid of the logit). It returns -inf with NaN gradients from
τ = ω = 38 on, which optimisers and warm-up do reach.
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
from bayes_lepu.factors.factor import logaddexp
from bayes_lepu.model.blocks import Block, table
from bayes_lepu.model.coordinates import Layout
from bayes_lepu.priors.prior import Priors
from bayes_lepu.rows import NOT_SHOWN

if TYPE_CHECKING:
    import pymc as pm

    from bayes_lepu.model.spec import ModelSpec

# Functions of terms that are added to a predictor ("tau" or "omega"), called inside the model.
Terms = Mapping[str, Callable[[], Any]]

NEVER = -1e10  # a log probability whose exponential is 0, with a finite difference to anything


def build(
    spec: "ModelSpec", data: PUData, priors: Priors, terms: Terms | None = None
) -> "pm.Model":
    """The PyMC model: one variable per block of the table, and the observed labels.

    The labels of one annotator are observed as ``l``, those of several as ``L`` with -1 where a row
    was not shown. Weights multiply the log-likelihood of a row. Columns and labels are `pymc.Data`
    (``X`` on the internal scale, ``labels``). ``tau``, ``omega``, ``t``, ``s`` and ``h`` are named
    variables with a value per row, which are not stored with the draws.
    """
    if data.is_sparse:
        raise ModelError(
            "X is a sparse matrix, of which the PyMC model has no form. Use X.toarray(), or fewer "
            "columns; fit(method='map') takes it as it is."
        )
    import pymc as pm
    import pytensor.tensor as pt

    several = data.n_annotators > 1
    own = ("obs", "annotator") if several else ("obs",)
    rows = {"obs": as_coordinate(data.index), "feature": np.array(data.feature_names)}
    with pm.Model(coords=rows | Layout.of(spec, data, priors).coords) as model:
        blocks = table(spec, data, priors)
        values = _variables(spec, blocks)
        X = pm.Data("X", data.X, dims=("obs", "feature"))
        weight = pm.Data("weight", data.weight, dims="obs") if data.weighted else 1.0
        tau = _columns(X, data.class_mask) @ values["a"] + values["b"]
        omega = pt.zeros((X.shape[0], data.n_annotators)) if several else pt.zeros(X.shape[0])
        if "alpha" in values:
            omega = omega + _columns(X, data.selection_mask) @ values["alpha"].T
        if "beta" in values:
            omega = omega + values["beta"]
        if data.visit_names:  # (n, q, J) times (q,)
            visits = X[:, data.visit_places.ravel()].reshape((-1, *data.visit_places.shape))
            omega = omega + (visits * values["delta"][:, None]).sum(axis=1)
        added = {name: term() for name, term in (terms or {}).items()}
        tau = _named(model, "tau", tau + added.get("tau", 0.0), ("obs",))
        omega = _named(model, "omega", omega + added.get("omega", 0.0), own)
        log_t, log_not_t = spec.of_class.graph(tau, pt.constant(spec.of_class.log_rates()))
        log_rates = _log_rates(spec, values.get(spec.rates_name))
        of_cells = spec.propensity.graph(omega, log_rates)
        epsilon = values.get("epsilon")
        _observe(data, (log_t, log_not_t), of_cells, epsilon, weight + pt.zeros_like(log_t))
        t = _named(model, "t", pt.exp(log_t), ("obs",))
        s = _named(model, "s", pt.exp(of_cells[0]) + pt.zeros_like(omega), own)
        each_t = t[:, None] if several else t
        h = s * each_t + (0.0 if epsilon is None else epsilon * (1 - each_t))
        _named(model, "h", h, own)
        _summaries(spec, data, model, t, s, weight + pt.zeros_like(t))
    marks, weighted = "" if epsilon is None else ", epsilon", ", weight" if data.weighted else ""
    shown = {
        block.name: f"[{', '.join(f'{k:.3g}' for k in block.prior.concentration)}]"
        for block in blocks
        if block.prior.family == "dirichlet"
    }
    shown |= {"l": f"h{weighted}", "L": f"t, s{marks}{weighted}", "y": f"t{weighted}"}
    vars(model)["str_repr"] = partial(_as_text, model, shown)
    vars(model)["_repr_latex_"] = partial(_as_text, model, shown, "latex")
    return model


def _as_text(
    model: "pm.Model",
    shown: Mapping[str, str],
    formatting: str = "plain",
    include_params: bool = True,
) -> str:
    """PyMC's text of a model with t, s and h, and with the parameters that PyMC prints as f(...).

    ``shown`` has these parameters by variable: for the labels their probability h instead of the
    logarithms in the likelihood, for a Dirichlet its concentration.
    """
    from pymc.printing import str_for_model

    listed: Any = SimpleNamespace(
        data_vars=model.data_vars,
        free_RVs=model.free_RVs,
        observed_RVs=model.observed_RVs,
        deterministics=[*(model[name] for name in ("t", "s", "h")), *model.deterministics],
        potentials=model.potentials,
    )
    text: str = str_for_model(listed, formatting, include_params)
    latex, end = formatting == "latex", r"(?=\\\\|\n|$)"
    is_f = r"(\\text{[tsh]} &= &)\\operatorname{Deterministic}" if latex else r"^( *[tsh] = )\w+"
    text = re.sub(rf"{is_f}\((.*?)\){end}", r"\1\2", text, flags=re.MULTILINE)
    for name, parameters in shown.items() if include_params else ():
        before = rf"^ *{name} ~ \w+"
        if latex:
            before = rf"\\text{{{name}}} &\\sim & \\operatorname{{\w+}}"
        written = rf"\g<1>({parameters})"
        text = re.sub(rf"({before})\(.*?\){end}", written, text, count=1, flags=re.MULTILINE)
    return text


def _variables(spec: "ModelSpec", blocks: tuple[Block, ...]) -> dict[str, Any]:
    """The variables of the table, and slopes, intercepts and rates by name."""
    import pymc as pm
    import pytensor.tensor as pt

    values: dict[str, Any] = {}
    hyper = {block.stem: block for block in blocks if block.role == "hyper"}
    for block in blocks:
        if block.role == "hyper":
            continue  # made with the slopes it belongs to
        if (
            scales := block.scales
        ) is not None:  # shift + sigma z; z itself where there is no sigma
            name, of = block.parameter, hyper[block.parameter]
            sigma = of.prior.variable(of.name, dims=of.dims or None)
            z = block.prior.variable(block.name, dims=block.dims)
            by_column = pt.concatenate([pt.atleast_1d(sigma), np.ones(1)])[scales.group]
            slopes = scales.shift + by_column * z
            values[name] = pm.Deterministic(name, slopes, dims=block.dims)
            continue
        values[block.name] = block.prior.variable(block.name, dims=block.dims or None)
        if block.role == "deviation":
            mean, sigma = values[f"{block.stem}_mean"], values[f"sigma_{block.stem}"]
            pooled = _pooled(block, mean, sigma * values[block.name], spec)
            dims = ("annotator", "rate") if block.dims[1:] == ("log_ratio",) else block.dims
            values[block.stem] = pm.Deterministic(block.stem, pooled, dims=dims)
    return values


def _pooled(block: Block, mean: Any, deviation: Any, spec: "ModelSpec") -> Any:
    """Coefficients of all annotators, mean + deviation; rates through their coordinates."""
    import pytensor.tensor as pt

    if block.slot != "rates":
        return mean + deviation
    if spec.n_rates == 1:
        return pt.sigmoid(pt.log(mean / (1 - mean)) + deviation)
    ratios = pt.log(mean[:-1]) - pt.log(mean[-1]) + deviation
    logits = pt.concatenate([ratios, pt.zeros((ratios.shape[0], 1))], axis=1)
    return pt.special.softmax(logits, axis=1)


def _columns(X: Any, mask: NDArray[np.bool_]) -> Any:
    return X if mask.all() else X[:, np.flatnonzero(mask)]


def _named(model: "pm.Model", name: str, value: Any, dims: tuple[str, ...]) -> Any:
    """A value per row under its name, not stored with the draws."""
    import pytensor.tensor as pt

    named = pt.as_tensor(value).copy(name=name)
    model.add_named_variable(named, dims=dims)
    return named


def _log_rates(spec: "ModelSpec", rates: Any) -> Any:
    """(log γ, log λ, log ρ) along the last axis, one set per annotator where they differ."""
    import pytensor.tensor as pt

    if rates is None:
        return pt.constant(spec.propensity.log_rates(np.zeros(spec.n_rates)))
    if spec.n_rates > 1:
        return pt.log(rates)
    first, last = (RATES.index(name) for name in spec.propensity.free)
    parts: list[Any] = [pt.full_like(rates, -np.inf)] * 3
    parts[first], parts[last] = pt.log(rates), pt.log1p(-rates)
    return pt.stack(parts, axis=-1)


def _summaries(
    spec: "ModelSpec", data: PUData, model: "pm.Model", t: Any, s: Any, weight: Any
) -> None:
    """π, c of every annotator, single rates, and the external figures of π and c."""
    import pymc as pm
    import pytensor.tensor as pt

    several, share = data.n_annotators > 1, weight / weight.sum()
    own = "annotator" if several else None
    pi = pm.Deterministic("pi", pt.dot(share, t))
    frequency = pt.dot(share, s * (t[:, None] if several else t)) / pi
    if not spec.certain and "c" not in model.named_vars:
        pm.Deterministic("c", frequency, dims=own)
    if spec.n_rates == 2:
        for i, name in enumerate(spec.propensity.components[:-1]):
            pm.Deterministic(name, model[spec.rates_name][..., i], dims=own)
    figures = {"class_prior": pi, "label_frequency": frequency.mean()}
    for (name, value), (known, error) in zip(figures.items(), data.outside, strict=True):
        if not np.isnan(known):
            pm.Normal(name, value, np.float64(error), observed=np.float64(known))


def _observe(
    data: PUData, of_class: tuple[Any, Any], of_cells: tuple[Any, Any], epsilon: Any, weight: Any
) -> None:
    """Observed labels, ``l`` of one annotator and ``L`` of several, and audited classes ``y``.

    The audited class y of a row is observed like the mark of an annotator who never errs; the
    labels of the row are then conditional on y.
    """
    import pymc as pm
    import pytensor.tensor as pt

    (log_t, log_not_t), several = of_class, data.n_annotators > 1
    if (audited := ~np.isnan(data.y)).any():
        at = np.flatnonzero(audited)
        never_errs = (0.0, NEVER, NEVER, 0.0)
        classes = data.y[at].astype(np.int64)
        _labels("y", classes, None, (log_t[at], log_not_t[at], weight[at]), never_errs)
        log_t = pt.switch(audited, np.where(data.y == 1, 0.0, NEVER), log_t)
        log_not_t = pt.switch(audited, np.where(data.y == 1, NEVER, 0.0), log_not_t)
    false = NEVER if epsilon is None else pt.log(epsilon)
    silent = 0.0 if epsilon is None else pt.log1p(-epsilon)
    name, given = ("L", data.labels) if several else ("l", data.l)
    dims = ("obs", "annotator") if several else ("obs",)
    labels = pm.Data("labels", given.astype(np.int64), dims=dims)
    _labels(name, labels, dims, (log_t, log_not_t, weight), (*of_cells, false, silent))


def _labels(
    name: str, observed: Any, dims: Any, of_rows: tuple[Any, ...], of_cells: tuple[Any, ...]
) -> None:
    """Labels of rows with (log t, log(1 - t), weight), and log s, log(1 - s), log ε, log(1 - ε)."""
    import pymc as pm
    import pytensor.tensor as pt

    several = observed.ndim == 2
    seen = pt.neq(observed, NOT_SHOWN) if several else pt.ones_like(of_rows[0])
    cells = [pt.zeros_like(seen, dtype="float64") + part for part in of_cells]
    cell = "(j)" if several else "()"
    pm.CustomDist(
        name,
        *(*of_rows, *cells, seen.astype("int64")),
        logp=partial(_row_logp, several=several),
        random=partial(_row_draw, several=several),
        signature=f"(),(),(),{','.join([cell] * 5)}->{cell}",
        class_name="LatentClass" if several else "Bernoulli",
        observed=observed,
        dims=dims,
        dtype="int64",
    )


def _row_logp(value: Any, *given: Any, several: bool) -> Any:
    """W log[t Π s^l (1-s)^(1-l) + (1-t) Π ε^l (1-ε)^(1-l)] over the annotators who saw the row."""
    import pytensor.tensor as pt

    log_t, log_not_t, weight, log_s, log_not_s, log_false, log_silent, shown = given
    marked, seen = pt.eq(value, 1), pt.eq(shown, 1)

    def product(if_marked: Any, if_not: Any) -> Any:
        cells = pt.switch(seen, pt.switch(marked, if_marked, if_not), 0.0)
        return cells.sum(axis=-1) if several else cells

    positive = log_t + product(log_s, log_not_s)
    negative = log_not_t + product(log_false, log_silent)
    return weight * logaddexp(positive, negative)


def _row_draw(*given: Any, several: bool, rng: Any = None, size: Any = None) -> Any:
    log_t, _, _, log_s, _, log_false, _, shown = map(np.asarray, given)
    log_t = log_t[..., None] if several else log_t
    shape = np.broadcast_shapes(log_t.shape, log_s.shape)
    y = rng.random((*shape[:-1], 1) if several else shape) < np.exp(log_t)
    labels = rng.random(shape) < np.where(y, np.exp(log_s), np.exp(log_false))
    return np.where(shown == 1, labels, NOT_SHOWN).astype(np.int64)
