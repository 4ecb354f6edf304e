"""For PyMC users: `build_model` gives a `pm.Model`, `from_trace` makes a fit from its draws."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.engines.engines import returned
from bayes_lepu.engines.nuts import refuse_improper, stats_of
from bayes_lepu.engines.orientation import check_rule
from bayes_lepu.errors import OWN_CODE, DataError, LepuWarning, ModelError
from bayes_lepu.fitted import Fit
from bayes_lepu.model.density import LogDensity
from bayes_lepu.options import FitOptions, read_model, takes_options
from bayes_lepu.result.facts import Provenance
from bayes_lepu.runtime.interruption import stops_at_once
from bayes_lepu.suggestions import some, unknown

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

PREDICTORS = ("tau", "omega")
SAME_DENSITY = 0.01  # log densities of the same draws differ by rounding, far below this
# By default psychm: the labels do not choose a model that is sampled by other means.
NAMED: Callable[..., FitOptions] = partial(FitOptions, model="psychm", class_learner=None)
NOT_OF_MODEL = {
    "method",
    "audits",
    "penalty",
    "C",
    "orientation",
    "draws",
    "tune",
    "chains",
    "cores",
    "target_accept",
    "sampler",
    "progressbar",
}


@takes_options(NAMED, without=NOT_OF_MODEL)
def build_model(
    options: FitOptions, *, terms: Mapping[str, Callable[[], Any]] | None = None
) -> "pm.Model":
    """The PyMC model, to inspect, extend, or sample by other means.

    Columns and labels are `pymc.Data` (``X``, ``labels``), the linear predictors of t and s the
    named variables ``tau`` and ``omega``. The factors of SPM can be swapped: the chains of a plain
    `pymc.sample` may end in different orders of t and s without a warning. `fit` handles this.
    Arguments that are not listed here are those of `fit`.

    Parameters
    ----------
    priors : mapping of str to Prior, optional
        Priors by parameter name, on top of the defaults of NUTS.
    terms : mapping of str to function, optional
        Terms to add to the predictors ``"tau"`` and ``"omega"``: functions without arguments that
        are called inside the model and return a value per row.

    Examples
    --------
    >>> import bayes_lepu as lepu
    >>> demo = lepu.load_demo()
    >>> [v.name for v in lepu.build_model(demo.X, demo.l, model="scar").free_RVs]
    ['a', 'b', 'c']
    """
    spec, data, priors = read_model(options)
    for name, term in (terms or {}).items():
        if name not in PREDICTORS:
            raise ModelError(unknown("predictor", name, PREDICTORS))
        if not callable(term):
            raise ModelError(
                f"terms[{name!r}] is {type(term).__name__}; a function without arguments is "
                "expected, which makes its variables inside the model."
            )
    return spec.build(data, priors, terms)


@takes_options(NAMED, without=NOT_OF_MODEL - {"orientation"})
@stops_at_once
@np.errstate(all="ignore")  # the search for modes meets infinities and leaves them
def from_trace(trace: Any, options: FitOptions) -> Fit:
    """A fit from draws of `build_model` that `pymc.sample` or another sampler made.

    Chains that ended with t and s in different orders are brought into one orientation by
    reweighting. The orientation follows the rules of `fit`; verdict, report and all other methods
    are available. The arguments are those of the call to `build_model`.

    Parameters
    ----------
    trace : DataTree
        What the sampler returned, with a group ``posterior``.
    orientation : {"sigma-norm", "norm", "none"}
        Rule that decides which of SPM's two factors is the class where the data do not.
    random_seed : int, optional
        Seed of the random draws made here.

    Returns
    -------
    Fit

    Examples
    --------
    >>> import bayes_lepu as lepu
    >>> demo = lepu.load_demo()
    >>> fit = lepu.fit(demo.X, demo.l, model="scar", method="laplace", draws=50, random_seed=1)
    >>> again = lepu.from_trace(fit.tree, demo.X, demo.l, model="scar", random_seed=1)
    >>> bool(again.pi_draws.mean() == fit.pi_draws.mean())
    True
    """
    check_rule(options.orientation)
    spec, data, chosen = read_model(options)
    refuse_improper(chosen)
    density = LogDensity(spec, data, chosen, jacobian=True)
    posterior = _checked(density, _posterior(trace))
    _refuse_other_rows(trace, data)
    z = density.layout.of_variables(posterior)
    other = _of_another_density(trace, density, z, posterior)
    chains, draws = z.shape[:2]
    attrs = posterior.attrs
    news = {"chains": chains, "draws": draws, "tune": int(attrs.get("tuning_steps", 0))}
    options = replace(options.kept, sampler="pymc", **news)
    request = options.request(spec, data, chosen)
    found = request.modes_for_draws()
    places = np.arange(chains * draws, dtype=float).reshape(chains, draws)
    named = returned(request, found, z, {**stats_of(trace), "of_trace": places})
    stats = dict(named.stats)
    places = stats.pop("of_trace").astype(int)
    now = Provenance.now(options, attrs.get("sampling_time"))
    made = {"created_at": attrs.get("created_at", now.created_at), "sampler": options.sampler}
    return Fit(
        spec=spec,
        data=data,
        priors=chosen,
        parameters=named.parameters,
        modes=found.modes,
        orientation=named.orientation,
        options=options,
        provenance=replace(now, made_by="from_trace", other_density=other, **made),
        stats=stats,
        quality=named.quality,
        log_likelihood=_own_log_likelihood(trace, data, places) if other else None,
    )


def _posterior(trace: Any) -> "xr.Dataset":
    """The group of draws."""
    import xarray as xr

    if isinstance(trace, xr.Dataset):
        return trace
    if not isinstance(trace, xr.DataTree) or "posterior" not in trace.children:
        raise ModelError(
            f"trace is a {type(trace).__name__} without a group 'posterior'; what pymc.sample "
            "returns is expected, an xarray DataTree."
        )
    return trace["posterior"].to_dataset()


def _refuse_other_rows(trace: Any, data: PUData) -> None:
    """Refuse a trace whose stored rows, if it has any, are not these rows."""
    labels = data.l if data.n_annotators == 1 else data.labels
    ours: dict[Any, Any] = {"l": data.l, "labels": labels, "weight": data.weight}
    if not data.is_sparse:
        ours["X"] = data.X
    names = {"feature": list(data.feature_names), "annotator": list(data.annotators)}
    groups = getattr(trace, "children", {})
    kept = [groups[g].to_dataset() for g in ("constant_data", "observed_data") if g in groups]
    for name, theirs in ((n, group[n]) for group in kept for n in group if n in ours):
        order = {dim: names[dim] for dim in names if dim in theirs.indexes}
        values = theirs.reindex(order).to_numpy()
        # Samplers may keep columns in single precision, hence 1e-5.
        if values.shape != ours[name].shape or not np.allclose(values, ours[name], 1e-5, 1e-5):
            raise DataError(
                f"The trace was sampled on other rows than these {data.n}: its {name!r} "
                f"({theirs.sizes['obs']} rows) differs. Hand over the table, labels and weights "
                "that the model was built with, in the same order."
            )


def _checked(density: LogDensity, posterior: "xr.Dataset") -> "xr.Dataset":
    """The draws of this model's variables, with its order of columns; missing ones are an error."""
    blocks = [block for block in density.layout.blocks if block.size]
    lacking = [block.name for block in blocks if block.name not in posterior.data_vars]
    if lacking:
        raise ModelError(
            f"The trace lacks {', '.join(lacking)} of the model {density.spec.name!r}. It has "
            f"{some([str(name) for name in posterior.data_vars])}. Sample what lepu.build_model "
            "gives with the same model=, columns and annotators, and keep its variables."
        )
    names = np.array(density.data.feature_names)
    coords = {
        density.data.class_dim: names[density.data.class_mask],
        density.data.selection_dim: names[density.data.selection_mask],
        "annotator": np.array(density.data.annotators),
    }
    coords = {dim: names for dim, names in coords.items() if dim in posterior.coords}
    for dim, expected in coords.items():
        found = [str(value) for value in posterior[dim].to_numpy()]
        if sorted(found) != sorted(expected):
            raise ModelError(
                f"The trace has {some(found)} as {dim}; {some(list(expected))} is expected. Hand "
                "over the table that the model was built with."
            )
    bad = [b.name for b in blocks if not np.isfinite(posterior[b.name].to_numpy()).all()]
    if bad:
        raise ModelError(
            f"The trace holds draws of {', '.join(bad)} that are no finite numbers. Leave out the "
            "chains that failed: trace.sel(chain=[...])."
        )
    return posterior.sel(coords).transpose("chain", "draw", ...)


