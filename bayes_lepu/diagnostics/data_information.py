r"""How much the data know, direction by direction, in units of what the prior knows.

With J the expected information of the data and P the prior precision, the eigenvalues ρ of

.. math:: P^{-1/2} J P^{-1/2}

are free of the scale of the columns: ρ < 1 marks a direction that the prior decides. The worst one
is named in words, usually "level of t against level of s".
"""

from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.diagnostics import thresholds
from bayes_lepu.diagnostics.curvature import Local
from bayes_lepu.diagnostics.records import Aspect, Check, not_computed
from bayes_lepu.diagnostics.subject import Subject
from bayes_lepu.diagnostics.thresholds import graded
from bayes_lepu.inference.laplace import gaussian_near
from bayes_lepu.likelihood.factoring import solve
from bayes_lepu.links import Array
from bayes_lepu.models.transforms import plain_name
from bayes_lepu.priors.prior import INTERCEPTS

if TYPE_CHECKING:
    from bayes_lepu.diagnostics.evidence import Evidence

NAMED_SHARE = 0.8
FEWER = "Use fewer columns, or audit some unlabelled rows (y=)."
FEWER_SPARSE = (
    "Judge the columns that matter as a dense table: fit with penalty='l1', then keep = "
    "np.flatnonzero(fit.draws.a[0]) and lepu.fit(X[:, keep].toarray(), l, ...); or audit some "
    "unlabelled rows (y=)."
)
LARGEST = 1e140  # entries of an information matrix beyond it are beyond any use


def spectrum(local: Local) -> tuple[Array, Array]:
    """Eigenvalues ρ (rising) and unit directions in the coordinates, one per column."""
    values, vectors = np.linalg.eigh(_bounded(local.prior))
    root = vectors / np.sqrt(np.maximum(values, 1e-12))
    rho, inner = np.linalg.eigh(root.T @ _bounded(local.data) @ root)
    directions = root @ inner
    return np.maximum(rho, 0.0), directions / np.linalg.norm(directions, axis=0)


def _bounded(matrix: Array) -> Array:
    """The matrix with entries that eigenvalues can be computed from."""
    return np.clip(np.nan_to_num(matrix), -LARGEST, LARGEST)


def name_direction(direction: Array, names: list[str]) -> str:
    """A direction in words: its largest loadings, those of opposite sign set against each other."""
    names = [
        name[4:].split("/")[0] if name.startswith("log(") else plain_name(name) for name in names
    ]
    loud = np.argsort(-np.abs(direction))
    share = np.cumsum(direction[loud] ** 2) / np.sum(direction**2)
    chosen = loud[: min(4, int(np.searchsorted(share, NAMED_SHARE)) + 1)]
    side = np.sign(direction)
    first = [names[i] for i in chosen if side[i] == side[chosen[0]]]
    second = [names[i] for i in chosen if side[i] != side[chosen[0]]]
    words = " and ".join(first) + (" against " + " and ".join(second) if second else "")
    if {names[i] for i in chosen} == set(INTERCEPTS):
        return f"{words} (level of t against level of s)" if second else f"{words} (both levels)"
    return words


def prior_share(local: Local) -> float:
    """Share of π's precision that comes from the prior, by the delta method."""
    v = solve(local.data + local.prior, local.pi_gradient)
    total = float(local.pi_gradient @ v)
    return float(v @ local.prior @ v) / max(total, 1e-300)


NOT_COMPUTED = not_computed("information")


