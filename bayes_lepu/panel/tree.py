"""A panel fit as an ArviZ DataTree, and the file it is saved in.

Groups and conventions are those of `bayes_lepu.result.tree`: ``posterior``, ``sample_stats``,
``observed_data``, ``constant_data`` are saved; ``prior``, ``posterior_predictive`` and
``log_likelihood`` are made again from the stored seed. Labels ``L`` hold -1 where not shown.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.panel.data import PanelData
from bayes_lepu.panel.parameters import PanelParameters, class_prior_and_frequencies
from bayes_lepu.panel.specification import FORMS, Form
from bayes_lepu.priors import Prior
from bayes_lepu.result.storage import write_tree
from bayes_lepu.result.tree import (
    FORMAT_VERSION,
    MAX_CELLS,
    PANEL_FORMAT,
    PRIOR_DRAWS,
    constant_group,
    observed_group,
    open_saved,
    read_fields,
    read_rows,
)

if TYPE_CHECKING:
    import xarray as xr

    from bayes_lepu.panel.answer import PanelFit

DIMS = ("chain", "draw")


def to_tree(fit: "PanelFit") -> "xr.DataTree":
    """The DataTree of a fit with all its groups.

    ``log_likelihood`` and ``posterior_predictive`` are left out where rows x draws (x annotators)
    exceeds `MAX_CELLS`.
    """
    import xarray as xr

    tree = _stored(fit)
    rng = np.random.default_rng([fit.settings["random_seed"], 2])
    prior = fit.density.unpack(fit.density.sample_prior(PRIOR_DRAWS, rng)[None])
    tree["prior"] = xr.DataTree(_parameters(fit, prior))
    rows = (*DIMS, "obs")
    if fit.parameters.b.size * fit.data.n <= MAX_CELLS:
        loglik = fit.density.loglik_rows(fit.parameters)
        tree["log_likelihood"] = xr.DataTree(xr.Dataset({"L": (rows, loglik)}))
    if fit.parameters.b.size * fit.data.labels.size <= MAX_CELLS:
        labels = _replicate(fit, rng)
        tree["posterior_predictive"] = xr.DataTree(
            xr.Dataset({"L": ((*rows, "annotator"), labels)}, coords=_annotators(fit))
        )
    return tree


def write(fit: "PanelFit", path: Path) -> Path:
    """Write the tree to a file."""
    return write_tree(_stored(fit), path)


def read(path: Path) -> dict[str, Any]:
    """The fields of a saved panel fit; anything else is refused."""
    return read_fields(path, open_saved(path, PANEL_FORMAT), _from_tree)


def _stored(fit: "PanelFit") -> "xr.DataTree":
    import xarray as xr

    observed = observed_group(fit.data.table)
    observed["L"] = (("obs", "annotator"), fit.data.labels)
    groups = {
        "/posterior": _parameters(fit, fit.parameters),
        "/sample_stats": xr.Dataset({k: (DIMS, np.asarray(v)) for k, v in fit.stats.items()}),
        "/observed_data": observed.assign_coords(_annotators(fit)),
        "/constant_data": constant_group(fit.data.table),
    }
    tree = xr.DataTree.from_dict(groups)
    tree.attrs.update(
        format=PANEL_FORMAT,
        format_version=FORMAT_VERSION,
        about="bayes_lepu panel fit; read it with bayes_lepu.load_panel(path)",
        model=fit.form.name,
        settings=json.dumps(dict(fit.settings), default=lambda number: number.item()),
        priors=json.dumps({k: v.to_dict() for k, v in fit.priors.items()}),
    )
    return tree


def _parameters(fit: "PanelFit", p: PanelParameters) -> "xr.Dataset":
    """Named variables as in the PyMC model: masked columns and absent factors are left out."""
    import xarray as xr

    table, names = fit.data.table, np.array(fit.feature_names)
    t_dim, s_dim = table.class_dim, table.selection_dim
    raw_a, raw_b = table.original_scale(p.a, p.b)
    variables: dict[str, Any] = {
        "a": ((*DIMS, t_dim), p.a[..., table.class_mask]),
        "b": (DIMS, p.b),
        "a_original": ((*DIMS, t_dim), raw_a[..., table.class_mask]),
        "b_original": (DIMS, raw_b),
        "beta": ((*DIMS, "annotator"), p.beta),
        "beta_mean": (DIMS, p.pooling["beta_mean"]),
        "sigma_beta": (DIMS, p.pooling["sigma_beta"]),
    }
    coords: dict[str, Any] = {t_dim: names[table.class_mask], **_annotators(fit)}
    if fit.form.has_selection:
        mask = table.selection_mask
        raw_alpha, raw_beta = table.original_scale(p.alpha, p.beta)
        variables |= {
            "alpha": ((*DIMS, "annotator", s_dim), p.alpha[..., mask]),
            "alpha_original": ((*DIMS, "annotator", s_dim), raw_alpha[..., mask]),
            "beta_original": ((*DIMS, "annotator"), raw_beta),
            "alpha_mean": ((*DIMS, s_dim), p.pooling["alpha_mean"][..., mask]),
            "sigma_alpha": (DIMS, p.pooling["sigma_alpha"]),
        }
        coords[s_dim] = names[mask]
    pi, c = class_prior_and_frequencies(p.take_flat(), table.X)
    variables["pi"] = (DIMS, pi.reshape(p.b.shape))
    variables["c"] = ((*DIMS, "annotator"), c.reshape(*p.b.shape, -1))
    return xr.Dataset(variables, coords=coords)


def _from_tree(tree: "xr.DataTree") -> dict[str, Any]:
    form, posterior = FORMS[tree.attrs["model"]], tree["posterior"]
    observed = tree["observed_data"]
    annotators = tuple(str(name) for name in observed["annotator"].to_numpy())
    labels = np.ascontiguousarray(observed["L"].transpose("obs", "annotator").to_numpy())
    data = PanelData(read_rows(tree), labels, annotators)
    return {
        "form": form,
        "data": data,
        "priors": {k: Prior.from_dict(v) for k, v in json.loads(tree.attrs["priors"]).items()},
        "parameters": _read_parameters(posterior, data, form),
        "settings": json.loads(tree.attrs["settings"]),
        "stats": {str(k): v.to_numpy() for k, v in tree["sample_stats"].data_vars.items()},
    }


def _read_parameters(group: Any, data: PanelData, form: Form) -> PanelParameters:
    b, beta = group["b"].to_numpy(), group["beta"].to_numpy()
    a = np.zeros((*b.shape, data.table.p))
    a[..., data.table.class_mask] = group["a"].to_numpy()
    alpha = np.zeros((*beta.shape, data.table.p))
    pooling = {name: group[name].to_numpy() for name in ("beta_mean", "sigma_beta")}
    if form.has_selection:
        mask = data.table.selection_mask
        alpha[..., mask] = group["alpha"].to_numpy()
        mean = np.zeros_like(a)
        mean[..., mask] = group["alpha_mean"].to_numpy()
        pooling |= {"alpha_mean": mean, "sigma_alpha": group["sigma_alpha"].to_numpy()}
    return PanelParameters(a, b, alpha, beta, pooling)


def _replicate(fit: "PanelFit", rng: np.random.Generator) -> Any:
    draws, data = fit.draws, fit.data
    out = np.empty((draws.b.size, *data.labels.shape), dtype=np.int8)
    for i in range(draws.b.size):
        out[i] = draws.take(i).simulate(data.table.X, data.shown, rng)[1]
    return out.reshape(*fit.parameters.b.shape, *data.labels.shape)


def _annotators(fit: "PanelFit") -> dict[str, list[str]]:
    return {"annotator": list(fit.annotator_names)}
