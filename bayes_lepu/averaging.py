r"""One answer from several models of the labelling, weighted by how well they predict the labels.

``model="auto"`` fits all models and weighs them by

.. math:: w_k \propto p_k \exp(\mathrm{elpd}_k / 4), \qquad
    P(y=1 \mid x) = \sum_k w_k \, E_k[t(x)],

with elpd the expected log predictive density of the labels by PSIS-LOO and p the prior weight of a
model: 0.6 for spm, 0.3 for scar, 0.1 for psychm, 0.02 for naive (then made to sum to one).
Differences of elpd below 4 say nothing, hence the division: on real tables the averages that
followed elpd in full were no better than the richest model alone, because the labels hardly tell
"all positives are labelled" from "half of them are", and naive has to earn its weight.

The draws of the average are draws of its members in proportion to their weights: all four models
are points of one parameter space, so that everything a fit can answer (class probabilities, missed
positives, π, c, decisions) is the average of the members' answers with the uncertainty about the
model inside. ``stats["model"]`` says which member a draw came from.
"""

import json
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.comparison import compare
from bayes_lepu.diagnostics.records import Identifiability
from bayes_lepu.errors import FileFormatError, ModelError
from bayes_lepu.factors import RATES, Factor
from bayes_lepu.fitted import Fit
from bayes_lepu.models import AUTO
from bayes_lepu.models.parameters import ARRAYS, Parameters
from bayes_lepu.result.calls import HEAD, call_text
from bayes_lepu.result.origin import FitOptions, Provenance
from bayes_lepu.result.saved import fields_of, to_saved, write
from bayes_lepu.result.tree import to_tree
from bayes_lepu.result.without_rows import Remembered
from bayes_lepu.runtime.interruption import stops_at_once

if TYPE_CHECKING:
    import xarray as xr

PRIOR_WEIGHTS = {"naive": 0.02, "scar": 0.3, "spm": 0.6, "psychm": 0.1}
MEMBERS, REMEMBERED = "members", "remembered"  # groups of a saved average
TEMPERATURE = 4.0  # differences of elpd that say nothing


