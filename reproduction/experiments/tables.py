"""From trials to tidy scores, to a table in the paper's shape, to files."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from reproduction.experiments.document import Document
from reproduction.experiments.scores import LOWER_IS_BETTER
from reproduction.experiments.store import Record


@dataclass(frozen=True, eq=False)
class Reproduction:
    """What an experiment found.

    Attributes
    ----------
    scores : DataFrame
        Tidy: one row per trial, model and score.
    summary : DataFrame
        Mean, standard error and number of trials, beside the printed number.
    document : Document
        The table in the paper's shape with its explanation.
    files : tuple of Path
        What was written.
    """

    scores: pd.DataFrame
    summary: pd.DataFrame
    document: Document
    files: tuple[Path, ...]

    def __repr__(self) -> str:
        return self.document.markdown()

    def _repr_markdown_(self) -> str:
        return self.document.markdown()


def tidy(
    records: Iterable[Record], settings: Sequence[str], *, key: str = "scores"
) -> pd.DataFrame:
    """One row per trial, model and score.

    Parameters
    ----------
    settings : sequence of str
        Settings that become columns.
    key : str
        Which of the outcome's mappings of model to scores.
    """
    rows = [
        {s: record["settings"][s] for s in settings}
        | {"trial": record["trial"], "seed": record["seed"]}
        | {"model": model, "score": score, "value": value}
        for record in records
        for model, values in record["outcome"][key].items()
        for score, value in values.items()
    ]
    return pd.DataFrame(rows)


def summarise(scores: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Mean of ``value``, its standard error over trials, and their number."""
    groups = scores.groupby(list(by), sort=False)["value"]
    table = groups.agg(["mean", "std", "count"]).reset_index()
    table["se"] = table["std"] / np.sqrt(table["count"])
    return table.rename(columns={"count": "trials"})[[*by, "mean", "se", "trials"]]


def standard_error(values: ArrayLike) -> float:
    """Standard error of the mean; NaN for a single value."""
    x = np.asarray(values, dtype=float)
    return float(x.std(ddof=1) / np.sqrt(x.size)) if x.size > 1 else float("nan")


def score_table(
    summary: pd.DataFrame,
    *,
    rows: str,
    columns: str,
    order: tuple[Sequence[str], Sequence[str]],
    aside: str = "Real",
    model: str = "model",
    score: str | None = None,
) -> pd.DataFrame:
    """Cells "mean ± se (printed)", the best model in bold, the second in italics.

    Parameters
    ----------
    rows, columns : str
        Columns of ``summary`` that span the table; one of them is ``model``.
    order : tuple
        Order of the rows and of the columns.
    aside : str
        The model that does not compete.
    score : str, optional
        The score of all cells, where no side of the table is the score.
    """
    cells = summary.set_index([rows, columns])
    table = pd.DataFrame(index=pd.Index(order[0], name=rows), columns=list(order[1]), dtype=object)
    for i in order[0]:
        for j in order[1]:
            table.loc[i, j] = _cell(cells.loc[(i, j)])
    lines = order[0] if columns == model else order[1]
    for line in lines:
        name = score or str(line)
        part = summary[(summary[rows if columns == model else columns] == line)]
        part = part[part[model] != aside].set_index(model)["mean"]
        ranked = part.sort_values(ascending=name in LOWER_IS_BETTER, kind="stable").index
        for mark, best in zip(("**", "*"), ranked[:2], strict=False):
            at = (line, best) if columns == model else (best, line)
            table.loc[at] = f"{mark}{table.loc[at]}{mark}"
    return table


def _cell(row: pd.Series) -> str:
    text = f"{row['mean']:.4f}"
    if np.isfinite(row["se"]):
        text += f" ± {row['se']:.4f}"
    if "printed" in row and np.isfinite(row["printed"]):
        text += f" ({row['printed']:.4f})"
    return text


def write(
    out: str | Path,
    name: str,
    *,
    scores: pd.DataFrame,
    summary: pd.DataFrame,
    document: Document,
    figure: pd.DataFrame | None = None,
    panels: Sequence[str] = (),
) -> Reproduction:
    """The files of a finished experiment: CSV, Parquet where pyarrow is, Markdown, HTML, PNG.

    Parameters
    ----------
    figure : DataFrame, optional
        The rows of ``summary`` to draw, one panel per value of the columns ``panels``.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}{ending}" for ending in ("-scores.csv", ".csv", ".md", ".html")]
    scores.to_csv(files[0], index=False, lineterminator="\n")
    summary.to_csv(files[1], index=False, lineterminator="\n")
    files[2].write_text(document.markdown(), encoding="utf-8")
    files[3].write_text(document.html(), encoding="utf-8")
    if find_spec("pyarrow") is not None:
        files.append(folder / f"{name}-scores.parquet")
        scores.to_parquet(files[-1], index=False)
    if figure is not None:
        from reproduction.experiments.figures import score_figure

        files.append(folder / f"{name}.png")
        score_figure(figure, panels).savefig(files[-1], dpi=150)
    return Reproduction(scores, summary, document, tuple(files))