def check_information(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Data information against prior precision, and what is left of it for π."""
    local = subject.local
    rho, directions = spectrum(local)
    worst = name_direction(directions[:, 0], local.names)
    dominated = int(np.sum(rho < 1))
    whose = "the default weak prior" if subject.fit.is_point else "the prior"
    text = (
        f"For the worst-known combination of parameters, {worst}, the data carry {rho[0]:.2g} "
        f"times the information of {whose}, which decides {dominated} of {rho.size} combinations."
    )
    share = prior_share(local)
    bounds = (0.1, 0.5)
    return [
        graded(
            "information",
            float(rho[0]),
            thresholds.INFORMATION,
            text,
            f"Nothing about {worst} can be read from the estimate.",
            remedy_from="failed",
        ),
        graded(
            "prior share of pi",
            share,
            bounds,
            f"{share:.0%} of what is known about π comes from {whose}, the rest from the data.",
            bears_on=(Aspect.LEVEL, Aspect.PRIOR),
        ),
    ]


def check_shape(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Steepness of the factors, and the angle between them."""
    fit = subject.fit
    if not fit.spec.has_selection:
        return []
    norm_a, norm_alpha, cosine = norms_and_cosine(subject)
    steep = max(norm_a, norm_alpha)
    angle = abs(cosine)
    opposite = "opposite" if cosine < 0 else "the same"
    return [
        graded(
            "steepness",
            steep,
            thresholds.STEEPNESS,
            f"The predictors of t and s have sd {norm_a:.2f} and {norm_alpha:.2f} over the data; "
            "the split of h into levels is read from the saturation of the steeper one.",
        ),
        graded(
            "angle",
            angle,
            thresholds.COSINE,
            f"a and α point in {opposite} direction with |cosine| {angle:.2f}.",
            "Nearly parallel factors cannot be told apart: name a column that enters only one of "
            "them (selection_features= or class_features=).",
            remedy_from="failed",
        ),
    ]


def norms_and_cosine(subject: Subject) -> tuple[float, float, float]:
    """The sd of both linear predictors over the data, and their correlation."""
    X, point = subject.data.X, subject.point
    both = np.cov(point.tau(X), point.omega(X), ddof=0, aweights=subject.data.row_weights)
    sd_t, sd_s = np.sqrt(np.diag(both)).tolist()
    if min(sd_t, sd_s) < 1e-12:
        return sd_t, sd_s, 0.0
    return sd_t, sd_s, float(both[0, 1]) / (sd_t * sd_s)


def check_ranking(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Whether the order of the rows by t is determined: the direction of a in the data metric."""
    if subject.too_large:
        return [
            not_computed(
                "ranking by t",
                subject.too_large,
                FEWER_SPARSE if subject.data.is_sparse else FEWER,
                bears_on=(Aspect.RANKING,),
                needs="weak",
                consequence=f"with {subject.size} the curvature, the profile of π, other forms and "
                "rivals were not computed, so that nothing shows how far the labels split h",
            )
        ]
    figure = ranking_stability(subject)
    return [
        graded(
            "ranking by t",
            figure,
            thresholds.RANKING,
            f"Rankings of the rows by t agree with their mean to a correlation of {figure:.3f}.",
            "Rank by h(x) (label_probability) instead, or bring more rows.",
            remedy_from="failed",
            bears_on=(Aspect.RANKING,),
            needs="weak",
            consequence="not even the ranking by t is determined by these data",
        )
    ]


def ranking_stability(subject: Subject) -> float:
    """Mean correlation of a·x over the data between draws of a and their mean."""
    covariance = np.cov(subject.data.X, rowvar=False, ddof=0, aweights=subject.data.row_weights)
    covariance = np.atleast_2d(covariance)
    if subject.fit.is_point:
        rng, density = np.random.default_rng(0), subject.fit.density
        # Information that several annotators' labels would have with known classes is too much.
        near = gaussian_near(density, density.pack(subject.point)) if subject.several else None
        z = (subject.local if near is None else near).sample(rng, 500)
        draws = np.zeros((500, subject.data.p))
        draws[:, subject.data.class_mask] = z[:, density.blocks.a]
        center = subject.point.a
    else:
        draws = subject.pivoted.take_flat().a
        center = draws.mean(axis=0)
    cross = draws @ covariance @ center
    sizes = np.einsum("ij,jk,ik->i", draws, covariance, draws) * (center @ covariance @ center)
    return float(np.mean(cross / np.sqrt(np.maximum(sizes, 1e-300))))
