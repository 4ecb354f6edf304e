"""What the checks computed, kept: plots and report read it and compute nothing again."""

from dataclasses import dataclass, replace

import pandas as pd

from bayes_lepu.choosing import Choice
from bayes_lepu.diagnostics.agreement import Agreement, agreement_of
from bayes_lepu.diagnostics.bend import Bend, measure_bend
from bayes_lepu.diagnostics.columns import ColumnScores, score_columns
from bayes_lepu.diagnostics.figures import table_of_figures
from bayes_lepu.diagnostics.forms import FormRange, form_range
from bayes_lepu.diagnostics.label_checks import (
    LabelCalibration,
    calibrate_labels,
    form_scores,
    label_rates,
    scores,
)
from bayes_lepu.diagnostics.profile import Profile, trace_profile
from bayes_lepu.diagnostics.records import Remedy
from bayes_lepu.diagnostics.remedies import weigh_remedies
from bayes_lepu.diagnostics.rivals import Rival, compare_rivals
from bayes_lepu.diagnostics.several_annotators import panel_range
from bayes_lepu.diagnostics.subject import Peak, Subject
from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything the verdict rests on; None or empty is what was not computed for this fit.

    Attributes
    ----------
    label_rates : DataFrame
        Observed and expected label rate by bin of the score h.
    calibration : LabelCalibration
        Calibrated label rate over the score h, with the band of labels simulated from h.
    bend : Bend
        A straight against a learned class.
    form_rates, form_calibration : DataFrame, LabelCalibration
        The same for the h that the model's form can reach: a point estimate freed of its
        penalties; of draws, the two above.
    prior : Parameters
        Draws of the prior, with their class priors ``prior_pi`` and label frequencies ``prior_c``;
        not for a point estimate.
    peaks : tuple of Peak
        Maxima of the likelihood under a weak ridge: as labelled first, then exchanged and others.
    profile : Profile
        Log likelihood of the class prior, everything else at its best.
    rivals : tuple of Rival
        How well this model (first) and others predict the labels.
    columns : ColumnScores
        Whether the columns act in straight lines.
    forms : FormRange
        The class prior over other forms that predict the labels as well.
    agreement : Agreement
        How often several annotators agree, observed and expected.
    remedies : tuple of Remedy
        What more information would change.
    figures : DataFrame
        Figures that decide nothing: value and meaning of each.
    """

    label_rates: pd.DataFrame
    calibration: LabelCalibration
    bend: Bend | None = None
    form_rates: pd.DataFrame | None = None
    form_calibration: LabelCalibration | None = None
    prior: Parameters | None = None
    prior_pi: Array | None = None
    prior_c: Array | None = None
    peaks: tuple[Peak, ...] = ()
    profile: Profile | None = None
    rivals: tuple[Rival, ...] = ()
    columns: ColumnScores | None = None
    forms: FormRange | None = None
    agreement: Agreement | None = None
    remedies: tuple[Remedy, ...] = ()
    figures: pd.DataFrame | None = None


def gather(subject: Subject) -> Evidence:
    """Compute, once, what the checks judge."""
    fit, fitted = subject.fit, scores(subject.fit)
    seed = fit.options.random_seed
    found = Evidence(label_rates(*fitted), calibrate_labels(*fitted, seed))
    if not fit.is_point:
        prior_pi, prior_c = subject.prior_pi_and_c
        found = replace(found, prior=subject.prior_draws, prior_pi=prior_pi, prior_c=prior_c)
    if subject.data.is_sparse:  # what follows needs all columns at once
        return found
    found = replace(
        found,
        bend=measure_bend(subject),
        form_rates=found.label_rates,
        form_calibration=found.calibration,
        figures=table_of_figures(subject, found.label_rates),
    )
    if subject.several:
        return replace(found, forms=panel_range(subject), agreement=agreement_of(fit))
    if fit.is_point:
        reached = form_scores(subject)
        found = replace(
            found,
            form_rates=label_rates(*reached),
            form_calibration=calibrate_labels(*reached, seed),
        )
    found = replace(found, peaks=subject.peaks)
    if not subject.small:
        return found
    profile = trace_profile(subject)
    columns = score_columns(subject)
    return replace(
        found,
        profile=profile,
        rivals=compare_rivals(subject),
        columns=columns,
        forms=_with_rivals(
            form_range(subject, profile, () if columns is None else columns.named),
            fit.choice,
            found.bend,
        ),
        remedies=weigh_remedies(subject),
    )


def _with_rivals(
    found: FormRange | None, choice: Choice | None, bend: Bend | None
) -> FormRange | None:
    """The range with what other models say that predict the labels as well, or better."""
    if found is None:
        return None
    pi = [] if choice is None else [other.pi for other in choice.as_good]
    pi += [bend.pi] if bend is not None and bend.curved else []
    return replace(found, low=min([found.low, *pi]), high=max([found.high, *pi]))
