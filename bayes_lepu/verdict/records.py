"""A check is a plain record; a verdict is a set of them, a level and one sentence."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from bayes_lepu.links import Array
from bayes_lepu.result.numbers_in_words import as_likely, share

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

Status = Literal["passed", "weak", "failed", "not computed"]
Bounds = tuple[float, float]

# Thresholds of the checks. Each pair is (passed, failed); a finding between the two is weak. The
# values come from the simulations behind the library (2500 rows, 5 columns).
MODE_GAP = (5.0, 2.0)  # log-likelihood units to another answer: odds below 1 %, above 14 %
FORM_WIDTH = (0.28, 0.40)  # of the range of π over models that predict the labels as well
LIKELIHOOD_DROP = 1.92  # half the 95 % point of χ² with one degree of freedom
ROUNDING = 0.005  # of π as it is printed


class Aspect(Enum):
    """The question that a check bears on; the level follows from these declarations alone."""

    RANKING = "ranking by t"
    ORIENTATION = "which factor is t"
    LEVEL = "level of t"
    LABELS = "h"
    COMPUTATION = "computation"


@dataclass(frozen=True)
class Check:
    """One finding.

    ``figure`` is the measured value and ``threshold`` its limit, in words. ``text`` states the
    finding and ``remedy`` what would help. The check bears on the questions in ``bears_on``; it
    supports an answer if its status is at least ``needs`` ("weak" or "passed"). With None it
    supports nothing, and only a failure counts. ``consequence`` states why a question stays open,
    as the second half of a sentence.
    """

    name: str
    status: Status
    figure: float | None = None
    threshold: str = ""
    text: str = ""
    remedy: str = ""
    bears_on: tuple[Aspect, ...] = ()
    needs: Literal["weak", "passed"] | None = None
    consequence: str = ""

    def __post_init__(self) -> None:
        if self.status == "passed":
            object.__setattr__(self, "remedy", "")

    @property
    def open(self) -> bool:
        """Whether this finding leaves the questions open that the check bears on."""
        if self.status in ("passed", "weak"):
            return self.status == "weak" and self.needs == "passed"
        return self.status == "failed" or self.needs is not None


def relative(bounds: Bounds, pi: float) -> Bounds:
    """Thresholds for the width of a range of π, smaller in proportion where π is below .4."""
    scale = min(1.0, max(pi, 1e-6) / 0.4)
    return bounds[0] * scale, bounds[1] * scale


def grade(figure: float, bounds: Bounds) -> Status:
    """Passed, weak or failed by a pair of thresholds (passed, failed).

    If the first is the larger one, large figures are good; otherwise small ones.
    """
    sign = 1.0 if bounds[0] > bounds[1] else -1.0
    if sign * figure >= sign * bounds[0]:
        return "passed"
    return "weak" if sign * figure >= sign * bounds[1] else "failed"


def graded(
    name: str,
    figure: float,
    bounds: Bounds,
    text: str,
    remedy: str = "",
    *,
    threshold: str = "{}",
    status: Status | None = None,
    **bearing: Any,
) -> Check:
    """The check of one figure; ``threshold`` is a sentence with ``{}`` for the bounds."""
    side = "at least" if bounds[0] > bounds[1] else "at most"
    words = threshold.format(f"{side} {bounds[0]:.3g} (weak to {bounds[1]:.3g})")
    return Check(name, status or grade(figure, bounds), figure, words, text, remedy, **bearing)


def passed_if(good: bool) -> Status:
    """The status of a check with one threshold."""
    return "passed" if good else "failed"


def judged_on(some: int, n: int) -> str:
    """Sentence for a check that used only some of the rows; empty if it used all."""
    return "" if some >= n else f" Judged on {some:,} of {n:,} rows."


def settled(checks: Iterable[Check], aspect: Aspect) -> bool:
    """Whether some check supports an aspect and none leaves it open."""
    bearing = [c for c in checks if aspect in c.bears_on]
    supported = any(c.needs is not None and c.status in ("passed", "weak") for c in bearing)
    return supported and not any(c.open for c in bearing)


@dataclass(frozen=True)
class Offer:
    """What auditing some unlabelled rows would change, computed from the fit.

    ``sd`` is the standard deviation of π, before and after the audit. ``gap`` is the log-likelihood
    units by which the data prefer this orientation (infinite without a mode with t and s swapped).
    """

    rows: int
    sd_before: float
    sd_after: float
    gap_before: float
    gap_after: float

    @property
    def helps(self) -> bool:
        """Whether the audit removes a tenth of the sd, or adds a unit to the gap."""
        named = self.gap_after - self.gap_before if math.isfinite(self.gap_before) else 0.0
        return self.sd_after < 0.9 * self.sd_before or named > 1.0

    @property
    def call(self) -> str:
        """The line of Python that picks the rows."""
        return f"plan = fit.suggest_audit({self.rows})"

    @property
    def text(self) -> str:
        """The change in a sentence."""
        words = f"{self.rows} audited unlabelled rows: sd of π {share(self.sd_before, 3)} → "
        words += share(self.sd_after, 3)
        if math.isfinite(self.gap_before):
            words += f", this orientation {as_likely(self.gap_after)} "
            words += f"(now {as_likely(self.gap_before)})"
        return f"{words}."


@dataclass(frozen=True)
class Identifiability:
    """The verdict: what these data identify.

    Attributes
    ----------
    level : {1, 2, 3, 4}
        1: t and s are separable from these data; 2: the ranking by t is, its level π is not; 3:
        only the unordered pair {t, s} is identified; 4: only h = s·t.
    verdict : str
        The level in one sentence.
    carried_by : tuple of str
        What the conclusion rests on: data, parametric form, prior, orientation rule.
    checks : tuple
        All findings (`Check`), each with a remedy.
    exchanged_pi : array or None
        At level 3: the draws of π with t and s swapped (one value for a point estimate).
    pi_range : tuple of float or None
        Range of π over all models that predict the labels as well, given the orientation. It
        includes the width of the likelihood and of the posterior. Level 1 is judged by it.
    offer : Offer or None
        What auditing some rows would change.
    evidence : Evidence or None
        The quantities behind the checks, for plots and report.
    """

    level: int
    verdict: str
    carried_by: tuple[str, ...]
    checks: tuple[Check, ...]
    exchanged_pi: Array | None = None
    pi_range: tuple[float, float] | None = None
    offer: Offer | None = None
    evidence: "Evidence | None" = None

    def to_frame(self) -> pd.DataFrame:
        """The checks as a table."""
        columns = ["name", "status", "figure", "threshold", "text", "remedy", "bears_on"]
        table = pd.DataFrame([vars(c) for c in self.checks], columns=columns).set_index("name")
        table["bears_on"] = [", ".join(a.value for a in found) for found in table["bears_on"]]
        return table

    @property
    def figures(self) -> pd.DataFrame:
        """Figures without a threshold: value and meaning of each; empty without evidence."""
        kept = None if self.evidence is None else self.evidence.figures
        return pd.DataFrame(columns=["value", "meaning"]) if kept is None else kept

    def __str__(self) -> str:
        lines = [f"Level {self.level}: {self.verdict}", f"Rests on: {', '.join(self.carried_by)}."]
        for check in self.checks:
            if check.status in ("failed", "weak"):
                lines.append(f"  [{check.status}] {check.name}: {check.text}")
                lines += [f"      -> {check.remedy}"] if check.remedy else []
        if self.level > 1 and self.offer is not None and self.offer.helps:
            lines += [f"What would help: {self.offer.text}", f"      {self.offer.call}"]
        return "\n".join(lines)

    __repr__ = __str__  # without everything that the checks computed

    def _repr_html_(self) -> str:
        table = self.to_frame().reset_index().to_html(index=False, escape=True, na_rep="")
        return f"<div><pre>{escape(str(self))}</pre>{table}</div>"
