"""A diagnostic is a plain record; a verdict is an ordered set of them and one sentence."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from html import escape
from typing import Literal

import pandas as pd

Status = Literal["passed", "weak", "failed", "not applicable"]

LEVELS = {
    1: "t and s are separable from these data",
    2: "the ranking by t is separable, its level (the class prior) is not",
    3: "only the unordered pair {t, s} is identified",
    4: "only h = s·t is identified",
}


@dataclass(frozen=True)
class Check:
    """One finding.

    Attributes
    ----------
    name : str
    status : {"passed", "weak", "failed", "not applicable"}
    figure : float or None
        What was measured.
    threshold : str
        What it was held against, in words.
    text : str
        The finding in a sentence.
    remedy : str
        What would help; empty where nothing needs to.
    """

    name: str
    status: Status
    figure: float | None
    threshold: str
    text: str
    remedy: str = ""


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
    """

    name: str
    sd_before: float
    sd_after: float
    gap_before: float
    gap_after: float
    text: str


@dataclass(frozen=True)
class Identifiability:
    """What these data can and cannot say.

    Attributes
    ----------
    level : {1, 2, 3, 4}
        See `LEVELS`.
    verdict : str
        One sentence.
    carried_by : tuple of str
        Which assumptions carry the conclusion: data, parametric form, prior, orientation rule.
    checks : tuple of Check
    remedies : tuple of Remedy
        What would help, with numbers, the most helpful first.
    exchanged_pi : mapping or None
        At level 3: π with the factors exchanged, its mean and (for draws) ``lower`` and ``upper``.
    """

    level: int
    verdict: str
    carried_by: tuple[str, ...]
    checks: tuple[Check, ...]
    remedies: tuple[Remedy, ...] = ()
    exchanged_pi: Mapping[str, float] | None = None

    def to_frame(self) -> pd.DataFrame:
        """The checks as a table."""
        return pd.DataFrame([asdict(c) for c in self.checks]).set_index("name")

    def remedies_frame(self) -> pd.DataFrame:
        """The remedies as a table."""
        names = [f.name for f in fields(Remedy)]
        return pd.DataFrame([asdict(r) for r in self.remedies], columns=names).set_index("name")

    def __str__(self) -> str:
        carried = ", ".join(self.carried_by)
        lines = [f"Level {self.level}: {self.verdict}", f"Carried by: {carried}."]
        for check in self.checks:
            if check.status in ("failed", "weak"):
                lines.append(f"  [{check.status}] {check.name}: {check.text}")
                if check.remedy:
                    lines.append(f"      -> {check.remedy}")
        if self.level > 1 and self.remedies:
            lines += ["What would help:", *(f"  {r.text}" for r in self.remedies)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        table = self.to_frame().reset_index().to_html(index=False, escape=True, na_rep="")
        carried = escape(", ".join(self.carried_by))
        return (
            f"<div><p><b>Level {self.level}.</b> {escape(self.verdict)}</p>"
            f"<p>Carried by: {carried}.</p>{table}{self._remedies_html()}</div>"
        )

    def _remedies_html(self) -> str:
        if not self.remedies:
            return ""
        items = "".join(f"<li>{escape(r.text)}</li>" for r in self.remedies)
        return f"<p>What would help:</p><ul>{items}</ul>"
