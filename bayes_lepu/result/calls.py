"""The call that gives a fit again, as lines of Python."""

from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.factors import CURVES
from bayes_lepu.factors import REGISTRY as PROPENSITIES
from bayes_lepu.models import REGISTRY
from bayes_lepu.priors.prior import GivenPriors

if TYPE_CHECKING:
    from bayes_lepu.result.fitted_model import FittedModel

HEAD = "import bayes_lepu as lepu\nfrom bayes_lepu import Prior\n\n"
# Priors stand for penalties, and how a fit is computed says nothing about its answer.
NOT_PRINTED = {"model", "l", "priors", "penalty", "C", "cores", "progressbar"}
OF_A_SAMPLER = {"method", "draws", "tune", "chains", "sampler"}  # draws of a trace are there


def call_text(fit: "FittedModel", priors: GivenPriors | None, name: str = "fit") -> str:
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


def _model(fit: "FittedModel") -> str:
    """The model's name where the library knows it."""
    known = {**REGISTRY, **PROPENSITIES}
    return repr(fit.options.model) if fit.options.model in known else "model"


def _rows(fit: "FittedModel") -> list[str]:
    """What is handed over with a value for every row."""
    data, options = fit.data, fit.options
    values = {
        "y=y": options.y is None and (options.audits or not np.isnan(data.y).all()),
        "sample_weight=w": options.sample_weight is None and data.weight.size,
        "visits=visits": bool(data.visit_names),
    }
    labels = "l" if options.l is None else repr(options.l)
    return ["X", labels, *(name for name, given in values.items() if given)]
