"""The models of the labelling, one file each, and their registry."""

from bayes_lepu.errors import ModelError
from bayes_lepu.models import naive, psychm, scar, spm
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.suggestions import unknown

REGISTRY: dict[str, ModelSpec] = {m.SPEC.name: m.SPEC for m in (naive, scar, spm, psychm)}

__all__ = ["REGISTRY", "ModelSpec", "Parameters", "get_model", "list_models"]


def list_models() -> list[str]:
    """Names of the models, from the simplest labelling mechanism to the richest.

    Examples
    --------
    >>> list_models()
    ['naive', 'scar', 'spm', 'psychm']
    """
    return list(REGISTRY)


def get_model(name: str) -> ModelSpec:
    """The model of this name."""
    if name not in REGISTRY:
        raise ModelError(unknown("model", name, REGISTRY))
    return REGISTRY[name]
