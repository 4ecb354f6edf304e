"""Held against what: the bounds of every check, in one place.

Each pair is (separable, not separable); between the two a finding is weak. The values are those of
the simulations behind the library (2500 rows, 5 columns); treat them as starting values elsewhere.
"""

from typing import Literal

from bayes_lepu.verdict.records import Aspect, Check, Status

SD_PI = (0.05, 0.10)  # Wald intervals of π cover .93 below, .46 above
PROFILE_WIDTH = (0.20, 0.40)  # width of the likelihood set of π
MODE_GAP = (5.0, 2.0)  # log-likelihood units to another answer: odds below 1 %, above 14 %
ORIENTATION = (0.99, 0.95)  # posterior probability; also of the order of the two norms
CONTRACTION = (0.9, 0.5)
PROFILE_RATIO = (1.5, 3.0)  # likelihood set of π against its posterior interval
FORM_WIDTH = (0.28, 0.40)  # of the range of π over forms that predict the labels as well
RANKING = (0.95, 0.85)  # mean correlation of a·x between draws and their mean
R_HAT = (1.01, 1.05)
LIKELIHOOD_DROP = 1.92  # half the 95 % point of χ² with one degree of freedom
ROUNDING = 0.005  # of π as it is printed


def relative(bounds: tuple[float, float], pi: float) -> tuple[float, float]:
    """Bounds of a width or an sd of π, narrower in proportion where π is small.

    A range of .02 to .07 is narrow and says next to nothing; from π = .4 on the bounds hold as
    they stand.
    """
    scale = min(1.0, max(pi, 1e-6) / 0.4)
    return bounds[0] * scale, bounds[1] * scale


def grade(figure: float, bounds: tuple[float, float]) -> Status:
    """Passed, weak or failed; the order of the bounds says which side is good."""
    good, bad = bounds
    sign = 1.0 if good > bad else -1.0
    if sign * figure >= sign * good:
        return "passed"
    return "weak" if sign * figure >= sign * bad else "failed"


def graded(
    name: str,
    figure: float,
    bounds: tuple[float, float],
    text: str,
    remedy: str = "",
    *,
    threshold: str = "{}",
    status: Status | None = None,
    remedy_from: Literal["weak", "failed"] = "weak",
    bears_on: tuple[Aspect, ...] = (),
    needs: Literal["weak", "passed"] | None = None,
    consequence: str = "",
) -> Check:
    """The check of one figure against its bounds; the remedy is for those that do not pass.

    Parameters
    ----------
    threshold : str
        The bounds in a sentence, ``{}`` for themselves.
    status : str, optional
        Where more than the figure decides.
    remedy_from : {"weak", "failed"}
        From which status on the remedy is given.
    """
    status = grade(figure, bounds) if status is None else status
    helped = status == "failed" or status == remedy_from
    held_against = threshold.format(in_words(bounds))
    shown = remedy if helped else ""
    return Check(name, status, figure, held_against, text, shown, bears_on, needs, consequence)


def in_words(bounds: tuple[float, float]) -> str:
    """The bounds as a phrase."""
    good, bad = bounds
    return (
        f"at least {good:.3g} (weak to {bad:.3g})"
        if good > bad
        else f"at most {good:.3g} (weak to {bad:.3g})"
    )


def judged_on(some: int, n: int) -> str:
    """What a check adds to its text where it looked at some of the rows only."""
    return "" if some >= n else f" Judged on {some:,} of {n:,} rows."
