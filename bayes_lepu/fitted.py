"""`Fit`: a fitted model with everything one can ask of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bayes_lepu.diagnostics.identifiability import diagnose
from bayes_lepu.diagnostics.records import Identifiability
from bayes_lepu.result import FittedModel
from bayes_lepu.result.fit import show_estimate
from bayes_lepu.result.tree import read

QUICK_CELLS = 1_000_000  # rows x coordinates up to which showing a fit may diagnose it


@dataclass(frozen=True, eq=False, repr=False)
class Fit(FittedModel):
    """The frozen answer of one call to `fit`."""

    @cached_property
    def identifiability(self) -> Identifiability:
        """What these data can and cannot say: level, verdict, and the checks behind them.

        Computed once; `bayes_lepu.diagnose` recomputes, and adds the slow checks on request.
        """
        return diagnose(self)

    def report(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        group_by: Sequence[str] = (),
        compare_with: Mapping[str, FittedModel] | None = None,
    ) -> Path:
        """Write a self-contained HTML page about this fit, to look at and to send on.

        Parameters
        ----------
        path : str or Path
            The file to write.
        title : str, optional
            Heading of the page.
        group_by : sequence of str
            Columns by which label rates are shown; by default those that matter most.
        compare_with : mapping of str to Fit, optional
            Fits of the same rows to compare with; by default quick fits of naive and SCAR.

        Returns
        -------
        Path
            The file written.
        """
        from bayes_lepu.report import write_report

        return write_report(
            self,
            path,
            identifiability=self.identifiability,
            title=title,
            group_by=tuple(group_by),
            compare_with=compare_with,
        )

    def _facts(self) -> dict[str, str]:
        if self.data.n * self.density.dim > QUICK_CELLS and "identifiability" not in vars(self):
            return super()._facts() | {"verdict": "not computed yet: ask for fit.identifiability"}
        found, facts = self.identifiability, super()._facts()
        if found.exchanged_pi is not None:
            facts["class prior pi"] += (
                f"; with the factors exchanged {show_estimate(found.exchanged_pi)}"
            )
        facts["verdict"] = f"level {found.level}: {found.verdict}"
        return facts | {"carried by": ", ".join(found.carried_by)}


def load(path: str | Path) -> Fit:
    """Read a fit written by `Fit.save`."""
    return Fit(**read(Path(path)))
