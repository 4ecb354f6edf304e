r"""The human annotators again, with posteriors: four models, LOO, a verdict, and π against .5.

Half of the photographs show an animal by design, and how many of them an annotator found is known:
:math:`\pi = .5` and :math:`c = P(l=1 \mid y=1)` are free external checks of every posterior.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reproduction.experiments.animal import PRINTED_ORDER, check_subjects, output_name
from reproduction.experiments.document import Document
from reproduction.experiments.resample import Photographs, Source
from reproduction.experiments.runner import Experiment, run_trials
from reproduction.experiments.scores import class_scores
from reproduction.experiments.tables import Reproduction, write

BAYES_MODELS = ("naive", "scar", "spm", "psychm")


@dataclass(frozen=True)
class BayesSettings:
    """What the posteriors of one annotator depend on, besides the seed.

    Attributes
    ----------
    subject : str
    features : {"pca10", "pca50", "statistics"}
    speeded : bool
        Label only the fast half of the hits: a stronger bias.
    draws, tune, chains : int
    ci_prob : float
        Probability of the intervals of π and c.
    data : str
        Fingerprint of the data, set by the run.
    """

    subject: str
    features: str = "pca10"
    speeded: bool = False
    draws: int = 1000
    tune: int = 1000
    chains: int = 4
    ci_prob: float = 0.9
    data: str = ""


def bayes_trial(
    settings: BayesSettings, rng: np.random.Generator, *, source: Source
) -> dict[str, Any]:
    """Four posteriors of one annotator: a row per model."""
    from bayes_lepu._fit import fit
    from bayes_lepu.comparison import compare

    data = source.photographs(settings.subject, settings.features, settings.speeded)
    seed = int(rng.integers(2**31 - 1))
    fits = {
        model: fit(
            data.X,
            data.l,
            model=model,
            method="nuts",
            draws=settings.draws,
            tune=settings.tune,
            chains=settings.chains,
            cores=1,
            random_seed=seed,
            progressbar=False,
        )
        for model in BAYES_MODELS
    }
    loo = compare(fits)
    return {"rows": [_row(m, f, loo.loc[m], data, settings) for m, f in fits.items()]}


def _row(
    model: str, fit: Any, loo: pd.Series, data: Photographs, settings: BayesSettings
) -> dict[str, Any]:
    found = fit.identifiability
    prior = fit.class_prior(ci_prob=settings.ci_prob)
    scores = class_scores(data.y, fit.predict_proba(data.X)[:, 1])
    row: dict[str, Any] = {"model": model}
    row |= {f"elpd{k}": float(loo[f"elpd{k}"]) for k in ("", "_diff")}
    row |= {"dse": float(loo["dse"]), "weight": float(loo["weight"])}
    for name, truth in (("pi", data.y.mean()), ("c", data.l.sum() / data.y.sum())):
        low, high = prior.loc[name, "lower"], prior.loc[name, "upper"]
        row |= {
            name: float(prior.loc[name, "mean"]),
            f"{name}_lower": float(low),
            f"{name}_upper": float(high),
            f"{name}_true": float(truth),
            # Naive has c = 1 exactly, an interval without width.
            f"{name}_covered": bool(low <= truth <= high),
        }
    row |= {"accuracy": scores["accuracy"], "AUC": scores["AUC"]}
    if data.held_out is not None:
        X, y = data.held_out
        row["held_out_AUC"] = class_scores(y, fit.predict_proba(X)[:, 1])["AUC"]
    row |= {"level": found.level, "verdict": found.verdict}
    row["orientation_probability"] = fit.orientation.probability
    return row


def run_animal_bayes(
    *,
    path: str | Path | None = None,
    subjects: Sequence[str] = PRINTED_ORDER,
    settings: BayesSettings | None = None,
    seed: int = 0,
    jobs: int | None = None,
    out: str | Path = "results",
    progressbar: bool = True,
) -> Reproduction:
    """Posteriors of four models for every annotator, compared by LOO and with the known truth.

    Parameters
    ----------
    path : path, optional
        Folder of the prepared tables; default: the environment variable ``BAYES_LEPU_DATA``.
    subjects : sequence of str
        Codes of annotators; default: the paper's five.
    settings : BayesSettings, optional
        Features and sampler; the subject is that of ``subjects``.
    seed, jobs, out, progressbar
        As in `run_table1`.

    Returns
    -------
    Reproduction
        ``summary`` (and ``scores``, the same) has one row per annotator and model: expected log
        predictive density and its difference from the best model, stacking weight, π and c with
        their intervals and the truth, accuracy and AUC of the posterior mean on the true classes
        (which no fit saw), level and verdict of `Fit.identifiability`.
    """
    check_subjects(subjects)
    source = Source.at(path)
    base = settings or BayesSettings(subjects[0])
    variants = [
        replace(
            base,
            subject=subject,
            data=source.photographs(subject, base.features, base.speeded).fingerprint,
        )
        for subject in subjects
    ]
    records = run_trials(
        Experiment("animal-bayes", partial(bayes_trial, source=source)),
        variants,
        trials=1,
        seed=seed,
        jobs=jobs,
        file=Path(out) / "trials-animal-bayes.jsonl",
        progressbar=progressbar,
    )
    table = pd.DataFrame(
        [
            {"subject": record["settings"]["subject"], **row}
            for record in records
            for row in record["outcome"]["rows"]
        ]
    )
    return write(
        out,
        output_name("animal-bayes", base.features, "pca10", base.speeded),
        scores=table,
        summary=table,
        document=_document(table, base, seed),
    )


def _document(table: pd.DataFrame, settings: BayesSettings, seed: int) -> Document:
    blocks: list[str | pd.DataFrame] = [
        f"NUTS on all 500 photographs, features “{settings.features}”, {settings.chains} chains of "
        f"{settings.draws} draws, default priors, seed {seed}. elpd differences below 4, or below "
        f"twice their standard error, are no evidence. Intervals are {settings.ci_prob:.0%}; the "
        "truth is in brackets: half of the photographs show an animal by design.",
    ]
    for subject, part in table.groupby("subject", sort=False):
        blocks.append(f"**{subject}**")
        blocks.append(_shape(part))
        for row in part.itertuples(index=False):
            blocks.append(f"{row.model}: level {row.level}. {row.verdict}")
    covered = table.groupby("model", sort=False)["pi_covered"].sum()
    blocks.append(
        f"Intervals of π that contain .5, of {table['subject'].nunique()} annotators: "
        + ", ".join(f"{model} {count}" for model, count in covered.items())
        + "."
    )
    return Document("Human annotators: posteriors", tuple(blocks))


def _shape(part: pd.DataFrame) -> pd.DataFrame:
    def interval(row: Any, name: str) -> str:
        mean, low, high = (getattr(row, f"{name}{end}") for end in ("", "_lower", "_upper"))
        return f"{mean:.3f}, {low:.3f} to {high:.3f} ({getattr(row, name + '_true'):.3f})"

    rows = list(part.itertuples(index=False))
    return pd.DataFrame(
        {
            "elpd difference": [f"{r.elpd_diff:.1f} ± {r.dse:.1f}" for r in rows],
            "weight": [f"{r.weight:.2f}" for r in rows],
            "class prior π": [interval(r, "pi") for r in rows],
            "label frequency c": [interval(r, "c") for r in rows],
            "accuracy": [f"{r.accuracy:.3f}" for r in rows],
            "AUC": [f"{r.AUC:.3f}" for r in rows],
            "level": [str(r.level) for r in rows],
        },
        index=pd.Index([r.model for r in rows], name="model"),
    )
