"""Pictures of a fit, built on arviz_plots.

Every function takes a fit and returns an `arviz_plots.PlotCollection`; ``backend`` is
``"matplotlib"`` (default), ``"plotly"`` or ``"bokeh"`` as in ArviZ. Intervals have the probability
``stats.ci_prob`` of ArviZ. Save a picture with ``.savefig("s.png")``, show it with ``.show()``.
"""

from bayes_lepu.plots.pictures import (
    plot_class_probability,
    plot_groups,
    plot_label_rate,
    plot_orientation,
    plot_prior_posterior,
    plot_profile,
    plot_propensity,
    plot_ranking,
)

__all__ = [
    "plot_class_probability",
    "plot_groups",
    "plot_label_rate",
    "plot_orientation",
    "plot_prior_posterior",
    "plot_profile",
    "plot_propensity",
    "plot_ranking",
]
