"""Which factor is the classifier and how high it lies: sizes and the profile of π."""

from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.errors import ModelError
from bayes_lepu.model.parameters import sigma_norm
from bayes_lepu.plots.panels import CLASS, DRAWS, GUIDE, PROPENSITY, Panels, share_range
from bayes_lepu.verdict.peaks import Role
from bayes_lepu.verdict.records import LIKELIHOOD_DROP

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

    from bayes_lepu.fitted import Fit

LOWEST_PROFILE = 6.5


def plot_orientation(
    fit: "Fit",
    *,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
) -> "PlotCollection":
    """Sizes of t and s, as sd of their linear predictors, one dot per draw.

    Below the diagonal t is the steeper factor, which is what the paper assumes; a cloud across
    the diagonal means that the naming of the factors is not settled by this rule. Larger dots
    are the modes found by the search.

    Returns
    -------
    PlotCollection
        One panel.
    """
    if not fit.spec.has_selection:
        raise ModelError(f"In {fit.spec.name} s does not depend on x: there is one factor only.")
    panels = Panels.of(["orientation"], plot_collection=plot_collection, backend=backend)
    draws = fit.draws.thin(DRAWS).average()
    t, s = (sigma_norm(slope, fit.data.X) for slope in (draws.a, draws.alpha))
    best = fit.modes[0]
    top = 1.1 * max(float(np.max(t)), float(np.max(s)), best.norm_a, best.norm_alpha)
    panels.line(0, np.array([0, top]), np.array([0, top]), GUIDE, dashed=True, width=1.0)
    panels.dots(0, t, s, CLASS, size=5)
    panels.dots(0, np.array([best.norm_a]), np.array([best.norm_alpha]), PROPENSITY, size=50)
    panels.limits(0, x=(0.0, top), y=(0.0, top))
    panels.labels(0, x="size of t: sd of a·x + b", y="size of s: sd of α·x + β")
    return panels.collection


def plot_profile(
    fit: "Fit",
    *,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
) -> "PlotCollection":
    """Log likelihood of the class prior π, everything else at its best, below its maximum.

    Above the dashed line (1.92) lies what the likelihood alone cannot exclude; a flat top means
    that the level of t comes from elsewhere. Grey: the same with the factors exchanged.

    Returns
    -------
    PlotCollection
        One panel.
    """
    evidence = fit.identifiability.evidence
    if evidence is None or evidence.profile is None:
        raise ModelError("The profile of this fit was not computed: it has too many coordinates.")
    panels = Panels.of(["profile"], plot_collection=plot_collection, backend=backend)
    for _, curve in evidence.profile.table.groupby("curve", sort=False):
        color = GUIDE if curve["branch"].iloc[0] == Role.EXCHANGED else CLASS
        panels.line(0, curve["pi"].to_numpy(), curve["delta"].to_numpy(), color)
    level = np.full(2, -LIKELIHOOD_DROP)
    table = evidence.profile.table
    shown = table.loc[table["delta"] >= -LOWEST_PROFILE, "pi"].to_numpy()
    panels.line(0, np.array([0.0, 1.0]), level, GUIDE, dashed=True, width=1.0)
    panels.limits(0, x=share_range(shown), y=(-LOWEST_PROFILE, 0.4))
    panels.labels(0, x="class prior π", y="log likelihood below the best")
    return panels.collection
