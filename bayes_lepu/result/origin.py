"""Where a fit comes from: the options of its call, what computed it when, and the call as text."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines.engines import Request
from bayes_lepu.engines.nuts import NutsOptions
from bayes_lepu.errors import ModelError
from bayes_lepu.factors import CURVES, Factor
from bayes_lepu.factors import REGISTRY as PROPENSITIES
from bayes_lepu.model import REGISTRY
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import GivenPriors, Prior, Priors

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

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


HEAD = "import bayes_lepu as lepu\nfrom bayes_lepu import Prior\n\n"
# Priors stand for penalties, and how a fit is computed says nothing about its answer.
NOT_PRINTED = {"model", "l", "priors", "penalty", "C", "cores", "progressbar"}
OF_A_SAMPLER = {"method", "draws", "tune", "chains", "sampler"}  # draws of a trace are there


def call_text(fit: "Fit", priors: GivenPriors | None, name: str = "fit") -> str:
    """Lines of Python that fit the same rows again, with these priors, as a variable.

    Rows are the variables ``X``, ``l``, ``y``, ``w`` (weights) and ``visits``, as they were handed
    over; those that are columns of X go by their names. Factors of one's own are ``model`` and
    ``class_link``.
    """
    options, elsewhere = fit.options, fit.provenance.made_by == "from_trace"
    words = {"model": _model(fit), "method": repr(options.method)}
    words |= {k: repr(v) for k, v in options.given.items() if k not in NOT_PRINTED}
    if options.audits == "planned":  # what a plan adds are probabilities, not the posterior
        del words["audits"]
    if options.class_link is not None and options.class_link not in CURVES:
        words["class_link"] = "class_link"
    if elsewhere:
        words = {k: v for k, v in words.items() if k not in OF_A_SAMPLER}
    lines = ""
    if priors:
        each = ",\n".join(f"    {parameter!r}: {prior!r}" for parameter, prior in priors.items())
        lines, words["priors"] = f"priors = {{\n{each},\n}}\n", "priors"
    rows = [*(["trace"] if elsewhere else []), *_rows(fit)]
    arguments = [", ".join(rows), *(f"{k}={v}" for k, v in words.items())]
    function = "from_trace" if elsewhere else "fit"
    return f"{lines}{name} = lepu.{function}(\n    " + ",\n    ".join(arguments) + ",\n)\n"


def _model(fit: "Fit") -> str:
    """The model's name where the library knows it."""
    known = {**REGISTRY, **PROPENSITIES}
    return repr(fit.options.model) if fit.options.model in known else "model"


def _rows(fit: "Fit") -> list[str]:
    """What is handed over with a value for every row."""
    data, options = fit.data, fit.options
    values = {
        "y=y": options.y is None and (options.audits or not np.isnan(data.y).all()),
        "sample_weight=w": options.sample_weight is None and data.weight.size,
        "visits=visits": bool(data.visit_names),
    }
    labels = "l" if options.l is None else repr(options.l)
    return ["X", labels, *(name for name, given in values.items() if given)]
