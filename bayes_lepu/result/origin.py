"""Where a fit comes from: what computed it when, and the call that computes it again."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Self

import numpy as np

from bayes_lepu.factors import CURVES
from bayes_lepu.factors import REGISTRY as PROPENSITIES
from bayes_lepu.model import REGISTRY
from bayes_lepu.options import FitOptions

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

VERSIONED = ("bayes-lepu", "numpy", "numba", "scipy", "pandas", "pymc", "nutpie")


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


# Priors stand for penalties, and how a fit is computed says nothing about its answer.
NOT_PRINTED = {"model", "l", "priors", "penalty", "C", "cores", "progressbar"}
OF_A_SAMPLER = {"method", "draws", "tune", "chains", "sampler"}  # draws of a trace are there


def call_text(fit: "Fit") -> str:
    """Lines of Python that fit the same rows again, with these priors, as the variable ``fit``.

    Rows are the variables ``X``, ``l``, ``y``, ``w`` (weights) and ``visits``, as they were handed
    over; those that are columns of X go by their names. Factors of one's own are ``model`` and
    ``class_link``.
    """
    data, options, traced = fit.data, fit.options, fit.provenance.made_by == "from_trace"
    known = {**REGISTRY, **PROPENSITIES}
    model = repr(options.model) if options.model in known else "model"
    words = {"model": model, "method": repr(options.method)}
    words |= {k: repr(v) for k, v in options.given.items() if k not in NOT_PRINTED}
    if options.audits == "planned":  # what a plan adds are probabilities, not the posterior
        del words["audits"]
    if options.class_link is not None and options.class_link not in CURVES:
        words["class_link"] = "class_link"
    if traced:
        words = {k: v for k, v in words.items() if k not in OF_A_SAMPLER}
    audited = options.y is None and (options.audits or not np.isnan(data.y).all())
    rows = {
        "trace": traced,
        "X": True,
        "l" if options.l is None else repr(options.l): True,
        "y=y": audited,
        "sample_weight=w": options.sample_weight is None and data.weighted,
        "visits=visits": bool(data.visit_names),
    }
    priors = ",\n".join(f"    {name!r}: {prior!r}" for name, prior in fit.priors.items())
    words["priors"] = "priors"
    given = [", ".join(name for name, there in rows.items() if there)]
    arguments = ",\n    ".join([*given, *(f"{k}={v}" for k, v in words.items())])
    return (
        "import bayes_lepu as lepu\nfrom bayes_lepu import Prior\n\n"
        f"priors = {{\n{priors},\n}}\n"
        f"fit = lepu.{'from_trace' if traced else 'fit'}(\n    {arguments},\n)\n"
    )