@dataclass(frozen=True, eq=False, repr=False)
class AveragedFit(Fit):
    """The average of several fits of the same rows; what is not averaged is the leading member's.

    Attributes
    ----------
    members : mapping of str to Fit
        The fits by name of their model.
    comparison : DataFrame
        One row per member, the largest weight first: weight, elpd, standard error and what
        `compare` says of them.
    """

    members: Mapping[str, Fit] = field(default_factory=dict)
    comparison: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def weights(self) -> dict[str, float]:
        """Weight of every member, the largest first."""
        return {str(name): float(w) for name, w in self.comparison["weight"].items()}

    @property
    def leading(self) -> Fit:
        """The member with the largest weight."""
        return self.members[self._first]

    @property
    def _first(self) -> str:
        return next(iter(self.weights))

    @cached_property
    def identifiability(self) -> Identifiability:
        """The verdict on the leading member, which says what the average rests on."""
        found = self.leading.identifiability
        return replace(found, verdict=f"{found.verdict} {self._rests_on()}")

    @property
    def call(self) -> str:
        """Lines of Python that give the same numbers; see `Fit.call`.

        One call with ``model="auto"`` where the average came from one. After an update the calls
        of its members, and the weights that it gave them.
        """
        if self.provenance.made_by == "fit":
            return HEAD + call_text(self, self.options.priors)
        fits = (call_text(fit, fit.priors, f"members[{n!r}]") for n, fit in self.members.items())
        return f"{HEAD}members = {{}}\n" + "".join(fits) + f"weights = {self.weights!r}\n"

    def _rests_on(self) -> str:
        shown = ", ".join(f"{name} {w:.2f}" for name, w in self.weights.items())
        spread = [
            float(np.mean(self.members[n].pi_draws)) for n, w in self.weights.items() if w > 0.05
        ]
        agree = (
            "they agree on the class prior"
            if max(spread) - min(spread) < 0.05
            else f"their class priors range from {min(spread):.2f} to {max(spread):.2f}"
        )
        return (
            f"This is the verdict on {self._first}; the answer averages models by how "
            f"well they predict the labels ({shown}), and {agree}."
        )

    @cached_property
    def tree(self) -> "xr.DataTree":
        """The ArviZ DataTree of the averaged draws, under the names of the leading model.

        An average has no prior of its own: there is neither ``log_prior`` nor ``lp``.
        """
        tree = to_tree(self)
        del tree["log_prior"]
        tree["sample_stats"] = tree["sample_stats"].to_dataset().drop_vars("lp")
        return tree

    @stops_at_once
    def save(self, path: str | Path, *, all_groups: bool = False, data: bool = True) -> Path:
        """Write the members and their weights to one netCDF file; read it back with `load`.

        Parameters
        ----------
        path : str or Path
        all_groups : bool
            Not for averages: what belongs to rows and draws is written by the members.
        data : bool
            Whether to write the rows, once for every member. Without them the file predicts new
            rows and shows the verdicts made before; see `Fit.save`.
        """
        import xarray as xr

        if all_groups:
            raise ModelError(
                "An average has no log prior and no log density to write. Save a member: "
                f"fit.members[{self._first!r}].save({str(path)!r}, all_groups=True)."
            )
        data = data and self.remembered is None
        whole = {} if data else {REMEMBERED: self._remember().to_dataset()}
        tree = xr.DataTree.from_dict({"/": xr.Dataset(), **whole})
        tree[MEMBERS] = xr.DataTree(
            children={
                f"{number}": to_saved(fit, remembered=None if data else fit._remember())
                for number, fit in enumerate(self.members.values())
            }
        )
        tree.attrs = {
            "options": self.options.to_json(),
            "provenance": self.provenance.to_json(),
            "comparison": json.dumps(self.comparison.to_dict(orient="split")),
        }
        return write(tree, Path(path))

    def accept_unseen(self, how: str) -> "AveragedFit":
        """See `Fit.accept_unseen`; of every member too."""
        members = {name: fit.accept_unseen(how) for name, fit in self.members.items()}
        return replace(super().accept_unseen(how), members=members)

    def update(
        self,
        *,
        y: Any = None,
        audits: str | None = None,
        class_features: Sequence[str | int] | None = None,
        selection_features: Sequence[str | int] | None = None,
        class_prior: tuple[float, float] | None = None,
        label_frequency: tuple[float, float] | None = None,
        false_marks: bool | None = None,
        method: str | None = None,
        random_seed: int | None = None,
    ) -> Fit:
        """Every member fitted again with what has been learned since, and averaged anew.

        Arguments are those of `Fit.update`; naive is left out once a missed positive is known.
        Weights are found anew; a member that is left alone is the answer.
        """
        updated: dict[str, Fit] = {}
        for name, fit in self.members.items():
            if fit.spec.certain and y is not None:
                continue
            updated[name] = fit.update(
                y=y,
                audits=audits,
                class_features=class_features,
                selection_features=selection_features if fit.spec.has_selection else None,
                class_prior=class_prior,
                label_frequency=label_frequency,
                false_marks=false_marks,
                method=method,
                random_seed=random_seed,
            )
        seed = self.options.random_seed if random_seed is None else random_seed
        if len(updated) == 1:
            return next(iter(updated.values()))
        whole = next(fit.options for fit in updated.values() if fit.spec.has_selection)
        return average(updated, replace(whole, model=AUTO, random_seed=seed))

    def _headline(self) -> str:
        return f"bayes_lepu fit: average of {len(self.members)} models, method={self.method}"

    def _facts(self) -> dict[str, str]:
        facts = super()._facts()
        if self.remembered is not None:
            return facts
        shown = ", ".join(f"{name} {w:.2f}" for name, w in self.weights.items())
        of = {
            "model": f"weights of the members: {shown}",
            "priors": f"of {self._first}: {facts['priors']}",
        }
        kept = {k: v for k, v in facts.items() if k not in (*RATES, "approximation")}
        return {**kept, **of}


def average(fits: Mapping[str, Fit], options: FitOptions) -> AveragedFit:
    """The average of fits of the same rows by different models.

    Parameters
    ----------
    fits : mapping of str to Fit
        Fits with draws, by name of their model.
    options : FitOptions
        Those of the call with ``model="auto"``; its seed is that of the choice of draws.
    """
    return _averaged(fits, weigh(fits), options)


