"""A fit as an ArviZ DataTree.

Groups of the schema: ``posterior`` with all variables of the PyMC model (``map`` for a point
estimate), ``sample_stats``, ``log_likelihood``, ``log_prior``, ``prior``, ``prior_predictive``,
``posterior_predictive``, ``observed_data`` and ``constant_data``; beside them ``modes``, and
``log_weights``, the logarithms of the rates. What has an entry for every draw and row, and ``lp``,
is computed when somebody looks at it, from the stored seed. Coefficients ``a, b, alpha, beta`` are
on the internal scale, ``a_original`` and so on in the units of the user's columns. Of several
annotators, ``l`` is whether anybody marked the row, and its log-likelihood that of all labels of
the row.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from xarray.backends import BackendArray
from xarray.core import indexing

from bayes_lepu.data.frames import as_coordinate
from bayes_lepu.data.learned import Learned
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.factors import RATES
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters, stack
from bayes_lepu.model.row_sums import row_terms
from bayes_lepu.model.variables import annotator_values, free_variables, log_prior, predictors
from bayes_lepu.priors.prior import SLOPES

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

SAMPLE = ("chain", "draw")
COUNTS = {"diverging": bool, "n_steps": np.int64, "tree_depth": np.int64}
MAX_CELLS = 250_000_000  # computed at once: 2 GB of numbers

# The entries of these chains, these draws and, where there are rows, these rows.
Entries = Callable[..., NDArray[Any]]


def to_tree(fit: "Fit") -> xr.DataTree:
    """The DataTree of a fit with all its groups."""
    groups = stored_groups(fit)
    if not fit.is_point:
        groups |= _made_again(fit)
        stats = groups.get("sample_stats", xr.Dataset()).assign(lp=_log_density(fit))
        groups["sample_stats"] = _numbered(stats.assign_attrs(_attributes(fit)))
    tree = xr.DataTree.from_dict({f"/{name}": group for name, group in groups.items()})
    tree.attrs = _attributes(fit)
    return tree


def stored_groups(fit: "Fit") -> dict[str, xr.Dataset]:
    """The groups that a saved fit cannot do without."""
    groups = _parameter_groups(fit) | {
        "observed_data": xr.Dataset(
            {"l": ("obs", fit.data.l)}, coords={"obs": as_coordinate(fit.data.index)}
        ),
        "constant_data": constant_group(fit.data),
    }
    if fit.stats:
        groups["sample_stats"] = xr.Dataset(
            {k: (SAMPLE, np.asarray(v, dtype=COUNTS.get(k))) for k, v in fit.stats.items()}
        )
    if not fit.data.in_memory:
        pi, c = fit.pi_draws, fit.c_by_annotator
        groups["all_rows"] = xr.Dataset(
            {
                "pi": ("each", pi),
                "c": (("each", "marker"), c),
                "counts": ("kind", fit.data.kind_counts),
                "weights": ("kind", fit.data.kind_weights),
            }
        )
    return {name: _numbered(group) for name, group in groups.items()}


def _parameter_groups(fit: "Fit") -> dict[str, xr.Dataset]:
    """The groups that say nothing of single rows."""
    main = parameter_group(fit, fit.parameters, SAMPLE).assign_attrs(_attributes(fit))
    return {
        "map" if fit.is_point else "posterior": main,
        "log_weights": _log_weights(fit.parameters, SAMPLE),
        "modes": _modes(fit),
    }


def groups_without_rows(fit: "Fit") -> dict[str, xr.Dataset]:
    """The groups that predictions need."""
    kept = {
        name: _numbered(group[[v for v in group.data_vars if not str(v).endswith("_original")]])
        for name, group in _parameter_groups(fit).items()
    }
    return kept | {"constant_data": column_group(fit.data)}


def _numbered(group: xr.Dataset) -> xr.Dataset:
    """The same with numbers of the chains and draws as coordinates."""
    return group.assign_coords({d: np.arange(group.sizes[d]) for d in SAMPLE if d in group.sizes})


def _made_again(fit: "Fit") -> dict[str, xr.Dataset]:
    """The groups that follow from the others."""
    data, seed, rows = fit.data, fit.options.random_seed, {"obs": as_coordinate(fit.data.index)}
    prior = stack([fit.prior_draws])

    def labels(parameters: Parameters, stream: int) -> xr.Dataset:
        def entries(*at: NDArray[np.intp]) -> NDArray[np.int8]:
            rng = np.random.default_rng([seed, stream])
            return drawn_labels(parameters, data, rng)[np.ix_(*at)]

        shape = (*parameters.b.shape, data.n)
        return xr.Dataset({"l": computed((*SAMPLE, "obs"), shape, np.int8, entries)}, coords=rows)

    def loglik(chain: NDArray[Any], draw: NDArray[Any], at: NDArray[Any]) -> Array:
        some = fit.parameters.take(np.ix_(chain, draw))
        return row_terms(some, data.rows(at))[0]

    by_row = computed((*SAMPLE, "obs"), (*fit.parameters.b.shape, data.n), float, loglik)
    weighed = log_prior(fit.density, free_variables(fit.density, fit.parameters))
    groups = {
        "log_likelihood": xr.Dataset({"l": by_row}, coords=rows),
        "log_prior": xr.Dataset(
            {name: ((*SAMPLE, *dims), values) for name, (dims, values) in weighed.items()},
            coords=_coords(fit),
        ),
        "prior": parameter_group(fit, prior, SAMPLE),
        "prior_predictive": labels(prior, 10),
        "posterior_predictive": labels(fit.parameters, 11),
    }
    return {name: _numbered(group) for name, group in groups.items()}


def _log_density(fit: "Fit") -> xr.Variable:
    """Log posterior density of the unconstrained coordinates of every draw, up to a constant."""

    def entries(*at: NDArray[Any]) -> Array:
        density = LogDensity(fit.spec, fit.data, fit.priors, jacobian=True)
        some = fit.parameters.take(np.ix_(*at))
        values = [density.logp(z) for z in density.pack(some.take_flat())]
        return np.reshape(values, some.b.shape)

    return computed(SAMPLE, fit.parameters.b.shape, float, entries)


def _attributes(fit: "Fit") -> dict[str, Any]:
    """Who made this, with what, when and how long it took, in ArviZ's words."""
    made, versions = fit.provenance, fit.provenance.versions
    library = made.sampler or "bayes_lepu"
    known = {
        "created_at": made.created_at,
        "creation_library": "bayes_lepu",
        "creation_library_version": versions.get("bayes-lepu"),
        "inference_library": library,
        "inference_library_version": versions.get(library.replace("_", "-")),
        "sampling_time": made.seconds,
        "tuning_steps": fit.options.tune if made.sampler else None,
    }
    return {name: value for name, value in known.items() if value is not None}


