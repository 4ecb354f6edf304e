r"""Simulation-based calibration: whether posteriors mean what they say, for your X and your priors.

Parameters are drawn from the prior, labels from the parameters, and a posterior from the labels.
The rank of every true quantity among L thinned draws of its posterior is then uniform on 0..L
(Talts et al., 2018, arXiv:1804.06788), and so is

.. math:: \mathrm{PIT} = \frac{\mathrm{rank} + u}{L + 1}, \qquad u \sim U(0, 1).

It is uniform given any data, so that labels which cannot be fitted (nobody marked) may be left out.
"""

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from bayes_lepu._fit import fit_rows
from bayes_lepu.building import Rows, read_model
from bayes_lepu.errors import DataError, LepuWarning, ModelError
from bayes_lepu.inference.nuts import refuse_improper
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.models.transforms import plain_name
from bayes_lepu.priors.prior import GivenPriors
from bayes_lepu.propensities import Propensity
from bayes_lepu.result.origin import FitOptions, read_seed
from bayes_lepu.runtime.interruption import stops_at_once

if TYPE_CHECKING:
    import xarray as xr

THINNED = 49  # draws that a truth is ranked among: ranks 0..49 fall into ten equal bins
BINS = 10
BAND = 0.99  # probability that no bin of a uniform histogram falls outside


@dataclass(frozen=True, eq=False)
class Calibration:
    """Ranks of true quantities among draws of their posteriors.

    Attributes
    ----------
    ranks : DataFrame
        One row per replication, one column per quantity: how many of `THINNED` draws lie below the
        truth.
    unusable : int
        Replications whose labels could not be fitted, such as none marked.
    random_seed : int
    """

    ranks: pd.DataFrame
    unusable: int
    random_seed: int

    @property
    def pit(self) -> pd.DataFrame:
        """Ranks spread over the unit interval, uniform where the posteriors are calibrated."""
        u = np.random.default_rng([self.random_seed, 1]).random(self.ranks.shape)
        return (self.ranks + u) / (THINNED + 1)

    def to_frame(self) -> pd.DataFrame:
        """One row per quantity: replications, mean and spread of the PIT, bins outside the band.

        Where posteriors are calibrated the mean is 0.5 (above: posteriors too low) and the spread,
        in units of that of a uniform, 1 (above: posteriors too narrow). ``outside`` counts the bins
        of the rank histogram outside the simultaneous 99 % band.
        """
        pit = self.pit
        return pd.DataFrame(
            {
                "replications": pit.count(),
                "mean": pit.mean(),
                "spread": pit.std() * np.sqrt(12),
                "outside": [outside_band(self.ranks[name].to_numpy()) for name in pit],
            }
        )

    @property
    def tree(self) -> "xr.DataTree":
        """The PIT as ArviZ takes it, in the group ``prior_sbc``."""
        import xarray as xr

        columns = {
            name: (("chain", "draw"), pit.to_numpy()[None]) for name, pit in self.pit.items()
        }
        return xr.DataTree.from_dict({"prior_sbc": xr.Dataset(columns)})

    def plot(self) -> Any:
        """`arviz.plot_ecdf_pit`: cumulated PIT against a uniform, with its envelope."""
        import arviz as az

        return az.plot_ecdf_pit(self.tree)

    def __repr__(self) -> str:
        """The answer in a sentence."""
        table = self.to_frame()
        wrong = [str(name) for name, bins in table["outside"].items() if bins]
        found = f"outside the band: {', '.join(wrong)}" if wrong else "none outside the band"
        return (
            f"Calibration of {len(table)} quantities in {len(self.ranks)} replications "
            f"({self.unusable} unusable): {found} of {BAND:.0%}."
        )


