r"""The panel model as a PyMC graph, its forms and its priors.

.. math::
    \alpha_j = \bar\alpha + \sigma_\alpha z^\alpha_j, \qquad
    \beta_j = \bar\beta + \sigma_\beta z^\beta_j, \qquad z \sim N(0, 1),

with half-normal σ: annotators are alike as far as the data do not say otherwise. In the form
``scar`` every annotator has a constant propensity c_j = σ(β_j).
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.errors import ModelError
from bayes_lepu.models.graph import log_bernoulli, log_sigmoid, logaddexp, new_model
from bayes_lepu.panel.data import NOT_SHOWN, PanelData
from bayes_lepu.priors import Prior, Priors, default_priors

if TYPE_CHECKING:
    import pymc as pm

SPREAD = 1.0  # half-normal scale of the annotators' differences, in log-odds
NEVER = -1e10  # a log probability whose exponential is 0, with a finite difference to anything


@dataclass(frozen=True)
class Form:
    """A form of the propensities.

    Attributes
    ----------
    name : str
    mechanism : str
        s_j(x) in one line.
    parameters : tuple of str
        Names of the parameters that carry a prior.
    """

    name: str
    mechanism: str
    parameters: tuple[str, ...]

    @property
    def has_selection(self) -> bool:
        """Whether s depends on x."""
        return "alpha_mean" in self.parameters

    def selection_mask(self, data: PanelData) -> NDArray[np.bool_]:
        """Columns that enter the propensities."""
        mask = data.table.selection_mask
        return mask if self.has_selection else np.zeros_like(mask)


FORMS = {
    "scar": Form(
        "scar",
        "s_j(x) = c_j: each annotator labels positives at random, logit c_j partially pooled",
        ("a", "b", "beta_mean", "sigma_beta"),
    ),
    "spm": Form(
        "spm",
        "s_j(x) = σ(α_j·x + β_j): a logistic propensity per annotator, partially pooled",
        ("a", "b", "alpha_mean", "beta_mean", "sigma_alpha", "sigma_beta"),
    ),
}


def get_form(name: str) -> Form:
    """The form of this name."""
    if name not in FORMS:
        raise ModelError(
            f"model = {name!r} has no version for several annotators. Known: {', '.join(FORMS)}. "
            "For one annotator (lepu.fit) there are naive, scar, spm and psychm."
        )
    return FORMS[name]


def complete_priors(form: Form, data: PanelData, overrides: Priors | None) -> dict[str, Prior]:
    """The default priors with the user's own on top, checked by name and family."""
    n_class = int(data.table.class_mask.sum())
    n_selection = int(data.table.selection_mask.sum())
    base = default_priors(n_class, n_selection)
    defaults = {
        "a": base["a"],
        "b": base["b"],
        "alpha_mean": base["alpha"],
        "beta_mean": base["beta"],
        "sigma_alpha": Prior("halfnormal", scale=SPREAD / math.sqrt(n_selection)),
        "sigma_beta": Prior("halfnormal", scale=SPREAD),
    }
    for name, prior in (overrides or {}).items():
        if name not in form.parameters:
            raise ModelError(
                f"priors names {name!r}, which is not a parameter of {form.name} for several "
                f"annotators. Its parameters: {', '.join(form.parameters)}."
            )
        wanted = "halfnormal" if name.startswith("sigma") else "normal"
        known = isinstance(prior, Prior) and prior.family == wanted and not prior.hierarchical
        if not known:
            raise ModelError(
                f"priors[{name!r}] is {prior!r}; Prior({wanted!r}, scale=...) with a number for "
                "the scale is expected."
            )
    return {name: (overrides or {}).get(name, defaults[name]) for name in form.parameters}


def build(form: Form, data: PanelData, priors: Priors) -> "pm.Model":
    """The PyMC model; labels are observed as ``L`` with -1 where a row was not shown."""
    import pymc as pm
    import pytensor.tensor as pt

    table = data.table
    with new_model(table) as model:
        model.add_coord("annotator", list(data.annotators))
        a = priors["a"].variable("a", table.class_dim)
        tau = table.X[:, table.class_mask] @ a + priors["b"].variable("b")
        beta = _pooled("beta", priors, ("annotator",))
        omega = pt.ones((data.n, 1)) * beta
        if form.has_selection:
            alpha = _pooled("alpha", priors, ("annotator", table.selection_dim))
            omega = table.X[:, table.selection_mask] @ alpha.T + beta
        log_t, log_not_t = log_sigmoid(tau), log_sigmoid(-tau)
        if (audited := ~np.isnan(table.y)).any():
            rows = np.flatnonzero(audited)
            log_bernoulli("y", log_t[rows], log_not_t[rows], table.y[rows].astype(int))
            positive = table.y == 1
            log_t = pt.switch(audited, np.where(positive, 0.0, NEVER), log_t)
            log_not_t = pt.switch(audited, np.where(positive, NEVER, 0.0), log_not_t)
        pm.CustomDist(
            "L",
            log_t,
            log_not_t,
            log_sigmoid(omega),
            log_sigmoid(-omega),
            data.shown.astype(np.int64),
            logp=_row_logp,
            random=_row_draw,
            signature="(),(),(j),(j),(j)->(j)",
            observed=data.labels.astype(np.int64),
            dims=("obs", "annotator"),
            dtype="int64",
        )
        t = pt.sigmoid(tau)
        pm.Deterministic("pi", t.mean())
        frequency = (pt.sigmoid(omega) * t[:, None]).mean(axis=0) / t.mean()
        pm.Deterministic("c", frequency, dims="annotator")
    return model


def _pooled(name: str, priors: Priors, dims: tuple[str, ...]) -> Any:
    """Coefficients of all annotators, mean + sigma z."""
    import pymc as pm

    mean = priors[f"{name}_mean"].variable(f"{name}_mean", dims[1] if len(dims) > 1 else None)
    sigma = pm.HalfNormal(f"sigma_{name}", np.float64(priors[f"sigma_{name}"].scale))  # type: ignore[arg-type]
    z = pm.Normal(f"z_{name}", np.float64(0), np.float64(1), dims=dims)
    return pm.Deterministic(name, mean + sigma * z, dims=dims)


def _row_logp(
    value: Any, log_t: Any, log_not_t: Any, log_s: Any, log_not_s: Any, shown: Any
) -> Any:
    """log[t Π s^l (1-s)^(1-l)], plus 1 - t inside the logarithm where nobody labelled."""
    import pytensor.tensor as pt

    labelled = pt.eq(value, 1)
    given = pt.switch(pt.eq(shown, 1), pt.switch(labelled, log_s, log_not_s), 0.0).sum(axis=-1)
    positive = log_t + given
    return pt.switch(labelled.any(axis=-1), positive, logaddexp(log_not_t, positive))


def _row_draw(
    log_t: Any,
    log_not_t: Any,
    log_s: Any,
    log_not_s: Any,
    shown: Any,
    rng: Any = None,
    size: Any = None,
) -> Any:
    log_t, log_s = np.asarray(log_t)[..., None], np.asarray(log_s)
    shape = np.broadcast_shapes(log_t.shape, log_s.shape)
    y = rng.random((*shape[:-1], 1)) < np.exp(log_t)
    labels = y & (rng.random(shape) < np.exp(log_s))
    return np.where(shown == 1, labels, NOT_SHOWN).astype(np.int64)
