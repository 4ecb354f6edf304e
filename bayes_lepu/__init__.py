"""Bayesian learning from positive and unlabelled data when the labelling is biased."""

from bayes_lepu import plots
from bayes_lepu._fit import fit
from bayes_lepu.actions.audits import AuditPlan, plan_audit, read_audit
from bayes_lepu.building import build_model, from_trace
from bayes_lepu.comparison import compare
from bayes_lepu.datasets import load_demo
from bayes_lepu.errors import (
    ConvergenceError,
    ConvergenceWarning,
    DataError,
    DataWarning,
    FileFormatError,
    IdentifiabilityWarning,
    LepuError,
    LepuWarning,
    ModelError,
)
from bayes_lepu.fitted import Fit, load
from bayes_lepu.model import list_models
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.priors.prior import Prior
from bayes_lepu.verdict.identifiability import diagnose

__all__ = [
    "AuditPlan",
    "ConvergenceError",
    "ConvergenceWarning",
    "DataError",
    "DataWarning",
    "FileFormatError",
    "Fit",
    "IdentifiabilityWarning",
    "LepuError",
    "LepuWarning",
    "ModelError",
    "Parameters",
    "Prior",
    "build_model",
    "compare",
    "diagnose",
    "fit",
    "from_trace",
    "list_models",
    "load",
    "load_demo",
    "plan_audit",
    "plots",
    "read_audit",
]


def __getattr__(name: str) -> str:
    if name == "__version__":  # read when asked for: the metadata take longer than a small fit
        from importlib.metadata import version

        return version("bayes-lepu")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
