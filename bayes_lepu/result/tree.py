"""A fit as an ArviZ DataTree, and the file it is saved in.

Groups: ``posterior`` (``map`` for a point estimate), ``sample_stats``, ``modes``,
``observed_data``, ``constant_data``. Coefficients ``a, b, alpha, beta`` are on the internal
scale, ``a_original`` and so on in the units of the user's columns. The root's attributes hold the
format, its version, and the settings as JSON, so that the file explains itself.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayes_lepu.data import PUData
from bayes_lepu.errors import FileFormatError
from bayes_lepu.inference.modes import Mode
from bayes_lepu.inference.orientation import Orientation
from bayes_lepu.models import REGISTRY
from bayes_lepu.models.parameters import Parameters, stack
from bayes_lepu.priors import Prior
from bayes_lepu.result.fit import FittedModel

if TYPE_CHECKING:
    import xarray as xr

FORMAT = "bayes_lepu.fit"
FORMAT_VERSION = 1


def to_tree(fit: FittedModel) -> "xr.DataTree":
    """The DataTree of a fit."""
    import xarray as xr

    main = "map" if fit.is_point else "posterior"
    groups = {
        f"/{main}": _parameters(fit, fit.parameters, ("chain", "draw")),
        "/modes": _modes(fit),
        "/observed_data": _observed(fit),
        "/constant_data": _constant(fit),
    }
    if fit.stats:
        groups["/sample_stats"] = xr.Dataset(
            {k: (("chain", "draw"), np.asarray(v)) for k, v in fit.stats.items()}
        )
    tree = xr.DataTree.from_dict(groups)
    tree.attrs.update(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        about="bayes_lepu fit; read it with bayes_lepu.load(path) or xarray.open_datatree(path)",
        model=fit.spec.name,
        method=fit.method,
        settings=json.dumps(dict(fit.settings)),
        priors=json.dumps({k: v.to_dict() for k, v in fit.priors.items()}),
        orientation=json.dumps(vars(fit.orientation)),
    )
    return tree


def write(fit: FittedModel, path: Path) -> Path:
    """Write the tree to a netCDF file."""
    fit.tree.to_netcdf(path, engine="h5netcdf")
    return path


def read(path: Path) -> dict[str, Any]:
    """The fields of a saved fit; files that are not one, or of another format, are refused."""
    import xarray as xr

    if not path.exists():
        raise FileFormatError(f"{path} does not exist. Fit.save(path) writes such a file.")
    try:
        with xr.open_datatree(path, engine="h5netcdf") as opened:
            tree = opened.load()
    except (OSError, ValueError) as error:
        raise FileFormatError(
            f"{path} is not a netCDF file written by Fit.save ({error})."
        ) from error
    if tree.attrs.get("format") != FORMAT:
        raise FileFormatError(
            f"{path} is a netCDF file but not a saved fit (format {tree.attrs.get('format')!r}, "
            f"{FORMAT!r} expected)."
        )
    version = int(tree.attrs.get("format_version", -1))
    if version != FORMAT_VERSION:
        raise FileFormatError(
            f"{path} has format version {version}; this release reads version {FORMAT_VERSION}. "
            "Use the release that wrote it, or fit again."
        )
    return _from_tree(tree)


def _from_tree(tree: "xr.DataTree") -> dict[str, Any]:
    main = tree["map"] if "map" in tree.children else tree["posterior"]
    spec = REGISTRY[tree.attrs["model"]]
    data = _read_data(tree)
    orientation = json.loads(tree.attrs["orientation"])
    orientation["sizes"] = {k: tuple(v) for k, v in orientation["sizes"].items()}
    stats = tree["sample_stats"].data_vars if "sample_stats" in tree.children else {}
    return {
        "spec": spec,
        "data": data,
        "priors": {k: Prior.from_dict(v) for k, v in json.loads(tree.attrs["priors"]).items()},
        "method": tree.attrs["method"],
        "parameters": _read_parameters(main),
        "modes": _read_modes(tree["modes"]),
        "orientation": Orientation(**orientation),
        "settings": json.loads(tree.attrs["settings"]),
        "stats": {str(k): v.to_numpy() for k, v in stats.items()},
    }


def _parameters(fit: FittedModel, p: Parameters, dims: tuple[str, ...]) -> "xr.Dataset":
    import xarray as xr

    shape = p.b.shape
    by_feature = (*dims, "feature")
    variables: dict[str, Any] = {
        "a": (by_feature, p.a),
        "b": (dims, p.b),
        "log_weights": ((*dims, "weight"), p.log_w),
    }
    a, b = fit.data.original_scale(p.a, p.b)
    variables |= {"a_original": (by_feature, a), "b_original": (dims, b)}
    variables |= {"alpha": (by_feature, p.alpha), "beta": (dims, p.beta)}
    if fit.spec.has_selection:
        alpha, beta = fit.data.original_scale(p.alpha, p.beta)
        variables |= {"alpha_original": (by_feature, alpha), "beta_original": (dims, beta)}
    if fit.spec.n_weights == 2:
        variables |= {"gamma": (dims, p.gamma), "lambda": (dims, p.lam)}
    if dims == ("chain", "draw"):
        variables["pi"] = (dims, fit.pi_draws.reshape(shape))
        variables["c"] = (dims, fit.c_draws.reshape(shape))
    coords = {"feature": list(fit.feature_names), "weight": ["gamma", "lambda", "rho"]}
    return xr.Dataset(variables, coords=coords)


def _read_parameters(group: Any) -> Parameters:
    names = ("a", "b", "alpha", "beta", "log_weights")
    return Parameters(*(group[n].to_numpy() for n in names))


def _modes(fit: FittedModel) -> "xr.Dataset":
    dataset = _parameters(fit, stack([m.point for m in fit.modes]), ("mode",))
    dataset["z"] = (("mode", "coordinate"), np.stack([m.z for m in fit.modes]))
    table = fit.mode_table().drop(columns=["gamma", "lambda"])
    for name in table.columns:
        values = table[name].to_numpy()
        if name == "converged":
            values = values.astype(np.int8)
        dataset[str(name)] = ("mode", values.astype(str) if values.dtype == object else values)
    return dataset


def _read_modes(group: Any) -> tuple[Mode, ...]:
    points = _read_parameters(group)
    plain = ("logp", "gap", "rms_h", "rms_t", "pi", "c", "norm_a", "norm_alpha")
    return tuple(
        Mode(
            point=points.take(i),
            z=group["z"].to_numpy()[i],
            hits=int(group["hits"][i]),
            role=str(group["role"].to_numpy()[i]),  # type: ignore[arg-type]
            converged=bool(group["converged"][i]),
            **{name: float(group[name][i]) for name in plain},
        )
        for i in range(group.sizes["mode"])
    )


def _observed(fit: FittedModel) -> "xr.Dataset":
    import xarray as xr

    d = fit.data
    return xr.Dataset({"l": ("obs", d.l), "y": ("obs", d.y), "kind": ("obs", d.kind)})


def _constant(fit: FittedModel) -> "xr.Dataset":
    import xarray as xr

    d = fit.data
    variables: dict[str, Any] = {
        "X": (("obs", "feature"), d.X),
        "center": ("feature", d.center),
        "scale": ("feature", d.scale),
        "class_mask": ("feature", d.class_mask.astype(np.int8)),
        "selection_mask": ("feature", d.selection_mask.astype(np.int8)),
    }
    if not isinstance(d.index, pd.RangeIndex):
        numeric = d.index.dtype.kind in "iuf"
        variables["row"] = (
            "obs",
            d.index.to_numpy() if numeric else d.index.astype(str).to_numpy(dtype=str),
        )
    dataset = xr.Dataset(variables, coords={"feature": list(d.feature_names)})
    dataset.attrs["named"] = int(d.named)
    return dataset


def _read_data(tree: "xr.DataTree") -> PUData:
    observed, constant = tree["observed_data"], tree["constant_data"]
    X = np.ascontiguousarray(constant["X"].to_numpy())
    rows = constant["row"].to_numpy() if "row" in constant.data_vars else None
    return PUData(
        X=X,
        l=observed["l"].to_numpy(),
        y=observed["y"].to_numpy(),
        kind=observed["kind"].to_numpy(),
        feature_names=tuple(str(f) for f in constant["feature"].to_numpy()),
        named=bool(constant.attrs["named"]),
        center=constant["center"].to_numpy(),
        scale=constant["scale"].to_numpy(),
        class_mask=constant["class_mask"].to_numpy().astype(bool),
        selection_mask=constant["selection_mask"].to_numpy().astype(bool),
        index=pd.RangeIndex(len(X)) if rows is None else pd.Index(rows),
    )