def _averaged(fits: Mapping[str, Fit], table: pd.DataFrame, options: FitOptions) -> AveragedFit:
    """Draws of the fits in proportion to their weights, the largest first."""
    lead = fits[str(table.index[0])]
    rng = np.random.default_rng([options.random_seed, 8])
    shape = lead.parameters.b.shape
    which = rng.choice(len(fits), size=shape, p=table["weight"].to_numpy())
    members = {str(name): fits[str(name)] for name in table.index}
    return AveragedFit(
        spec=lead.spec,
        data=lead.data,
        priors=lead.priors,
        parameters=_pool(members.values(), which),
        modes=lead.modes,
        orientation=lead.orientation,
        options=options,
        provenance=lead.provenance,
        stats={"model": which.astype(float)},
        members=members,
        comparison=table,
    )


def is_average(tree: "xr.DataTree") -> bool:
    """Whether a saved tree holds the members of an average."""
    return MEMBERS in tree.children


def from_saved(
    tree: "xr.DataTree", path: Path, model: Factor | None, class_link: Factor | None
) -> AveragedFit:
    """The average that `AveragedFit.save` wrote, its draws chosen anew by the same seed."""
    try:
        table = pd.DataFrame(**json.loads(tree.attrs["comparison"]))
        options = FitOptions.from_json(tree.attrs["options"])
        provenance = Provenance.from_json(tree.attrs["provenance"])
        saved = [tree.children[MEMBERS].children[f"{number}"] for number in range(len(table))]
        group = tree.children.get(REMEMBERED)
        remembered = Remembered.from_group(group) if group else None
    except (KeyError, ValueError, TypeError) as error:
        raise FileFormatError(
            f"{path} is incomplete ({error}). Save the fit again, or use the release that wrote it."
        ) from error
    members = zip(table.index, saved, strict=True)
    own = {"propensity": model, "class_link": class_link}
    fits = {str(name): Fit(**fields_of(member, path, **own)) for name, member in members}
    found = _averaged(fits, table, options)
    return replace(found, provenance=provenance, remembered=remembered)


def weigh(fits: Mapping[str, Fit]) -> pd.DataFrame:
    """`compare` with weights p exp(elpd / 4), the largest first.

    A model's effective number of parameters is no larger than their number. Where PSIS says
    otherwise it has failed (draws of Laplace near separable classes), and the number stands in.
    """
    with warnings.catch_warnings():
        # Which members have hard rows stands in the column "warning"; weights need no more.
        warnings.filterwarnings("ignore", message="Estimated shape parameter")
        table = compare(fits, method="pseudo-BMA", round_to="none")
    prior = np.array([PRIOR_WEIGHTS[str(name)] for name in table.index])
    dims = np.array([fits[str(name)].density.dim for name in table.index])
    elpd = table["elpd"].to_numpy() + np.maximum(table["p"].to_numpy() - dims, 0.0)
    score = np.log(prior) + elpd / TEMPERATURE
    weight = np.exp(score - score.max())
    return table.assign(weight=weight / weight.sum()).sort_values("weight", ascending=False)


def _pool(fits: Iterable[Fit], which: NDArray[np.int64]) -> Parameters:
    """Draws of each member where ``which`` names it, by position; evenly where it has more."""
    fits = list(fits)
    members = [_of_shape(fit.parameters, which.shape) for fit in fits]
    # A propensity without a predictor has a link in name only.
    links = [fit.parameters.link for fit in fits if fit.spec.has_selection]
    pooled = {}
    for name in ARRAYS:
        parts = [getattr(m, name) for m in members]
        if any(part is None for part in parts):
            continue  # no false marks
        values = np.stack(np.broadcast_arrays(*parts))
        index = which.reshape(1, *which.shape, *(1,) * (values.ndim - 3))
        pooled[name] = np.take_along_axis(values, index, axis=0)[0]
    link = (*links, members[0].link)[0]
    return Parameters(**pooled, link=link, of_class=members[0].of_class)


def _of_shape(draws: Parameters, shape: tuple[int, ...]) -> Parameters:
    """As many draws as asked for, evenly taken."""
    if draws.b.shape == shape:
        return draws
    flat, count = draws.take_flat(), math.prod(shape)
    some_draws = flat.take(np.arange(count) * flat.b.size // count)
    arrays = {n: getattr(some_draws, n) for n in ARRAYS if getattr(some_draws, n) is not None}
    return replace(some_draws, **{n: v.reshape(*shape, *v.shape[1:]) for n, v in arrays.items()})