def parameter_group(fit: "Fit", p: Parameters, dims: tuple[str, ...]) -> xr.Dataset:
    """Named variables as in the PyMC model: masked columns and absent factors are left out."""
    data, several = fit.data, fit.data.n_annotators > 1
    own = (*dims, "annotator") if several else dims
    variables: dict[str, Any] = {
        name: ((*dims, *extra), values)
        for name, (extra, values) in free_variables(fit.density, p).items()
    }
    natural = annotator_values(fit.density, p)
    for factor in predictors(fit.spec, data):
        slope, intercept = getattr(p, factor.slope), getattr(p, factor.intercept)
        raw_slope, raw_intercept = data.original_scale(slope, intercept)
        lead = dims if factor.slope == SLOPES[0] else own
        by_feature = (*lead, factor.dim)
        variables |= {
            factor.slope: (by_feature, natural[factor.slope]),
            factor.intercept: (lead, intercept),
            f"{factor.slope}_original": (by_feature, raw_slope[..., factor.mask]),
            f"{factor.intercept}_original": (lead, raw_intercept),
        }
    rates = fit.spec.rates_name
    if fit.spec.n_rates == 2:
        variables[rates] = ((*own, "rate"), natural[rates])
        for name in fit.spec.propensity.components[:-1]:
            variables[name] = (own, np.exp(p.log_w[..., RATES.index(name)]))
    elif rates:
        variables[rates] = (own, natural[rates])
    if dims == SAMPLE:
        pi, c = fit._pi_and_c if p is fit.parameters else fit._pi_and_frequencies(p)
        variables["pi"] = (dims, pi.reshape(p.b.shape))
        if not fit.spec.certain:  # where c = 1 by assumption
            variables["c"] = (own, c.reshape(p.beta.shape))
    return xr.Dataset(variables, coords=_coords(fit))


