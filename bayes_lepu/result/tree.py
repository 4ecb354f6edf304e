"""A fit as an ArviZ DataTree, and the file it is saved in.

Groups: ``posterior`` (``map`` for a point estimate), ``sample_stats``, ``modes``,
``observed_data``, ``constant_data``; and, made again from the stored seed rather than saved,
``prior``, ``posterior_predictive`` and ``log_likelihood``. Coefficients ``a, b, alpha, beta`` are
on the internal scale, ``a_original`` and so on in the units of the user's columns. The root's
attributes hold the format, its version, and the settings as JSON: the file explains itself.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.annotators import ONE
from bayes_lepu.data import PUData
from bayes_lepu.encoding import Encoding
from bayes_lepu.errors import FileFormatError
from bayes_lepu.inference.engines import Quality
from bayes_lepu.inference.modes import Mode
from bayes_lepu.inference.orientation import Orientation
from bayes_lepu.models.parameters import Parameters, stack
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors import Prior
from bayes_lepu.propensities import REGISTRY as PROPENSITIES
from bayes_lepu.propensities import Propensity
from bayes_lepu.result import predictive
from bayes_lepu.result.fit import FittedModel
from bayes_lepu.result.storage import read_tree, write_tree

if TYPE_CHECKING:
    import xarray as xr

FORMAT = "bayes_lepu.fit"
FORMAT_VERSION = 2
PRIOR_DRAWS = 1000
MAX_CELLS = 40_000_000


def to_tree(fit: FittedModel) -> "xr.DataTree":
    """The DataTree of a fit with all its groups.

    ``log_likelihood`` and ``posterior_predictive`` are left out where rows x draws exceeds
    `MAX_CELLS`; `FittedModel.sample_posterior_predictive` still draws them on request.
    """
    import xarray as xr

    tree = _stored(fit)
    if fit.is_point:
        return tree
    rng = np.random.default_rng([fit.settings["random_seed"], 2])
    prior = predictive.prior_parameters(fit.spec, fit.data, fit.priors, PRIOR_DRAWS, rng)
    prior = stack([prior])
    tree["prior"] = xr.DataTree(_parameters(fit, prior, ("chain", "draw")))
    dims, several = ("chain", "draw", "obs"), fit.data.n_annotators > 1
    observed = "L" if several else "l"
    if fit.draws.b.size * fit.data.n <= MAX_CELLS:
        loglik = predictive.log_likelihood(fit.parameters, fit.data)
        tree["log_likelihood"] = xr.DataTree(xr.Dataset({observed: (dims, loglik)}))
    if fit.draws.b.size * fit.data.labels.size <= MAX_CELLS:
        labels = predictive.predictive_labels(
            fit.parameters, fit.data.X, rng, shown=fit.data.shown if several else None
        )
        variable = ((*dims, "annotator") if several else dims, labels)
        tree["posterior_predictive"] = xr.DataTree(
            xr.Dataset({observed: variable}, coords=_annotators(fit.data))
        )
    return tree


def _stored(fit: FittedModel) -> "xr.DataTree":
    """The groups that are saved."""
    import xarray as xr

    main = "map" if fit.is_point else "posterior"
    groups = {
        f"/{main}": _parameters(fit, fit.parameters, ("chain", "draw")),
        "/log_weights": _log_weights(fit.parameters, ("chain", "draw")),
        "/modes": _modes(fit),
        "/observed_data": observed_group(fit.data),
        "/constant_data": constant_group(fit.data),
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
        propensity=fit.spec.propensity.name,
        false_marks=int(fit.spec.false_marks),
        method=fit.method,
        settings=json.dumps(dict(fit.settings), default=lambda number: number.item()),
        priors=json.dumps({k: v.to_dict() for k, v in fit.priors.items()}),
        orientation=json.dumps(vars(fit.orientation)),
        quality=json.dumps(vars(fit.quality), default=lambda number: number.item()),
    )
    return tree


def write(fit: FittedModel, path: Path) -> Path:
    """Write the tree to a file."""
    return write_tree(_stored(fit), path)


def read(path: Path, propensity: Propensity | None = None) -> dict[str, Any]:
    """The fields of a saved fit; files that are not one, or of another format, are refused.

    A propensity that does not come with the library has to be given.
    """
    tree = open_saved(path)
    name = tree.attrs.get("propensity")
    known = PROPENSITIES if propensity is None else {propensity.name: propensity}
    if name not in known:
        raise FileFormatError(
            f"{path} holds a fit of model {tree.attrs.get('model')!r} with the propensity "
            f"{name!r}; this release knows {', '.join(known)}. One of your own goes into "
            "lepu.load(path, model=...)."
        )
    try:
        return _from_tree(tree, known[name])
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise FileFormatError(
            f"{path} is incomplete ({error}). Save the fit again, or use the release that wrote it."
        ) from error


def open_saved(path: Path) -> "xr.DataTree":
    """The tree of a file that holds a fit."""
    tree = read_tree(path)
    found = tree.attrs.get("format")
    if found != FORMAT:
        raise FileFormatError(
            f"{path} is not a saved fit of this kind (format {found!r}, {FORMAT!r} expected)."
        )
    version = tree.attrs.get("format_version")
    if version != FORMAT_VERSION:
        raise FileFormatError(
            f"{path} has format version {version}; this release reads version {FORMAT_VERSION}. "
            "Use the release that wrote it, or fit again."
        )
    return tree


def _from_tree(tree: "xr.DataTree", propensity: Propensity) -> dict[str, Any]:
    main = tree["map"] if "map" in tree.children else tree["posterior"]
    marks = bool(tree.attrs["false_marks"])
    spec = ModelSpec(tree.attrs["model"], propensity, false_marks=marks)
    data = read_rows(tree)
    orientation = json.loads(tree.attrs["orientation"])
    orientation["sizes"] = {k: tuple(v) for k, v in orientation["sizes"].items()}
    stats = tree["sample_stats"].data_vars if "sample_stats" in tree.children else {}
    return {
        "spec": spec,
        "data": data,
        "priors": {k: Prior.from_dict(v) for k, v in json.loads(tree.attrs["priors"]).items()},
        "method": tree.attrs["method"],
        "parameters": _read_parameters(main, tree["log_weights"], data, spec),
        "modes": _read_modes(tree["modes"], data, spec),
        "orientation": Orientation(**orientation),
        "settings": json.loads(tree.attrs["settings"]),
        "stats": {str(k): v.to_numpy() for k, v in stats.items()},
        "quality": Quality(**json.loads(tree.attrs["quality"])),
    }


def _parameters(fit: FittedModel, p: Parameters, dims: tuple[str, ...]) -> "xr.Dataset":
    """Named variables as in the PyMC model: masked columns and absent factors are left out."""
    import xarray as xr

    data, several = fit.data, fit.data.n_annotators > 1
    own = (*dims, "annotator") if several else dims
    variables: dict[str, Any] = {}
    for factor in _factors(data, has_selection=fit.spec.has_selection):
        slope, intercept = getattr(p, factor.slope), getattr(p, factor.intercept)
        raw_slope, raw_intercept = data.original_scale(slope, intercept)
        lead = dims if factor.slope == "a" else own
        by_feature = (*lead, factor.dim)
        variables |= {
            factor.slope: (by_feature, slope[..., factor.mask]),
            factor.intercept: (lead, intercept),
            f"{factor.slope}_original": (by_feature, raw_slope[..., factor.mask]),
            f"{factor.intercept}_original": (lead, raw_intercept),
        }
        variables[factor.dim] = np.array(fit.feature_names)[factor.mask]
    if fit.spec.n_rates == 2:
        variables |= {"gamma": (own, p.gamma), "lambda": (own, p.lam)}
    if p.epsilon is not None:
        variables["epsilon"] = (own, p.epsilon)
    by_name = {block.name: block for block in fit.density.layout.blocks}
    for name, values in p.pooling.items():
        extra = by_name[name].dims if values.ndim > p.b.ndim else ()
        variables[name] = ((*dims, *extra), values)
    if dims == ("chain", "draw"):
        pi, c = fit._pi_and_frequencies(p)
        variables["pi"] = (dims, pi.reshape(p.b.shape))
        if not fit.spec.certain:  # where c = 1 by assumption
            variables["c"] = (own, c.reshape(p.beta.shape))
    return xr.Dataset(variables, coords=_annotators(data))


def _annotators(data: PUData) -> dict[str, list[str]]:
    return {"annotator": list(data.annotators)} if data.n_annotators > 1 else {}


def _log_weights(p: Parameters, dims: tuple[str, ...]) -> "xr.Dataset":
    """Logarithms of the rates, which lose digits near 0 and 1 otherwise."""
    import xarray as xr

    own = (*dims, "annotator") if p.several else dims
    return xr.Dataset(
        {"log_weights": ((*own, "weight"), p.log_w)},
        coords={"weight": ["gamma", "lambda", "rho"]},
    )


def _read_parameters(group: Any, log_w: Any, data: PUData, spec: ModelSpec) -> Parameters:
    logs = log_w["log_weights"].to_numpy()
    b, own = group["b"].to_numpy(), logs.shape[:-1]
    values = {"a": np.zeros((*b.shape, data.p)), "alpha": np.zeros((*own, data.p))}
    levels = {"b": b, "beta": np.zeros(own)}
    for factor in _factors(data, has_selection=spec.has_selection):
        values[factor.slope][..., factor.mask] = group[factor.slope].to_numpy()
        levels[factor.intercept] = group[factor.intercept].to_numpy()
    pooling = {
        str(name): variable.to_numpy()
        for name, variable in group.data_vars.items()
        if str(name).startswith("sigma_") or str(name).endswith("_mean")
    }
    return Parameters(
        values["a"],
        levels["b"],
        values["alpha"],
        levels["beta"],
        logs,
        epsilon=group["epsilon"].to_numpy() if spec.false_marks else None,
        pooling=pooling,
        link=spec.propensity.link,
    )


class _Factor(NamedTuple):
    slope: str
    intercept: str
    dim: str
    mask: NDArray[np.bool_]


def _factors(data: PUData, *, has_selection: bool) -> list[_Factor]:
    t_dim, s_dim = data.class_dim, data.selection_dim
    factors = [_Factor("a", "b", t_dim, data.class_mask)]
    if has_selection:
        factors.append(_Factor("alpha", "beta", s_dim, data.selection_mask))
    return factors


def _modes(fit: FittedModel) -> "xr.Dataset":
    points = stack([m.point for m in fit.modes])
    dataset = _parameters(fit, points, ("mode",)).merge(_log_weights(points, ("mode",)))
    dataset["z"] = (("mode", "coordinate"), np.stack([m.z for m in fit.modes]))
    table = fit.mode_table().drop(columns=["gamma", "lambda"])
    for name in table.columns:
        values = table[name].to_numpy()
        if name == "converged":
            values = values.astype(np.int8)
        dataset[str(name)] = ("mode", values.astype(str) if values.dtype == object else values)
    return dataset


def _read_modes(group: Any, data: PUData, spec: ModelSpec) -> tuple[Mode, ...]:
    points = _read_parameters(group, group, data, spec)
    plain = ("logp", "gap", "rms_h", "rms_t", "pi", "c", "norm_a", "norm_alpha")
    return tuple(
        Mode(
            point=points.take(i),
            z=group["z"].to_numpy()[i],
            hits=int(group["hits"][i]),
            role=str(group["role"].to_numpy()[i]),  # type: ignore[arg-type]
            converged=bool(group["converged"][i]),
            artefact=str(group["artefact"].to_numpy()[i]),
            **{name: float(group[name][i]) for name in plain},
        )
        for i in range(group.sizes["mode"])
    )


def observed_group(d: PUData) -> "xr.Dataset":
    """Labels and audited classes."""
    import xarray as xr

    if d.n_annotators > 1:
        labels: dict[str, Any] = {"L": (("obs", "annotator"), d.labels)}
    else:
        labels = {"l": ("obs", d.l)}
    return xr.Dataset(labels | {"y": ("obs", d.y)}, coords=_annotators(d))


def constant_group(d: PUData) -> "xr.Dataset":
    """Columns, their scale, masks and row labels."""
    import xarray as xr

    variables: dict[str, Any] = {
        "X": (("obs", "feature"), d.X),
        "center": ("feature", d.center),
        "scale": ("feature", d.scale),
        "class_mask": ("feature", d.class_mask.astype(np.int8)),
        "selection_mask": ("feature", d.selection_mask.astype(np.int8)),
        "outside": (("known", "value_and_error"), d.outside),
    }
    if d.weight.size:
        variables["weight"] = ("obs", d.weight)
    if not d.index.equals(pd.RangeIndex(d.n)):
        numeric = d.index.dtype.kind in "iuf"
        rows = d.index.to_numpy() if numeric else np.array([str(row) for row in d.index])
        variables["row"] = ("obs", rows)
    # A variable, because the attributes of a netCDF file hold no more than 64 kB.
    variables["encoding"] = json.dumps(d.encoding.to_dict())
    dataset = xr.Dataset(variables, coords={"feature": list(d.feature_names)})
    dataset.attrs["named"] = int(d.named)
    if _is_time(str(d.index.dtype)):
        dataset.attrs["row_dtype"] = str(d.index.dtype)
    return dataset


def read_rows(tree: "xr.DataTree") -> PUData:
    """The data from their two groups."""
    observed, constant = tree["observed_data"], tree["constant_data"]
    X = np.ascontiguousarray(constant["X"].to_numpy())
    several = "L" in observed.data_vars
    labels = observed["L" if several else "l"].to_numpy()
    return PUData(
        X=X,
        labels=np.ascontiguousarray(labels if several else labels[:, None]),
        y=observed["y"].to_numpy(),
        feature_names=tuple(str(f) for f in constant["feature"].to_numpy()),
        named=bool(constant.attrs["named"]),
        center=constant["center"].to_numpy(),
        scale=constant["scale"].to_numpy(),
        class_mask=constant["class_mask"].to_numpy().astype(bool),
        selection_mask=constant["selection_mask"].to_numpy().astype(bool),
        index=_read_index(constant, len(X)),
        encoding=Encoding.from_dict(json.loads(str(constant["encoding"].item()))),
        annotators=tuple(map(str, observed["annotator"].to_numpy())) if several else ONE,
        weight=constant["weight"].to_numpy() if "weight" in constant else np.zeros(0),
        outside=constant["outside"].to_numpy(),
    )


def _read_index(constant: Any, n: int) -> pd.Index:
    """Row labels; dates are stored as text, and of other kinds the text is what is left."""
    if "row" not in constant.data_vars:
        return pd.RangeIndex(n)
    rows, dtype = constant["row"].to_numpy(), constant.attrs.get("row_dtype")
    if dtype is None:
        return pd.Index(rows)
    times = pd.to_datetime(rows, format="ISO8601", utc=True)
    aware = isinstance(pd.api.types.pandas_dtype(dtype), pd.DatetimeTZDtype)
    return (times if aware else times.tz_localize(None)).astype(dtype)


def _is_time(dtype: str) -> bool:
    """Whether these are dates whose time zone, if any, can be found again by its name."""
    try:
        return pd.api.types.is_datetime64_any_dtype(pd.api.types.pandas_dtype(dtype))
    except TypeError:
        return False