@stops_at_once
def calibrate(
    X: Any,
    *,
    model: str | Propensity | ModelSpec = "psychm",
    method: str = "nuts",
    priors: GivenPriors | None = None,
    shown: Any = None,
    class_features: Sequence[str | int] | None = None,
    selection_features: Sequence[str | int] | None = None,
    class_formula: str | None = None,
    selection_formula: str | None = None,
    standardize: bool = True,
    replications: int = 100,
    draws: int = 350,
    tune: int = 400,
    chains: int = 2,
    path: str | Path | None = None,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> Calibration:
    """Simulation-based calibration of the posteriors of a model on your columns.

    Each replication draws parameters from the priors, labels from the parameters and a posterior
    from the labels, and ranks every parameter, π and c in it. Factors are named by the density
    alone (``orientation="none"``), as the priors have them. Default priors are those for labels of
    which half are marks, in every replication.

    Parameters
    ----------
    X : table of n rows
    model, method, priors, class_features, selection_features, class_formula, selection_formula, \
standardize
        As in `fit`.
    shown : (n, J) booleans, optional
        Which of J annotators is shown which row. One annotator who is shown all, without it.
    replications : int
        One fit each; 100 show gross faults, 1000 small ones.
    draws, tune, chains : int
        Of each fit. Draws are thinned to 49 before the truth is ranked among them.
    path : str or Path, optional
        A file where ranks are kept as they come. A call with the same arguments goes on from there.
    random_seed : int, optional
        Replication k depends on it and on k alone.
    progressbar : bool

    Returns
    -------
    Calibration
        With ``ranks``, ``to_frame()``, ``plot()``, and ``tree`` for ArviZ.

    Examples
    --------
    >>> import bayes_lepu as lepu
    >>> X = lepu.load_demo().X.head(200)
    >>> found = lepu.calibrate(
    ...     X, model="scar", method="laplace", replications=5, random_seed=1, progressbar=False
    ... )
    >>> list(found.to_frame().columns)
    ['replications', 'mean', 'spread', 'outside']
    """
    asked = FitOptions.of(locals())
    if replications < 1:
        raise ModelError(f"replications = {replications}; a number of 1 or more is expected.")
    if draws * chains < THINNED:
        raise ModelError(f"draws x chains = {draws * chains}; {THINNED} or more are expected.")
    alternating = _alternating(len(X), shown)
    spec, template, chosen = read_model(Rows(X, alternating), model, replace(asked, method="nuts"))
    refuse_improper(chosen)
    density = LogDensity(spec, template, chosen, jacobian=True)
    seen = None if shown is None else template.shown
    options = replace(asked, priors=chosen, orientation="none", cores=1, progressbar=False)
    numbers = {"method": method, "draws": draws, "tune": tune, "chains": chains}
    store = _Store(path, random_seed, {**numbers, **_described(density)})

    def replication(k: int) -> dict[str, int]:
        rng = np.random.default_rng([store.random_seed, k])
        truth = density.unpack(density.sample_prior(1, rng)[0])
        labels = truth.simulate(template.X, rng, shown=seen)[1]
        if not _can_be_fitted(labels):
            return {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LepuWarning)
            found = fit_rows(
                Rows(X, labels if seen is None else np.where(seen, labels, np.nan)),
                spec,
                replace(options, random_seed=int(rng.integers(2**31))),
            )
        thinned = np.linspace(0, found.draws.b.size - 1, THINNED).astype(int)
        drawn = quantities(density, found.draws.take(thinned))
        true = quantities(density, truth.take(None))
        return {name: int(np.sum(values < true[name][0])) for name, values in drawn.items()}

    for k in _progress(range(replications), shown=progressbar):
        if k not in store.ranks:
            store.add(k, replication(k))
    done = [store.ranks[k] for k in range(replications)]
    usable = [ranks for ranks in done if ranks]
    if not usable:
        raise DataError(
            f"None of {replications} replications could be fitted: under these priors all rows or "
            "none are marked. Use more rows, or priors that are less extreme."
        )
    return Calibration(pd.DataFrame(usable), len(done) - len(usable), store.random_seed)


def quantities(density: LogDensity, draws: Parameters) -> dict[str, Array]:
    """Every parameter (of annotators what they share and how much they differ), π and c."""
    z = density.pack_draws(draws)
    out: dict[str, Array] = {}
    for block in density.layout.blocks:
        if block.role == "deviation" or block.size == 0:
            continue
        at = density.layout.slices[block.name]
        out |= dict(zip(map(plain_name, block.labels), z[:, at].T, strict=True))
    t, s = draws.t(density.data.X), draws.s(density.data.X)
    out["pi"] = t.mean(axis=-1)
    if not draws.several and density.spec.n_rates == 2:
        out |= draws.rates(density.spec.shape_rates)
    if not draws.several and not density.spec.certain:
        out["c"] = (s * t).mean(axis=-1) / t.mean(axis=-1)
    return out


def outside_band(ranks: Array, prob: float = BAND) -> int:
    """Bins of the rank histogram outside the simultaneous band of a uniform distribution."""
    counts = np.histogram(ranks, bins=BINS, range=(-0.5, THINNED + 0.5))[0]
    tail = (1 - prob) / 2 / BINS
    low, high = stats.binom.ppf([tail, 1 - tail], len(ranks), 1 / BINS)
    return int(np.sum((counts < low) | (counts > high)))


class _Store:
    """Ranks by replication, in a file of one line each where there is one."""

    def __init__(
        self, path: str | Path | None, random_seed: int | None, about: Mapping[str, Any]
    ) -> None:
        self.path = None if path is None else Path(path)
        self.ranks: dict[int, dict[str, int]] = {}
        lines = _whole_lines(self.path)
        if not lines:
            self.random_seed = read_seed(random_seed)
            self._write({**about, "random_seed": self.random_seed})
            return
        head, *found = lines
        self.random_seed = head["random_seed"] if random_seed is None else read_seed(random_seed)
        now = {**about, "random_seed": self.random_seed}
        other = [name for name in now if head.get(name) != now[name]]
        if other:
            raise ModelError(
                f"{self.path} holds a calibration with another {', '.join(other)}; the same "
                "arguments are expected to go on with it. Give another path."
            )
        self.ranks = {line["replication"]: line["ranks"] for line in found}

    def add(self, k: int, ranks: dict[str, int]) -> None:
        self.ranks[k] = ranks
        self._write({"replication": k, "ranks": ranks})

    def _write(self, line: Mapping[str, Any]) -> None:
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def _whole_lines(path: Path | None) -> list[dict[str, Any]]:
    """What the file holds; a last line that was cut off is taken away."""
    if path is None or not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


def _described(density: LogDensity) -> dict[str, Any]:
    """What a stored calibration must have been made with."""
    data = density.data
    return {
        "model": density.spec.name,
        "priors": {name: repr(prior) for name, prior in density.priors.items()},
        "columns": list(data.feature_names),
        "masks": [data.class_mask.tolist(), data.selection_mask.tolist()],
        "rows": [data.n, float(np.abs(data.X).sum()), int(data.shown.sum())],
    }


def _alternating(n: int, shown: Any) -> Array:
    """Labels of the template: they only have to be readable."""
    labels = (np.arange(n) % 2).astype(float)
    if shown is None:
        return labels
    shown = np.asarray(shown)
    if shown.dtype != bool or shown.ndim != 2 or len(shown) != n or shown.shape[1] < 2:
        raise DataError(
            f"shown has shape {shown.shape} and type {shown.dtype}; booleans ({n}, J) are "
            "expected, one column for each of J >= 2 annotators."
        )
    return np.where(shown, labels[:, None], np.nan)


def _can_be_fitted(labels: NDArray[np.int8]) -> bool:
    """Whether every annotator marked something and some row nobody marked."""
    marked = (labels == 1).reshape(len(labels), -1)
    return bool(marked.any(axis=0).all() and not marked.any(axis=1).all())


def _progress(items: range, *, shown: bool) -> Any:
    if not shown:
        return items
    from rich.progress import track

    return track(items, description="Calibrating")