def _coords(fit: "Fit") -> dict[str, Any]:
    """Names of features, annotators and rates."""
    return {dim: list(names) for dim, names in fit.density.layout.coords.items()}


def _log_weights(p: Parameters, dims: tuple[str, ...]) -> xr.Dataset:
    """Logarithms of the rates, which lose digits near 0 and 1 otherwise."""
    own = (*dims, "annotator") if p.several else dims
    return xr.Dataset(
        {"log_weights": ((*own, "weight"), p.log_w)},
        coords={"weight": list(RATES)},
    )


def _modes(fit: "Fit") -> xr.Dataset:
    points = stack([m.point for m in fit.modes])
    dataset = parameter_group(fit, points, ("mode",)).merge(_log_weights(points, ("mode",)))
    dataset["z"] = (("mode", "coordinate"), np.stack([m.z for m in fit.modes]))
    table = fit.mode_table().drop(columns=list(RATES[:-1]))
    for name in table.columns:
        values = table[name].to_numpy()
        if name == "converged":
            values = values.astype(np.int8)
        dataset[str(name)] = ("mode", values.astype(str) if values.dtype == object else values)
    return dataset


# The parts of a sparse X, by rows, and their dimensions.
SPARSE = {"X_data": "cell", "X_indices": "cell", "X_indptr": "row_end"}


def column_group(d: PUData) -> xr.Dataset:
    """The scale and masks of the columns, their encoding, and what is known from outside."""
    variables: dict[str, Any] = {
        "center": ("feature", d.center),
        "scale": ("feature", d.scale),
        "class_mask": ("feature", d.class_mask.astype(np.int8)),
        "selection_mask": ("feature", d.selection_mask.astype(np.int8)),
        "outside": (("known", "value_and_error"), d.outside),
        # A variable, because the attributes of a netCDF file hold no more than 64 kB.
        "encoding": json.dumps(d.encoding.to_dict()),
    }
    coords = {"feature": list(d.feature_names)}
    if d.n_annotators > 1:
        coords["annotator"] = list(d.annotators)
    attrs = {"named": int(d.named), "visits": json.dumps(d.visit_names)}
    return xr.Dataset(variables, coords=coords, attrs=attrs)


def constant_group(d: PUData) -> xr.Dataset:
    """Columns, their scale and masks, audited classes, weights, labels of several annotators."""
    variables: dict[str, Any] = {"audited": ("obs", d.y)}
    if d.is_sparse:
        variables |= {
            name: (dim, getattr(d.X, name.removeprefix("X_"))) for name, dim in SPARSE.items()
        }
    else:
        variables["X"] = (("obs", "feature"), d.X)
    if d.weighted:
        variables["weight"] = ("obs", d.weight)
    if d.drawn.size:
        variables["drawn"] = (("obs", "round_and_probability"), d.drawn)
    if d.n_annotators > 1:
        variables["labels"] = (("obs", "annotator"), d.labels)
    dataset = column_group(d).assign(variables).assign_coords(obs=as_coordinate(d.index))
    if is_time(str(d.index.dtype)):
        dataset.attrs["row_dtype"] = str(d.index.dtype)
    return dataset


def is_time(dtype: str) -> bool:
    """Whether these are dates whose time zone, if any, can be found again by its name."""
    try:
        return pd.api.types.is_datetime64_any_dtype(pd.api.types.pandas_dtype(dtype))
    except TypeError:
        return False


def learned_group(learned: Learned) -> xr.Dataset:
    """The trees behind the learned columns."""
    arrays = {name: (f"{name}_dim", values) for name, values in learned.to_arrays().items()}
    return xr.Dataset(arrays, attrs={"names": json.dumps(learned.names)})