def _of_another_density(trace: Any, density: LogDensity, z: Any, posterior: "xr.Dataset") -> bool:
    """Whether the draws come from another density than the model's; warns if so.

    Compared are the sampler's own log densities, up to a constant, if the trace has them. Otherwise
    the trace has another density if it has variables unknown to the model, such as those of terms.
    """
    stems = {block.stem for block in density.layout.blocks}
    known = {block.name for block in density.layout.blocks} | stems | {"pi", "c", "C"}
    known |= {f"{name}_original" for name in stems} | set(density.spec.propensity.components)
    more = sorted(str(name) for name in posterior.data_vars if name not in known)
    group: Any = trace.get("sample_stats", {}) if hasattr(trace, "children") else {}
    name = next((name for name in ("lp", "logp") if name in group), None)
    apart = np.inf if more else 0.0
    if name is not None:
        draws = evenly_spaced(z.shape[1], 20)
        theirs = group[name].isel(draw=draws).to_numpy()
        ours = np.array([[density.logp(point) for point in chain] for chain in z[:, draws]])
        apart = float(np.std(theirs - ours))
    text = f"model={density.spec.name!r}"
    if more:
        text = (
            f"The trace also has {some(more)}, which {text} does not know. They stay in the trace; "
            "t, s, predictions, verdict and report of the fit leave them out."
        )
    elif apart > SAME_DENSITY:
        text = (
            f"The trace was sampled from another density than that of {text}: the two differ by "
            f"{apart:.2g} over its draws (standard deviation). A pm.Potential is a possible cause, "
            "or priors that differ from those given here (priors=). The draws are used unchanged; "
            "densities that the verdict computes leave the Potential out."
        )
    if apart > SAME_DENSITY:
        text += (
            " LOO and lepu.compare use the trace's own log-likelihood, which "
            "pm.compute_log_likelihood adds before from_trace."
        )
    if more or apart > SAME_DENSITY:
        warnings.warn(text, LepuWarning, skip_file_prefixes=OWN_CODE)
    return apart > SAME_DENSITY


def _own_log_likelihood(trace: Any, data: PUData, places: Any) -> Any:
    """The trace's log-likelihood of every row (label and audited class); None if it has none.

    ``places`` are the positions of the fit's draws in the trace. PyMC's log-likelihood includes the
    weight of the row, which is divided out.
    """
    groups = getattr(trace, "children", {})
    group = groups["log_likelihood"].to_dataset() if "log_likelihood" in groups else {}
    name = "l" if data.n_annotators == 1 else "L"
    if name not in group:
        return None
    values = group[name].to_numpy().copy()
    if (audited := ~np.isnan(data.y)).any():
        values[..., audited] += group["y"].to_numpy()
    by_draw = values.reshape(-1, data.n)[places]
    return by_draw / np.where(data.weight > 0, data.weight, 1.0)
