"""A fit as an ArviZ DataTree.

Groups of the schema: ``posterior`` with all variables of the PyMC model (``map`` for a point
estimate), ``sample_stats``, ``log_likelihood``, ``log_prior``, ``prior``, ``prior_predictive``,
``posterior_predictive``, ``observed_data`` and ``constant_data``. Variables with an entry for every
draw and row, and ``lp``, are computed on first access, from the stored seed. Coefficients ``a, b,
alpha, beta`` are on the internal scale, ``a_original`` and so on in the units of the user's
columns. With several annotators, ``l`` is whether anybody marked the row, and its log-likelihood is
that of all labels of the row.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from xarray.backends import BackendArray
from xarray.core import indexing

from bayes_lepu.data.frames import as_coordinate
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.factors import RATES
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity, row_terms
from bayes_lepu.model.parameters import Parameters, stack
from bayes_lepu.model.variables import free_variables, log_prior

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

SAMPLE = ("chain", "draw")
COUNTS = {"diverging": bool, "n_steps": np.int64, "tree_depth": np.int64}
MAX_CELLS = 250_000_000  # largest array that is computed: 2 GB

# A function of chains, draws and, for variables with rows, rows; it returns these entries.
Entries = Callable[..., NDArray[Any]]


def to_tree(fit: "Fit") -> xr.DataTree:
    """The DataTree of a fit with all its groups."""
    groups = stored_groups(fit) | {
        "observed_data": xr.Dataset(
            {"l": ("obs", fit.data.l)}, coords={"obs": as_coordinate(fit.data.index)}
        ),
        "constant_data": constant_group(fit.data),
    }
    if not fit.is_point:
        groups |= _made_again(fit)
        stats = groups.get("sample_stats", xr.Dataset()).assign(lp=_log_density(fit))
        groups["sample_stats"] = _numbered(stats.assign_attrs(_attributes(fit)))
    tree = xr.DataTree.from_dict({f"/{name}": group for name, group in groups.items()})
    tree.attrs = _attributes(fit)
    return tree


def stored_groups(fit: "Fit") -> dict[str, xr.Dataset]:
    """The groups of draws, which are also stored in a file."""
    main = parameter_group(fit, fit.parameters).assign_attrs(_attributes(fit))
    groups = {"map" if fit.is_point else "posterior": main}
    if fit.stats:
        groups["sample_stats"] = xr.Dataset(
            {k: (SAMPLE, np.asarray(v, dtype=COUNTS.get(k))) for k, v in fit.stats.items()}
        )
    return {name: _numbered(group) for name, group in groups.items()}


def _numbered(group: xr.Dataset) -> xr.Dataset:
    """The data set with the numbers of chains and draws as coordinates."""
    return group.assign_coords({d: np.arange(group.sizes[d]) for d in SAMPLE if d in group.sizes})


def _made_again(fit: "Fit") -> dict[str, xr.Dataset]:
    """The groups that are computed from the stored ones."""
    data, seed, rows = fit.data, fit.options.random_seed, {"obs": as_coordinate(fit.data.index)}
    prior = stack([fit.prior_draws])

    def labels(parameters: Parameters, stream: int) -> xr.Dataset:
        def entries(*at: NDArray[np.intp]) -> NDArray[np.int8]:
            rng = np.random.default_rng([seed, stream])
            return drawn_labels(parameters, data, rng)[np.ix_(*at)]

        shape = (*parameters.b.shape, data.n)
        return xr.Dataset({"l": computed((*SAMPLE, "obs"), shape, np.int8, entries)}, coords=rows)

    def loglik(chain: NDArray[Any], draw: NDArray[Any], at: NDArray[Any]) -> Array:
        if fit.log_likelihood is not None:
            return fit.log_likelihood[np.ix_(chain, draw, at)]
        if fit.provenance.other_density:
            raise ModelError(
                "These draws are of another density than that of "
                f"model={fit.spec.name!r} (a term or a Potential of your own), and their trace has "
                "no log-likelihood of the rows. Call pm.compute_log_likelihood(trace, model=model) "
                "before lepu.from_trace."
            )
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
        "prior": parameter_group(fit, prior),
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
    """Library, version, date and sampling time, under ArviZ's names."""
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


