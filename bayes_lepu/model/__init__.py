"""The models of the labelling: a table of names and propensities."""

from bayes_lepu.errors import ModelError
from bayes_lepu.factors import REGISTRY as PROPENSITIES
from bayes_lepu.factors import Factor, get_factor
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.suggestions import unknown

AUTO = "auto"  # held-out labels choose the model; accepted by `fit` only
# Name of the model, name of its propensity; from the simplest mechanism to the richest.
TABLE = {
    "naive": "one",
    "scar": "constant",
    "spm": "logistic",
    "psychm": "psychometric",
}
REGISTRY: dict[str, ModelSpec] = {
    name: ModelSpec(name, get_factor(propensity)) for name, propensity in TABLE.items()
}

__all__ = ["AUTO", "REGISTRY", "ModelSpec", "Parameters", "get_model", "list_models"]


def list_models() -> list[str]:
    """Names of the models, from the simplest labelling mechanism to the richest.

    Examples
    --------
    >>> list_models()
    ['naive', 'scar', 'spm', 'psychm']
    """
    return list(REGISTRY)


def get_model(model: str | Factor | ModelSpec, *, besides: tuple[str, ...] = ()) -> ModelSpec:
    """The model of this name, with the propensity of this name, or with the user's own propensity.

    ``besides`` are further names to list in the message about an unknown name.
    """
    if isinstance(model, ModelSpec):
        return model
    if isinstance(model, Factor):
        return ModelSpec(model.name, model)
    if isinstance(model, str) and model in PROPENSITIES and model not in REGISTRY:
        return ModelSpec(model, PROPENSITIES[model])
    if model == AUTO:
        raise ModelError(
            f"model={AUTO!r} chooses a model by the labels, which lepu.fit alone does. Name one "
            f"model here: {', '.join(REGISTRY)}. "
            "scikit-learn's searches can choose it: GridSearchCV(PUClassifier(), {'model': [...]})."
        )
    if not isinstance(model, str) or model not in REGISTRY:
        more = ", ".join(p for p in PROPENSITIES if p not in TABLE.values())
        raise ModelError(
            f"{unknown('model', model, (*REGISTRY, *besides))} Also the propensities {more}, or a "
            "Factor of your own."
        )
    return REGISTRY[model]