class _Computed(BackendArray):
    """An array (chain, draw), or (chain, draw, row, ...), behind a function of the first axes.

    Draws times rows can be more than a memory holds, and most of those who open a tree look at the
    parameters alone. This is how xarray's manual has arrays of files written ("How to add a new
    backend"); these come from a function instead.
    """

    def __init__(self, entries: Entries, shape: tuple[int, ...], dtype: Any) -> None:
        self._entries, self.shape, self.dtype = entries, shape, np.dtype(dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        support = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._pick)

    def _pick(self, key: tuple[Any, ...]) -> Any:
        """Entries by one integer, slice or array per axis; only what is asked for is computed."""
        wanted = [np.arange(n)[at] for n, at in zip(self.shape[:3], key, strict=False)]
        asked = [np.atleast_1d(at) for at in wanted]
        cells = int(np.prod([*(at.size for at in asked), *self.shape[3:]]))
        if cells > MAX_CELLS:
            raise ModelError(
                f"These are {cells:.2g} numbers, more than the {MAX_CELLS:.2g} that are computed "
                "at once. Ask for some of the rows, such as "
                "tree['log_likelihood']['l'].isel(obs=slice(1000)); lepu.compare does so itself."
            )
        values = self._entries(*asked)
        at = [slice(None) if w.ndim else 0 for w in wanted] + list(key[3:])
        for axis in reversed(range(len(at))):  # from the last, so that axes keep their numbers
            values = values[(slice(None),) * axis + (at[axis],)]
        return values


def computed(
    dims: tuple[str, ...], shape: tuple[int, ...], dtype: Any, entries: Entries
) -> xr.Variable:
    """A variable over the draws that is computed at first sight, and then kept."""
    data: Any = indexing.LazilyIndexedArray(_Computed(entries, shape, dtype))
    return xr.Variable(dims, indexing.MemoryCachedArray(data))


def drawn_labels(p: Parameters, data: PUData, rng: np.random.Generator) -> NDArray[np.int8]:
    """Whether anybody marks a row, in labels drawn from the model, ``(draws..., n)``."""
    flat = p.take_flat()
    out = np.empty((flat.b.size, data.n), dtype=np.int8)
    for i in range(flat.b.size):
        point = flat.take(i)
        if p.several:
            out[i] = (point.simulate(data.X, rng, shown=data.shown)[1] == 1).any(axis=-1)
        else:
            out[i] = rng.random(data.n) < point.h(data.X)
    return out.reshape(*p.b.shape, data.n)


FUNCTIONS: dict[str, Callable[[Parameters, Array], Array]] = {
    "t": Parameters.t,
    "s": Parameters.s,
    "h": Parameters.h,
    "missed": Parameters.missed,
}


def extract_rows(fit: "Fit", X: Array, index: pd.Index) -> xr.Dataset:
    """t, s, h and P(y=1 | x, l=0), computed when they are looked at.

    Dimensions (chain, draw, obs), of what every annotator has of his own (…, obs, annotator).
    """
    p, several = fit.parameters, fit.data.n_annotators > 1
    chains, draws = p.b.shape

    def variable(function: Callable[[Parameters, Array], Array], own: bool) -> xr.Variable:
        def of(chain: NDArray[Any], draw: NDArray[Any], rows: NDArray[Any]) -> Array:
            values = function(p.take(np.ix_(chain, draw)), X[rows])
            return np.moveaxis(values, 2, 3) if own else values

        dims: tuple[str, ...] = ("chain", "draw", "obs")
        shape: tuple[int, ...] = (chains, draws, X.shape[0])
        if own:
            dims, shape = (*dims, "annotator"), (*shape, fit.data.n_annotators)
        return computed(dims, shape, float, of)

    coords: dict[str, Any] = {"chain": np.arange(chains), "draw": np.arange(draws)}
    coords["obs"] = as_coordinate(index)
    if several:
        coords["annotator"] = list(fit.data.annotators)
    return xr.Dataset(
        {name: variable(f, several and name in ("s", "h")) for name, f in FUNCTIONS.items()},
        coords=coords,
    )