def parameter_group(fit: "Fit", p: Parameters) -> xr.Dataset:
    """Named variables as in the PyMC model: masked columns and absent factors are left out."""
    data, several = fit.data, fit.data.n_annotators > 1
    own = (*SAMPLE, "annotator") if several else SAMPLE
    variables: dict[str, Any] = {
        name: ((*SAMPLE, *extra), values)
        for name, (extra, values) in free_variables(fit.density, p).items()
    }
    factors = (
        ("a", "b", SAMPLE, data.class_dim, data.class_mask),
        ("alpha", "beta", own, data.selection_dim, data.selection_mask),
    )
    for slope, intercept, lead, dim, mask in factors[: 1 + fit.spec.has_selection]:
        values = getattr(p, slope), getattr(p, intercept)
        for end, (by_column, level) in (("", values), ("_original", data.original_scale(*values))):
            variables[f"{slope}{end}"] = (*lead, dim), by_column[..., mask]
            variables[f"{intercept}{end}"] = lead, level
    rates, propensity = p.rates(RATES), fit.spec.propensity
    if fit.spec.n_rates == 2:
        variables[fit.spec.rates_name] = (*own, "rate"), np.exp(p.log_w)
        variables |= {name: (own, rates[name]) for name in propensity.components[:-1]}
    elif fit.spec.n_rates:
        variables[fit.spec.rates_name] = own, rates[propensity.free[0]]
    pi, c = fit._pi_and_c if p is fit.parameters else fit.class_prior_draws(p)
    variables["pi"] = (SAMPLE, pi.reshape(p.b.shape))
    if not fit.spec.certain:  # where c = 1 by assumption
        variables["c"] = (own, c.reshape(p.beta.shape))
    return xr.Dataset(variables, coords=_coords(fit))


def _coords(fit: "Fit") -> dict[str, Any]:
    """Names of features, annotators and rates."""
    return {dim: list(names) for dim, names in fit.density.layout.coords.items()}


def constant_group(d: PUData) -> xr.Dataset:
    """Columns, their scale and masks, audited classes, weights, labels of several annotators."""
    variables: dict[str, Any] = {
        "center": ("feature", d.center),
        "scale": ("feature", d.scale),
        "class_mask": ("feature", d.class_mask.astype(np.int8)),
        "selection_mask": ("feature", d.selection_mask.astype(np.int8)),
        "audited": ("obs", d.y),
    }
    coords: dict[str, Any] = {"feature": list(d.feature_names), "obs": as_coordinate(d.index)}
    if not d.is_sparse:
        variables["X"] = (("obs", "feature"), d.X)
    if d.weighted:
        variables["weight"] = ("obs", d.weight)
    if d.n_annotators > 1:
        variables["labels"] = (("obs", "annotator"), d.labels)
        coords["annotator"] = list(d.annotators)
    return xr.Dataset(variables, coords=coords)


class _Computed(BackendArray):
    """An array (chain, draw) or (chain, draw, row) behind a function of its axes.

    Such an array can exceed the memory, and most users of a tree need the parameters only, so its
    entries are computed on access. xarray's manual describes this interface for arrays in files
    ("How to add a new backend"); here a function takes the place of the file.
    """

    def __init__(self, entries: Entries, shape: tuple[int, ...], dtype: Any) -> None:
        self._entries, self.shape, self.dtype = entries, shape, np.dtype(dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        support = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._pick)

    def _pick(self, key: tuple[Any, ...]) -> Any:
        """Entries by one integer, slice or array per axis; only these entries are computed."""
        wanted = [np.arange(n)[at] for n, at in zip(self.shape, key, strict=True)]
        asked = [np.atleast_1d(at) for at in wanted]
        cells = math.prod(at.size for at in asked)
        if cells > MAX_CELLS:
            raise ModelError(
                f"These are {cells:.2g} numbers, more than the {MAX_CELLS:.2g} that are computed "
                "at once. Ask for some of the rows, such as "
                "tree['log_likelihood']['l'].isel(obs=slice(1000)); lepu.compare does so itself."
            )
        values = self._entries(*asked)
        return values[tuple(slice(None) if w.ndim else 0 for w in wanted)]


def computed(
    dims: tuple[str, ...], shape: tuple[int, ...], dtype: Any, entries: Entries
) -> xr.Variable:
    """A variable over the draws that is computed on first access and then cached."""
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
