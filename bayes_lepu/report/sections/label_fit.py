"""Does the model reproduce the labels."""

from functools import partial

from bayes_lepu.plots.annotator import top_features
from bayes_lepu.plots.label_rates import plot_calibration, plot_label_rate
from bayes_lepu.report.figures import picture
from bayes_lepu.report.page import Page
from bayes_lepu.report.section import Section

COLUMNS = 3


def labels_section(page: Page) -> Section:
    """Label rates by score and by column, and calibration."""
    fit = page.fit
    pictures = [
        picture("Label rate by score", "", partial(plot_label_rate, fit)),
        picture(
            "Calibration of h",
            "Green within the grey band: a predicted label probability can be taken at its word.",
            partial(plot_calibration, fit),
        ),
    ]
    plain = [n for n, places in fit.data.terms.items() if len(places) == 1]
    ranked = [n for n in top_features(fit, len(fit.data.terms)) if n in plain][:COLUMNS]
    for name in page.group_by or ranked:
        plot = partial(plot_label_rate, fit, by=name)
        pictures.append(picture(f"Label rate by {name}", "", plot))
    return Section(
        "labels",
        "Does the model reproduce the labels?",
        "Only the labels can be checked against the data; a good fit of h does not by itself "
        "say that its two factors are right.",
        reading="Green dots inside the grey bars: groups of rows carry as many labels as "
        "predicted. A run of dots on one side of their bars means that a column acts otherwise "
        "than a straight line in the log-odds.",
        pictures=tuple(pictures),
    )
