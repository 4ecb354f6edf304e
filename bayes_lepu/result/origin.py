"""Where a fit comes from: the options of its call, and by what and when it was computed."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Any, Self

import numpy as np
import pandas as pd

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.factors import Factor
from bayes_lepu.inference.engines import Request
from bayes_lepu.inference.nuts import NutsOptions
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors.prior import GivenPriors, Prior, Priors

VERSIONED = ("bayes-lepu", "numpy", "numba", "scipy", "pandas", "pymc", "nutpie")
# What a call hands over with one value for every row; its names of columns are options.
OF_ROWS = ("l", "y", "sample_weight")
# What speaks of the user's own columns, and what else decides how they are read.
BY_COLUMN = (
    "class_features",
    "selection_features",
    "exclude",
    "missing",
)
OF_COLUMNS = ("class_prior", "label_frequency", *BY_COLUMN, "standardize")
PRIOR = "Prior"  # marks a prior in a saved file
Columns = Sequence[str | int]


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """The options of a call to `fit`, under the same names and with the same defaults.

    `build_model`, `from_trace`, `Fit.update` and saved files have the same object.

    ``l``, ``y`` and ``sample_weight`` are kept where they name columns of X; given as values they
    are part of the data. ``model`` is the name of the model, and ``random_seed`` the one that was
    made where none was given. Numbers of NumPy become Python's, and sequences tuples.
    """

    # The model
    model: Any = "auto"
    class_link: str | Factor | None = None
    class_learner: Any = "auto"
    method: str = "nuts"
    # Rows
    l: Any = None
    y: Any = None
    sample_weight: Any = None
    # What is known from elsewhere
    class_prior: tuple[float, float] | None = None
    label_frequency: tuple[float, float] | None = None
    false_marks: bool | Prior = False
    audits: Any = None
    # Columns
    class_features: Columns | str | None = None
    selection_features: Columns | str | None = None
    exclude: Sequence[str] = ()
    missing: str = "error"
    standardize: bool = True
    # Priors
    penalty: str | Mapping[str, str] | None = None
    C: float | Mapping[str, float] | None = None
    priors: GivenPriors | None = None
    orientation: str = "sigma-norm"
    # The sampler
    draws: int = 1000
    tune: int = 1000
    chains: int = 4
    cores: int | None = None
    target_accept: float = 0.9
    sampler: str = "nutpie"
    random_seed: Any = None
    progressbar: bool = True

    def __post_init__(self) -> None:
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        own |= {name: _names_of_columns(own[name]) for name in OF_ROWS}
        own = {name: _plain(value) for name, value in own.items()}
        own["model"] = getattr(self.model, "name", self.model)
        own["random_seed"] = read_seed(self.random_seed)
        own["priors"] = own["priors"] or None
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def but(self, **news: Any) -> Self:
        """The same options with others that are not None."""
        return replace(self, **{k: v for k, v in news.items() if v is not None})

    @property
    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        own = {field: getattr(self, field.name) for field in fields(self)}
        return {field.name: value for field, value in own.items() if value != field.default}

    @property
    def of_columns(self) -> dict[str, Any]:
        """Those that decide how the columns are read, as `read_data` takes them."""
        return {name: getattr(self, name) for name in OF_COLUMNS}

    def request(self, spec: ModelSpec, data: PUData, priors: Priors) -> Request:
        """What these options ask of an engine, for a model, data and priors."""
        return Request(
            spec=spec,
            data=data,
            priors=priors,
            rule=self.orientation,
            nuts=NutsOptions(
                draws=self.draws,
                tune=self.tune,
                chains=self.chains,
                cores=self.cores,
                target_accept=self.target_accept,
                random_seed=self.random_seed,
                progressbar=self.progressbar,
            ),
            sampler=self.sampler,
        )

    def to_json(self) -> str:
        """The options as text, for saving."""
        return json.dumps(self.given, default=_as_json)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Inverse of `to_json`."""
        return cls(**json.loads(text, object_hook=_prior_or_mapping))


@dataclass(frozen=True)
class Provenance:
    """By what and when a fit was computed.

    Attributes
    ----------
    versions : mapping of str to str
        Versions of the libraries that shaped the numbers.
    created_at : str
    made_by : {"fit", "update", "from_trace"}
        What was called.
    sampler : str, optional
        The library that made the draws, where it was another one.
    seconds : float, optional
        How long that took.
    """

    versions: Mapping[str, str]
    created_at: str
    made_by: str = "fit"
    sampler: str | None = None
    seconds: float | None = None

    @classmethod
    def now(cls, options: FitOptions, seconds: float | None) -> Self:
        """Of a fit that has just been computed."""
        return cls(
            versions=dict(library_versions()),
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            sampler=None if seconds is None else options.sampler,
            seconds=seconds,
        )

    def to_json(self) -> str:
        """The same as text, for saving."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Inverse of `to_json`."""
        return cls(**json.loads(text))


@cache
def library_versions() -> dict[str, str]:
    """Versions of what shaped the numbers (reading them takes longer than a small fit)."""
    return {p: version(p) for p in VERSIONED}


def read_seed(random_seed: int | None) -> int:
    """The seed of a fit; one is made where none is given."""
    if random_seed is None:
        return secrets.randbits(31)
    whole = isinstance(random_seed, int | np.integer) and not isinstance(random_seed, bool)
    if not whole or not 0 <= random_seed < 2**63:
        raise ModelError(
            f"random_seed = {random_seed!r}; a whole number from 0 to 2**63 - 1, or None for one "
            "that is made and recorded, is expected."
        )
    return int(random_seed)


def _names_of_columns(value: Any) -> Any:
    """What is given by names of columns of X; None for values."""
    several = isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)
    return value if isinstance(value, str) or several else None


def _plain(value: Any) -> Any:
    """Numbers of NumPy as Python's and sequences as tuples: to compare, to write and to print."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple | np.ndarray | pd.Index):
        return tuple(_plain(v) for v in value)
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return value


def _as_json(value: Any) -> Any:
    """Priors as mappings and arrays as lists; of anything else what it is called."""
    if isinstance(value, Prior):
        return {PRIOR: value.to_dict()}
    if isinstance(value, Factor):
        return value.name
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else repr(value)


def _prior_or_mapping(value: dict[str, Any]) -> Any:
    if set(value) == {PRIOR} and isinstance(value[PRIOR], dict):
        return Prior.from_dict(value[PRIOR])
    return value
