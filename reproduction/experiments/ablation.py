r"""What makes the norm rule work: guesses and lapses switched on and off.

.. math:: s(x) = \gamma + (1-\gamma-\lambda)\,\sigma(\alpha \cdot x + \beta)

SPM's product of two sigmoids does not say which is the classifier, and a and α have one
distribution, so with γ = λ = 0 any rule is right half of the time. A guess rate keeps s away from
zero, which a sigmoid imitates with a smaller slope: the rule then works, whatever the true norms.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from reproduction.experiments.document import Document
from reproduction.experiments.store import Record
from reproduction.experiments.synthetic import (
    SyntheticSettings,
    describe,
    run_synthetic,
    share_named_right,
)
from reproduction.experiments.tables import Reproduction, standard_error, tidy, write

CELLS = ((0.0, 0.0), (0.05, 0.0), (0.0, 0.05), (0.05, 0.05))


def run_ablation(
    *,
    trials: int = 100,
    seed: int = 0,
    jobs: int | None = None,
    out: str | Path = "results",
    settings: SyntheticSettings | None = None,
    cells: Sequence[tuple[float, float]] = CELLS,
    progressbar: bool = True,
) -> Reproduction:
    """How often SPM's rule names the factors rightly, by guess and lapse rate.

    Parameters
    ----------
    trials, seed, jobs, out, progressbar
        As in `run_table1`, whose finished trials are used where the settings agree.
    settings : SyntheticSettings, optional
        Everything but γ and λ.
    cells : sequence of (gamma, lam)
        Each is run on the same slopes, rows and random numbers.

    Returns
    -------
    Reproduction
        ``summary`` has one row per cell.
    """
    base = settings or SyntheticSettings()
    variants = [replace(base, gamma=gamma, lam=lam) for gamma, lam in cells]
    records = run_synthetic(variants, trials, seed, jobs, out, progressbar)
    rows = [
        _row(variant, records[i * trials : (i + 1) * trials]) for i, variant in enumerate(variants)
    ]
    summary = pd.DataFrame(rows)
    blocks = (
        f"{trials} trials in every row (seed {seed}), on the same slopes, features and random "
        "numbers; mean ± standard error.",
        _shape(summary),
        "“SPM, true orientation” takes the factor that truly is the class: its lead over SPM is "
        "the loss due to the rule alone. With γ = λ = 0 the labels do not identify the "
        "orientation, and the rule is right half of the time. A guess rate makes the fitted "
        "annotator flatter, so the rule is usually right. A lapse rate alone does not have this "
        "effect. PsychM uses no rule.",
        describe(base, rates=False),
    )
    return write(
        out,
        "ablation",
        scores=tidy(records, ("gamma", "lam")),
        summary=summary,
        document=Document("Ablation: why the norm rule works", blocks),
    )


def _row(settings: SyntheticSettings, records: Sequence[Record]) -> dict[str, float]:
    row = {"gamma": settings.gamma, "lam": settings.lam, "trials": len(records)}
    for model in ("SPM", "PsychM"):
        row[f"{model}_right"], row[f"{model}_right_se"] = share_named_right(records, model)
    outcomes = [r["outcome"] for r in records]
    for name in ("SPM", "PsychM", "Real"):
        _add(row, name, [o["scores"][name]["accuracy"] for o in outcomes if name in o["scores"]])
    finished = [o for o in outcomes if "SPM" in o["scores"]]
    oracle = [
        o["scores" if o["named_right"]["SPM"] else "other_factor"]["SPM"]["accuracy"]
        for o in finished
    ]
    _add(row, "SPM_oracle", oracle)
    return row


def _add(row: dict[str, float], name: str, values: list[float]) -> None:
    row[f"{name}_accuracy"] = float(np.mean(values))
    row[f"{name}_accuracy_se"] = standard_error(values)


def _shape(summary: pd.DataFrame) -> pd.DataFrame:
    columns = {
        "SPM, orientation right": "SPM_right",
        "accuracy SPM": "SPM_accuracy",
        "SPM, true orientation": "SPM_oracle_accuracy",
        "PsychM, orientation right": "PsychM_right",
        "PsychM": "PsychM_accuracy",
        "Real": "Real_accuracy",
    }
    table = pd.DataFrame(
        {
            title: [f"{r[key]:.3f} ± {r[key + '_se']:.3f}" for _, r in summary.iterrows()]
            for title, key in columns.items()
        }
    )
    table.index = pd.Index(
        [f"γ = {r['gamma']:g}, λ = {r['lam']:g}" for _, r in summary.iterrows()], name="truth"
    )
    return table
