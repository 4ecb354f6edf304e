"""A prior for every column: one of another family for each entry of a block of slopes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, override

import numpy as np

from bayes_lepu.links import Array
from bayes_lepu.priors.families import Family, Parabola, register

if TYPE_CHECKING:
    from bayes_lepu.priors.prior import Prior


class Columns(Family):
    """``parts`` holds a prior for each entry along the last axis."""

    name = "columns"
    takes = ("parts",)

    @override
    def logpdf(self, prior: "Prior", x: Array) -> Array:
        return _each(prior, lambda part, j: part.form.logpdf(part, x[..., j]))

    @override
    def grad(self, prior: "Prior", x: Array) -> Array:
        return _each(prior, lambda part, j: part.form.grad(part, x[..., j]))

    @override
    def curvature(self, prior: "Prior", x: Array) -> Array:
        return _each(prior, lambda part, j: part.form.curvature(part, x[..., j]))

    def log_normalizer(self, prior: "Prior") -> float:
        """The mean over the parts: times their number it is that of all entries."""
        return float(np.mean([part.form.log_normalizer(part) for part in prior.parts]))

    def sample(self, prior: "Prior", rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Independent draws, ``size`` with the entries along its last axis."""
        return _each(prior, lambda part, _: part.sample(rng, size[:-1]))

    def variable(self, prior: "Prior", name: str, dims: Any, scale: Any) -> Any:
        """One PyMC variable whose entries have the densities of the parts."""
        import pymc as pm
        import pytensor.tensor as pt

        if len(set(prior.parts)) == 1:
            return prior.parts[0].variable(name, dims=dims)
        families = {part.family for part in prior.parts}
        if families in ({"normal"}, {"halfnormal"}):  # a vector of them, as one would write it
            first, scales = prior.parts[0], np.array([part.known_scale for part in prior.parts])
            centres = np.array([part.loc for part in prior.parts])
            if first.family == "halfnormal":
                return pm.HalfNormal(name, scales, dims=dims)
            return pm.Normal(name, centres, scales, dims=dims)

        def logp(value: Any, _: Any) -> Any:
            with pm.Model(model=None):  # only their densities are wanted, not the variables
                parts = [part.variable(f"part {j}") for j, part in enumerate(prior.parts)]
            return pt.stack([pm.logp(part, value[j]) for j, part in enumerate(parts)])

        def draw(_: Any, rng: Any = None, size: Any = None) -> Any:
            return self.sample(prior, rng, (*(size or ())[:-1], len(prior.parts)))

        places = np.arange(len(prior.parts))
        return pm.CustomDist(name, places, logp=logp, random=draw, dims=dims, signature="()->()")

    def parabola(self, prior: "Prior") -> Parabola | None:
        """Those of the parts, where all of them are parabolas."""
        found = [part.form.parabola(part) for part in prior.parts]
        if any(form is None for form in found):
            return None
        return Parabola(*np.array(found, dtype=float).T)


def _each(prior: "Prior", function: Callable[["Prior", int], Array]) -> Array:
    return np.stack([function(part, j) for j, part in enumerate(prior.parts)], axis=-1)


register(Columns())
