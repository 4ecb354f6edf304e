"""A diagnostic is a plain record; a verdict is an ordered set of them and one sentence."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from html import escape
from typing import TYPE_CHECKING, Literal

import pandas as pd

from bayes_lepu.links import Array

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

Status = Literal["passed", "weak", "failed", "not applicable", "not computed"]


class Aspect(Enum):
    """What a check bears on; the level follows from these declarations alone."""

    RANKING = "ranking by t"
    ORIENTATION = "which factor is t"
    LEVEL = "level of t"
    LABELS = "h"
    COMPUTATION = "computation"
    PRIOR = "share of the prior"


@dataclass(frozen=True)
class Check:
    """One finding.

    Attributes
    ----------
    name : str
    status : {"passed", "weak", "failed", "not applicable", "not computed"}
        *Not applicable*: the question does not arise. *Not computed*: it does, and is open.
    figure : float or None
        What was measured.
    threshold : str
        What it was held against, in words.
    text : str
        The finding in a sentence.
    remedy : str
        What would help; empty where nothing needs to.
    bears_on : tuple of Aspect
        What the finding speaks about; a failure leaves these open.
    needs : {None, "weak", "passed"}
        The least status with which these can stand. None: only a failure counts against them.
    consequence : str
        What a failure means for the verdict, as the second half of a sentence.
    """

    name: str
    status: Status
    figure: float | None
    threshold: str
    text: str
    remedy: str = ""
    bears_on: tuple[Aspect, ...] = ()
    needs: Literal["weak", "passed"] | None = None
    consequence: str = ""

    @property
    def open(self) -> bool:
        """Whether what the check bears on cannot stand after this finding."""
        if self.status in ("passed", "not applicable"):
            return False
        if self.status == "weak":
            return self.needs == "passed"
        return self.status == "failed" or self.needs is not None


def not_computed(
    name: str,
    text: str = "",
    remedy: str = "",
    *,
    bears_on: tuple[Aspect, ...] = (),
    needs: Literal["weak", "passed"] | None = None,
    consequence: str = "",
) -> Check:
    """A question that arises and stays open."""
    return Check(name, "not computed", None, "", text, remedy, bears_on, needs, consequence)


def passed_if(
    good: bool,
    name: str,
    figure: float,
    threshold: str,
    text: str,
    remedy: str = "",
    *,
    otherwise: Literal["weak", "failed"] = "failed",
    bears_on: tuple[Aspect, ...] = (),
    needs: Literal["weak", "passed"] | None = None,
    consequence: str = "",
) -> Check:
    """A check that passes or does not; the remedy is for where it does not."""
    status: Status = "passed" if good else otherwise
    shown = "" if good else remedy
    return Check(name, status, figure, threshold, text, shown, bears_on, needs, consequence)


def not_applicable(name: str, text: str) -> Check:
    """A question that does not arise."""
    return Check(name, "not applicable", None, "", text)


def settled(checks: Iterable[Check], aspect: Aspect) -> bool:
    """Whether an aspect stands: some check that it needs has a finding, and none leaves it open.

    What was not computed supports nothing.
    """
    bearing = [c for c in checks if aspect in c.bears_on]
    supported = any(c.needs is not None and c.status in ("passed", "weak") for c in bearing)
    return supported and not any(c.open for c in bearing)


@dataclass(frozen=True)
class Remedy:
    """What one more piece of information would change, computed from the fit.

    Attributes
    ----------
    name : str
    sd_before, sd_after : float
        Standard deviation of π now and then, the naming of the factors given.
    gap_before, gap_after : float
        Log-likelihood units by which the data prefer this naming of the factors, now and then
        (expected); infinite where no answer with exchanged factors exists.
    text : str
        The same in a sentence.
    advice : str
        What to do, in plain words.
    call : str
        A line of Python that does it, with ``fit`` for the fit and ``lepu`` for the library; empty
        where only the user can say more.
    flags : str
        Options of ``bayes-lepu fit`` that do the same; empty where it has none.
    """

    name: str
    sd_before: float
    sd_after: float
    gap_before: float
    gap_after: float
    text: str
    advice: str = ""
    call: str = ""
    flags: str = ""

    @property
    def helps(self) -> bool:
        """Whether it changes anything worth an effort: a tenth of the sd, or a unit for naming."""
        named = self.gap_after - self.gap_before if math.isfinite(self.gap_before) else 0.0
        return self.sd_after < 0.9 * self.sd_before or named > 1.0


@dataclass(frozen=True)
class Identifiability:
    """What these data can and cannot say.

    Attributes
    ----------
    level : {1, 2, 3, 4}
        1: t and s are separable from these data; 2: the ranking by t is, its level π is not; 3:
        only the unordered pair {t, s} is identified; 4: only h = s·t.
    verdict : str
        One sentence.
    carried_by : tuple of str
        Which assumptions carry the conclusion: data, parametric form, prior, orientation rule.
    checks : tuple of Check
    remedies : tuple of Remedy
        What would help, with numbers, the most helpful first.
    exchanged_pi : array or None
        At level 3: the draws of π with the factors exchanged (one, of a point estimate).
    pi_range : tuple of float or None
        Range of π to go by, the naming of the factors given: over all forms that predict the
        labels as well, with the width of the likelihood and of the posterior. It is what level 1
        promises; an interval of the posterior knows the fitted form only.
    evidence : Evidence or None
        What the checks computed; plots and report read it.
    """

    level: int
    verdict: str
    carried_by: tuple[str, ...]
    checks: tuple[Check, ...]
    remedies: tuple[Remedy, ...] = ()
    exchanged_pi: Array | None = None
    pi_range: tuple[float, float] | None = None
    evidence: "Evidence | None" = None

    def to_frame(self) -> pd.DataFrame:
        """The checks as a table."""
        columns = ("name", "status", "figure", "threshold", "text", "remedy")
        rows = [
            {k: getattr(c, k) for k in columns}
            | {"bears_on": ", ".join(a.value for a in c.bears_on)}
            for c in self.checks
        ]
        return pd.DataFrame(rows, columns=[*columns, "bears_on"]).set_index("name")

    @property
    def figures(self) -> pd.DataFrame:
        """Figures that decide nothing: value and meaning of each; empty where none were kept."""
        kept = None if self.evidence is None else self.evidence.figures
        return pd.DataFrame(columns=["value", "meaning"]) if kept is None else kept

    def __str__(self) -> str:
        carried = ", ".join(self.carried_by)
        lines = [f"Level {self.level}: {self.verdict}", f"Rests on: {carried}."]
        for check in self.checks:
            if check.status in ("failed", "weak"):
                lines.append(f"  [{check.status}] {check.name}: {check.text}")
                if check.remedy:
                    lines.append(f"      -> {check.remedy}")
        offers = [r for r in self.remedies if r.helps]
        if self.level > 1 and offers:
            lines.append("What would help:")
            for offer in offers:
                lines += [f"  {offer.text}", *([f"      {offer.call}"] if offer.call else [])]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        table = self.to_frame().reset_index().to_html(index=False, escape=True, na_rep="")
        carried = escape(", ".join(self.carried_by))
        return (
            f"<div><p><b>Level {self.level}.</b> {escape(self.verdict)}</p>"
            f"<p>Rests on: {carried}.</p>{table}{self._remedies_html()}</div>"
        )

    def _remedies_html(self) -> str:
        offers = [r for r in self.remedies if r.helps]
        if not offers:
            return ""
        items = "".join(
            f"<li>{escape(r.text)}<br><code>{escape(r.call)}</code></li>" for r in offers
        )
        return f"<p>What would help:</p><ul>{items}</ul>"
