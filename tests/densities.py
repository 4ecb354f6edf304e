"""Small data and densities of every model, with every option, shared by several tests."""

import itertools
import re
from dataclasses import replace

import numpy as np

from bayes_lepu import Prior
from bayes_lepu.data.reading import read_data
from bayes_lepu.model import REGISTRY
from bayes_lepu.model.density import LogDensity
from bayes_lepu.priors.prior import weak_priors


def make_data(*, masks=False, audited=False, n=40, naive=False, scale=1.0):
    rng = np.random.default_rng(5)
    X = scale * rng.normal(size=(n, 3))
    l = (np.arange(n) % 3 == 0).astype(int)
    y = np.full(n, np.nan)
    if audited:
        y[[0, 2, 5, 7]] = [1, 0, 0, 0] if naive else [1, 0, 1, 1]
    keep = {"class_features": [0, 1], "selection_features": [1, 2]} if masks else {}
    return read_data(X, l, y=y, standardize=False, **keep)


def make_density(model, *, priors=None, jacobian=True, **options):
    marks = model == "false_marks"
    data = make_data(naive=model == "naive", **options)
    spec = replace(REGISTRY["spm"], false_marks=True) if marks else REGISTRY[model]
    base = weak_priors(int(data.class_mask.sum()), int(data.selection_mask.sum()))
    own = {
        "c": Prior("beta", concentration=(2, 3)),
        "rates": Prior("dirichlet", concentration=(1.5, 2, 5)),
        "epsilon": Prior("beta", concentration=(1, 99)),
    }
    chosen = {**base, **own, **(priors or {})}
    return LogDensity(spec, data, {n: chosen[n] for n in spec.parameters}, jacobian=jacobian)


HIERARCHICAL = {
    "a": Prior("normal", scale=Prior("halfnormal", scale=2.0)),
    "alpha": Prior("normal", scale=Prior("halfnormal", scale=0.7)),
}
# The first column has a known scale; the other two share an unknown one.
SHARED = Prior("normal", scale=Prior("halfnormal", scale=0.7), loc=0.2, block="1 | g")
BLOCKS = {
    name: Prior("columns", parts=(Prior("normal", scale=scale), SHARED, SHARED))
    for name, scale in (("a", 2.0), ("alpha", 1.0))
}
LAPLACE = {"a": Prior("laplace", scale=0.5), "alpha": Prior("laplace", scale=1.5, loc=0.3)}
# Tails and signs, in columns of their own and in a whole block.
MIXED = {
    "a": Prior(
        "columns",
        parts=(
            Prior("student-t", scale=0.7, loc=0.3, nu=4),
            Prior("positive", scale=1.5),
            Prior("laplace", scale=0.4),
        ),
    ),
    "b": Prior("student-t", scale=1.2, nu=2),
    "alpha": Prior("negative", scale=0.8),
}
VARIANTS = {
    "plain": {},
    "masks": {"masks": True},
    "audited": {"audited": True},
    "both": {"masks": True, "audited": True},
    "laplace": {"priors": LAPLACE},
    "hierarchical": {"priors": HIERARCHICAL, "masks": True},
    "blocks": {"priors": BLOCKS},
    "one scale": {"priors": {"alpha": HIERARCHICAL["alpha"]}},
    "mixed": {"priors": MIXED},
    "located": {"priors": {"a": Prior("normal", scale=0.8, loc=-1.0), "b": Prior("flat")}},
    "no jacobian": {"jacobian": False},
}


def rows_by_hand(point, X, kind):
    """Log-likelihood of every row of one annotator given its kind, from the probabilities."""
    t, s = point.t(X), point.s(X)
    return np.log(np.choose(kind, [1 - s * t, s * t, (1 - s) * t, 1 - t]))


def constant(density):
    """What the density leaves out of the normalised priors."""
    total = 0.0
    for block in density.layout.blocks:
        parts = block.prior.parts or (block.prior,) * (1 if block.is_simplex else block.size)
        total += sum(part.log_normalizer() for part in parts)
    return total


def extreme_points(density, rng, distances=(38.0, 120.0, 301.0, 750.0)):
    """Levels of t and s far from 0 in every combination; from 37 on, the sigmoid rounds to 1."""
    for far in distances:
        for signs in itertools.product([-1, 1], repeat=2):
            z = rng.normal(size=density.dim)
            z[density.blocks.b], z[density.blocks.beta] = far * np.array(signs)
            yield z


def block_of(value_name):
    """The block that a value variable of PyMC belongs to."""
    return re.sub("_(log|logodds|simplex)__$", "", value_name)


def graph_gaps(density, points, graph=None):
    """PyMC's log density minus ours with its constants, at coordinates of ours."""
    graph = graph or density.spec.build(density.data, density.priors)
    logp, gaps = graph.compile_logp(mode="FAST_COMPILE"), []
    for z in points:
        point, log_volume = {}, 0.0
        for name, value in graph.initial_point().items():
            x = z[density.layout.slices[block_of(name)]]
            if name.endswith("_simplex__"):
                # PyMC's own coordinates of a simplex: logarithms minus their mean, but the last.
                logs, log_volume = np.append(x, 0.0), np.log(3.0)
                x = (logs - logs.mean())[:-1]
            point[name] = x.reshape(np.shape(value))
        gaps.append(float(logp(point)) - log_volume - density.logp(z) - constant(density))
    return np.array(gaps)
