r"""Table 2: which model is "significantly better", by the paper's rule and by a paired interval.

.. math:: D_i(M_1, M_2) = S_i(M_1) - S_i(M_2), \qquad i = 1, \dots, \text{trials}

The paper ticks (M₁, M₂) where the α/2-quantile of D is not negative, with α = .9. That is the 45th
percentile: M₁ need only be as good in 55 % of the trials. With α = .1, which is probably meant, the
quantile still describes the spread of a single trial and does not narrow with their number. Beside
it stands the paired bootstrap interval of the mean difference, which does.
"""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from reproduction.experiments import printed
from reproduction.experiments.document import Document
from reproduction.experiments.scores import LOWER_IS_BETTER, MODELS
from reproduction.experiments.synthetic import SyntheticSettings, describe, run_synthetic
from reproduction.experiments.tables import Reproduction, tidy, write

LEVEL = 0.9
TABLE2_SETTINGS = SyntheticSettings(lam=0.0)
RESAMPLES = 10_000


def run_table2(
    *,
    trials: int = 500,
    seed: int = 0,
    jobs: int | None = None,
    out: str | Path = "results",
    settings: SyntheticSettings | None = None,
    score: str = "f1",
    progressbar: bool = True,
) -> Reproduction:
    """The paper's Table 2, its rule as written beside a paired bootstrap interval.

    Parameters
    ----------
    trials, seed, jobs, out, progressbar
        As in `run_table1`, whose finished trials are used where the settings agree.
    settings : SyntheticSettings, optional
        Default: those of the table's caption, γ = .05 and λ = 0 (the text says λ = .05).
    score : {"f1", "AUC", "accuracy", "Brier"}
        The paper compares f1.

    Returns
    -------
    Reproduction
        ``summary`` has one row per pair of models.
    """
    settings = settings or TABLE2_SETTINGS
    records = run_synthetic([settings], trials, seed, jobs, out, progressbar)
    scores = tidy(records, ())
    pairs = compare_pairs(scores, score=score, models=settings.models, random_seed=seed)
    if score == "f1":
        pairs["printed"] = [
            printed.TABLE2[pair.better, pair.worse] for pair in pairs.itertuples(index=False)
        ]
    blocks = (
        f"{score}, {trials} trials (seed {seed}). A cell has the result of the paper's rule as "
        "printed → on our trials, then the mean difference (row minus column) with its 90 % "
        "paired bootstrap interval. Signs are reversed for scores where smaller is better.",
        _grid(pairs, settings.models),
        "The rule and the interval answer different questions. The rule as written takes the "
        "α/2 = .45 quantile of the differences over trials: a tick means that the row's model was "
        "at least as good in 55 % of the trials. Two equal models can reach this, and a better "
        "one can miss it. With α = .1 (the .05 quantile) the model must be at least as good in "
        "95 % of single trials, whatever the number of trials. The interval is for the mean over "
        "trials and becomes narrower with more trials. If it excludes zero, the models differ on "
        "average, perhaps by little.",
        _details(pairs),
        describe(settings),
    )
    return write(
        out,
        "table2",
        scores=scores,
        summary=pairs,
        document=Document("Table 2: is one model better than another?", blocks),
    )


def compare_pairs(
    scores: pd.DataFrame,
    *,
    score: str = "f1",
    models: tuple[str, ...] = MODELS,
    random_seed: int = 0,
) -> pd.DataFrame:
    """Every pair of models on the trials both finished.

    Parameters
    ----------
    scores : DataFrame
        Tidy, with columns trial, model, score and value.

    Returns
    -------
    DataFrame
        better, worse: the row's and the column's model; mean difference with ``lower`` and
        ``upper`` of its 90 % paired bootstrap interval; share of trials in which ``better`` was
        strictly better; quantiles .45 and .05 of the differences; ``as_written`` and ``as_meant``:
        whether these are not negative.
    """
    wide = scores[scores["score"] == score].pivot_table(
        index="trial", columns="model", values="value"
    )
    sign = -1.0 if score in LOWER_IS_BETTER else 1.0
    rows = []
    for better, worse in combinations(models, 2):
        both = wide[[better, worse]].dropna().to_numpy()
        difference = sign * (both[:, 0] - both[:, 1])
        rng = np.random.default_rng(random_seed)  # the same resamples for every pair
        lower, upper = np.quantile(_bootstrap_means(difference, rng), [0.05, 0.95])
        written, meant = np.quantile(difference, [LEVEL / 2, (1 - LEVEL) / 2])
        rows.append(
            {
                "better": better,
                "worse": worse,
                "mean": difference.mean(),
                "lower": lower,
                "upper": upper,
                "share_better": float(np.mean(difference > 0)),
                "quantile_45": written,
                "quantile_05": meant,
                "as_written": bool(written >= 0),
                "as_meant": bool(meant >= 0),
            }
        )
    return pd.DataFrame(rows)


def _bootstrap_means(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Means of resamples with replacement, by how often each value was drawn."""
    n = len(values)
    counts = rng.multinomial(n, np.full(n, 1.0 / n), size=RESAMPLES)
    return counts @ values / n


def _grid(pairs: pd.DataFrame, models: tuple[str, ...]) -> pd.DataFrame:
    table = pd.DataFrame("", index=pd.Index(models[:-1], name=""), columns=models[1:])
    for pair in pairs.itertuples(index=False):
        ticks = "✓" if pair.as_written else "✗"
        if hasattr(pair, "printed"):
            ticks = f"{'✓' if pair.printed else '✗'} → {ticks}"
        interval = f"{pair.mean:+.4f} [{pair.lower:+.4f}, {pair.upper:+.4f}]"
        table.loc[pair.better, pair.worse] = f"{ticks}, {interval}"
    return table


def _details(pairs: pd.DataFrame) -> pd.DataFrame:
    names = pd.Index([f"{p.better} − {p.worse}" for p in pairs.itertuples()], name="pair")
    return pd.DataFrame(
        {
            "better in": [f"{100 * share:.0f} %" for share in pairs["share_better"]],
            ".45 quantile": [f"{q:+.4f}" for q in pairs["quantile_45"]],
            "tick as written (α = .9)": ["✓" if t else "✗" for t in pairs["as_written"]],
            ".05 quantile": [f"{q:+.4f}" for q in pairs["quantile_05"]],
            "tick at α = .1": ["✓" if t else "✗" for t in pairs["as_meant"]],
            "interval of the mean": [
                "better" if p.lower > 0 else "worse" if p.upper < 0 else "undecided"
                for p in pairs.itertuples()
            ],
        },
    ).set_index(names)
