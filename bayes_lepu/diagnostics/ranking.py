"""Whether the order of the rows by t is determined."""

from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.diagnostics import thresholds
from bayes_lepu.diagnostics.records import Aspect, Check, not_computed
from bayes_lepu.diagnostics.subject import Subject
from bayes_lepu.diagnostics.thresholds import graded
from bayes_lepu.inference.laplace import gaussian_near

if TYPE_CHECKING:
    from bayes_lepu.diagnostics.evidence import Evidence

FEWER = "Use fewer columns, or audit some unlabelled rows (y=)."
FEWER_SPARSE = (
    "Judge the columns that matter as a dense table: fit with penalty='l1', then keep = "
    "np.flatnonzero(fit.draws.a[0]) and lepu.fit(X[:, keep].toarray(), l, ...); or audit some "
    "unlabelled rows (y=)."
)


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
