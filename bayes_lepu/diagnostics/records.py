"""A diagnostic is a plain record; a verdict is an ordered set of them and one sentence."""

from dataclasses import asdict, dataclass
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
    """

    level: int
    verdict: str
    carried_by: tuple[str, ...]
    checks: tuple[Check, ...]

    def to_frame(self) -> pd.DataFrame:
        """The checks as a table."""
        return pd.DataFrame([asdict(c) for c in self.checks]).set_index("name")

    def __str__(self) -> str:
        carried = ", ".join(self.carried_by)
        lines = [f"Level {self.level}: {self.verdict}", f"Carried by: {carried}."]
        for check in self.checks:
            if check.status in ("failed", "weak"):
                lines.append(f"  [{check.status}] {check.name}: {check.text}")
                if check.remedy:
                    lines.append(f"      -> {check.remedy}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        table = self.to_frame().reset_index().to_html(index=False, escape=True, na_rep="")
        carried = escape(", ".join(self.carried_by))
        return (
            f"<div><p><b>Level {self.level}.</b> {escape(self.verdict)}</p>"
            f"<p>Carried by: {carried}.</p>{table}</div>"
        )
