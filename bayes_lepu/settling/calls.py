"""The call that gives a fit again: its options, and the same as lines of Python."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.result import FittedModel

SAMPLING = ("tune", "target_accept", "sampler", "sampler_options")


def options_of(fit: FittedModel) -> dict[str, Any]:
    """Options of `fit` that differ from its defaults, without rows, columns and priors."""
    settings = fit.settings
    options: dict[str, Any] = {"model": fit.spec.name, "method": fit.method}
    usual = {"audits": None, "standardize": True, "orientation": "sigma-norm"}
    usual |= {"sampling": "joint"}
    usual |= {"n_starts": None, "optimizer": "auto"}
    options |= {k: settings[k] for k, default in usual.items() if settings.get(k) != default}
    if fit.spec.false_marks:
        options["false_marks"] = True
    known = ("class_prior", "label_frequency")
    for name, (value, error) in zip(known, fit.data.outside, strict=True):
        if not np.isnan(value):
            options[name] = (float(value), float(error))
    if not fit.is_point:
        chains, draws = fit.parameters.b.shape
        options |= {"draws": int(draws), "chains": int(chains)}
    options |= {k: settings[k] for k in SAMPLING if k in settings}
    return options | {"random_seed": settings["random_seed"]}


def call_text(fit: FittedModel) -> str:
    """Lines of Python that fit the same rows again and write the report.

    Priors are written out, so that the call does not depend on what a release has as defaults.
    """
    data, options = fit.data, options_of(fit)
    for option, mask in (
        ("class_features", data.class_mask),
        ("selection_features", data.selection_mask),
    ):
        if not mask[: data.given_width].all():
            options[option] = _columns(fit, mask)
    encoding = data.encoding
    for option in ("missing", "unseen"):
        if getattr(encoding, option) != "error":
            options[option] = getattr(encoding, option)
    priors = ",\n".join(f"    {name!r}: {prior!r}" for name, prior in fit.priors.items())
    rows = "X, l, y=y" if not np.isnan(data.y).all() else "X, l"
    rows += ", sample_weight=w" if data.weight.size else ""
    rows += ", visits=visits" if data.visit_names else ""
    words = ",\n    ".join(f"{k}={v!r}" for k, v in options.items())
    return (
        "import bayes_lepu as lepu\n"
        "from bayes_lepu import Prior\n\n"
        f"priors = {{\n{priors},\n}}\n"
        f"fit = lepu.fit(\n    {rows},\n    {words},\n    priors=priors,\n)\n"
        'fit.report("report.html")'
    )


def _columns(fit: FittedModel, mask: NDArray[np.bool_]) -> list[str | int]:
    """The columns of a mask as the user names them; positions where they have no names."""
    if not fit.data.named:
        return [int(j) for j in np.flatnonzero(mask)]
    return [name for name, places in fit.data.terms.items() if mask[list(places)].any()]
