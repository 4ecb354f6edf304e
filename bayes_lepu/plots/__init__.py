"""Pictures of a fit, built on arviz_plots.

Every function takes a fit, draws on the panels of a given ``plot_collection`` or of a new one, and
returns the `arviz_plots.PlotCollection`; ``backend`` is ``"matplotlib"`` (default), ``"plotly"``
or ``"bokeh"`` as in ArviZ. Save a picture with ``.savefig("s.png")``, show it with ``.show()``.
"""

from bayes_lepu.plots.annotator import plot_propensity, plot_sensitivity
from bayes_lepu.plots.answer import (
    plot_class_probability,
    plot_groups,
    plot_prior_posterior,
    plot_ranking,
)
from bayes_lepu.plots.checks import plot_label_rate, plot_orientation, plot_profile

__all__ = [
    "plot_class_probability",
    "plot_groups",
    "plot_label_rate",
    "plot_orientation",
    "plot_prior_posterior",
    "plot_profile",
    "plot_propensity",
    "plot_ranking",
    "plot_sensitivity",
]
