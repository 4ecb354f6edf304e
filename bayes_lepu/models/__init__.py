"""The models of the labelling: a table of names and propensities."""

from bayes_lepu.errors import ModelError
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.propensities import REGISTRY as PROPENSITIES
from bayes_lepu.propensities import Propensity, get_propensity
from bayes_lepu.suggestions import unknown

# Name of the model, name of its propensity; from the simplest mechanism to the richest.
TABLE = {
    "naive": "one",
    "scar": "constant",
    "spm": "logistic",
    "psychm": "psychometric",
}
REGISTRY: dict[str, ModelSpec] = {
    name: ModelSpec(name, get_propensity(propensity)) for name, propensity in TABLE.items()
}

__all__ = ["REGISTRY", "ModelSpec", "Parameters", "get_model", "list_models"]


def list_models() -> list[str]:
    """Names of the models, from the simplest labelling mechanism to the richest.

    Examples
    --------
    >>> list_models()
    ['naive', 'scar', 'spm', 'psychm']
    """
    return list(REGISTRY)


def get_model(model: str | Propensity | ModelSpec) -> ModelSpec:
    """The model of this name, of this propensity's name, or of a propensity of one's own."""
    if isinstance(model, ModelSpec):
        return model
    if isinstance(model, Propensity):
        return ModelSpec(model.name, model)
    if isinstance(model, str) and model in PROPENSITIES and model not in REGISTRY:
        return ModelSpec(model, PROPENSITIES[model])
    if not isinstance(model, str) or model not in REGISTRY:
        more = ", ".join(p for p in PROPENSITIES if p not in TABLE.values())
        raise ModelError(
            f"{unknown('model', model, REGISTRY)} Also the propensities {more}, or a Propensity of "
            "your own."
        )
    return REGISTRY[model]
