"""The fitted model against simpler ones: do the labels need it, and what does it change."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bayes_lepu.data import PUData
from bayes_lepu.diagnostics.constancy import loo_rows
from bayes_lepu.errors import DataError
from bayes_lepu.inference.laplace import gaussian_at
from bayes_lepu.inference.map import fit_map
from bayes_lepu.inference.posterior import known_scales
from bayes_lepu.links import Array, RowKind
from bayes_lepu.models import get_model
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.plots.panels import some_rows, thin
from bayes_lepu.priors import default_priors
from bayes_lepu.report.section import Section
from bayes_lepu.report.tables import table
from bayes_lepu.result import FittedModel
from bayes_lepu.result.summaries import CI_PROB, describe_draws

DRAWS = 500
MAX_ROWS = 10_000
LEAST_DIFFERENCE = 4.0
SIMPLE = ("naive", "scar")


@dataclass(frozen=True)
class Rival:
    """One model's prediction of the labels, left out one at a time.

    Attributes
    ----------
    name : str
    elpd : float
        Expected log predictive density of all rows.
    difference, se : float
        That of the best model minus this one's, and its standard error.
    pi : mapping
        Mean and interval of the class prior under this model.
    """

    name: str
    elpd: float
    difference: float
    se: float
    pi: Mapping[str, float]

    @property
    def reading(self) -> str:
        """What the difference says."""
        if self.difference == 0:
            return "predicts the labels best"
        if self.difference > max(LEAST_DIFFERENCE, 2 * self.se):
            return "predicts the labels worse"
        return "no worse than chance allows"


def compare_rivals(
    fit: FittedModel, *, compare_with: Mapping[str, FittedModel] | None = None
) -> list[Rival]:
    """The fit against other fits of the same rows, or against quick ones of simpler models.

    Rows are left out by truncated importance weights on 500 draws of each model; beyond 10,000
    rows the figures are those of an evenly spaced part, scaled to all rows.
    """
    draws = {_own_name(fit, compare_with): _own_draws(fit)}
    if compare_with is None:
        draws |= {name: quick_draws(name, fit.data) for name in _simpler(fit)}
    else:
        for name, other in compare_with.items():
            if not np.array_equal(other.data.kind, fit.data.kind):
                raise DataError(f"{name!r} was fitted to other labels than this fit.")
            draws[name] = _own_draws(other)
    data = _part(fit.data)
    rows = {name: loo_rows(d, data) for name, d in draws.items()}
    best = max(rows, key=lambda name: float(rows[name].sum()))
    scale = fit.data.n / data.n
    ranked = sorted(rows, key=lambda name: -float(rows[name].sum()))
    return [
        Rival(
            name,
            scale * float(rows[name].sum()),
            scale * float((rows[best] - rows[name]).sum()),
            scale * float(np.sqrt(data.n) * (rows[best] - rows[name]).std()),
            describe_draws(_class_prior(draws[name], data), CI_PROB),
        )
        for name in ranked
    ]


def comparison_section(
    fit: FittedModel, *, compare_with: Mapping[str, FittedModel] | None = None
) -> Section:
    """How well each model predicts the labels, and what it makes of the class prior."""
    rivals = compare_rivals(fit, compare_with=compare_with)
    rows = [
        [
            r.name,
            r.elpd,
            r.difference,
            r.se,
            r.reading,
            r.pi["mean"],
            r.pi["lower"],
            r.pi["upper"],
        ]
        for r in rivals
    ]
    columns = ("model", "elpd", "below the best", "se", "reading", "its π", "lower", "upper")
    how = "the fits handed in" if compare_with else "quick fits (Gaussian at the mode)"
    lead = (
        f"This fit against {how} on the same rows, each row predicted without itself (LOO). A "
        f"difference below {LEAST_DIFFERENCE:g} or two standard errors says nothing; where a "
        "constant s predicts as well, the simpler model is the honest one."
    )
    found = table(columns, rows)
    return Section("comparison", "Against simpler models", lead, tables=(("Models", found),))


def quick_draws(name: str, data: PUData) -> Parameters:
    """Draws of a Gaussian at the best mode of a model under its default priors."""
    spec = get_model(name)
    base = default_priors(int(data.class_mask.sum()), int(data.selection_mask.sum()))
    priors = spec.complete_priors(base, None)
    rng = np.random.default_rng(0)
    found = fit_map(spec, data, known_scales(priors), n_starts=4, rng=rng)
    density = LogDensity(spec, data, priors, jacobian=True)
    return density.unpack(gaussian_at(density, density.pack(found.point)).sample(rng, DRAWS))


def _simpler(fit: FittedModel) -> list[str]:
    """The simple models that these rows allow, and SPM where the fit itself is a simple one."""
    names = [name for name in SIMPLE if name != fit.spec.name]
    if np.any(fit.data.kind == RowKind.MISSED):
        names = [name for name in names if name != "naive"]  # s = 1 rules such rows out
    return [*names, "spm"] if fit.spec.name in SIMPLE else names


def _own_name(fit: FittedModel, others: Mapping[str, FittedModel] | None) -> str:
    return f"{fit.spec.name} (this fit)" if fit.spec.name in (others or ()) else fit.spec.name


def _own_draws(fit: FittedModel) -> Parameters:
    """The fit's draws; for a point estimate a Gaussian at it, since leaving out needs a spread."""
    if fit.is_point:
        return quick_draws(fit.spec.name, fit.data)
    return thin(fit.draws, DRAWS)


def _part(data: PUData) -> PUData:
    if data.n <= MAX_ROWS:
        return data
    keep = some_rows(data.n, MAX_ROWS)
    return replace(
        data,
        X=np.ascontiguousarray(data.X[keep]),
        l=data.l[keep],
        y=data.y[keep],
        kind=data.kind[keep],
        index=data.index[keep],
    )


def _class_prior(draws: Parameters, data: PUData) -> Array:
    return draws.t(data.X).mean(axis=1)
