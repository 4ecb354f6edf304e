"""What the checks computed, kept: plots and report read it and compute nothing again."""

from dataclasses import dataclass

import pandas as pd

from bayes_lepu.diagnostics.columns import ColumnScores, score_columns
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
from bayes_lepu.diagnostics.subject import Peak, Subject
from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything the verdict rests on.

    Attributes
    ----------
    peaks : tuple of Peak
        Maxima of the likelihood under a weak ridge: as labelled first, then exchanged and others.
    profile : Profile or None
        Log likelihood of the class prior, everything else at its best; None where too large.
    prior : Parameters or None
        Draws of the prior, with their class priors ``prior_pi`` and label frequencies ``prior_c``;
        None for a point estimate.
    rivals : tuple of Rival
        How well this model (first) and others predict the labels; empty where too large.
    label_rates : DataFrame
        Observed and expected label rate by bin of the score h.
    calibration : LabelCalibration
        Calibrated label rate over the score h, with the band of labels simulated from h.
    form_rates, form_calibration : DataFrame, LabelCalibration
        The same for the h that the model's form can reach: a point estimate freed of its
        penalties; of draws, the two above.
    columns : ColumnScores or None
        Whether the columns act in straight lines; None where too large.
    forms : FormRange or None
        The class prior over other forms that predict the labels as well; None where too large.
    remedies : tuple of Remedy
        What more information would change.
    """

    peaks: tuple[Peak, ...]
    profile: Profile | None
    prior: Parameters | None
    prior_pi: Array | None
    prior_c: Array | None
    rivals: tuple[Rival, ...]
    label_rates: pd.DataFrame
    calibration: LabelCalibration
    form_rates: pd.DataFrame
    form_calibration: LabelCalibration
    columns: ColumnScores | None
    forms: FormRange | None
    remedies: tuple[Remedy, ...]


def gather(subject: Subject) -> Evidence:
    """Compute, once, what the checks judge."""
    fit = subject.fit
    drawn = not fit.is_point
    profile = trace_profile(subject) if subject.small else None
    columns = score_columns(subject) if subject.small and not fit.spec.cases else None
    seed = int(fit.settings["random_seed"])
    fitted = scores(fit)
    rates, calibration = label_rates(*fitted), calibrate_labels(*fitted, seed)
    form_rates, form_calibration = rates, calibration
    if fit.is_point:
        reached = form_scores(subject)
        form_rates, form_calibration = label_rates(*reached), calibrate_labels(*reached, seed)
    return Evidence(
        peaks=subject.peaks,
        profile=profile,
        prior=subject.prior_draws if drawn else None,
        prior_pi=subject.prior_pi_and_c[0] if drawn else None,
        prior_c=subject.prior_pi_and_c[1] if drawn else None,
        rivals=compare_rivals(subject) if subject.small else (),
        label_rates=rates,
        calibration=calibration,
        form_rates=form_rates,
        form_calibration=form_calibration,
        columns=columns,
        forms=form_range(subject, profile, () if columns is None else columns.named),
        remedies=weigh_remedies(subject),
    )
