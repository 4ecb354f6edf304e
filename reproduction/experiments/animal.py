"""The paper's human annotators: Tables 3 to 6, by its own protocol and by a safe one."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.errors import DataError, ModelError
from reproduction.datasets.gonogo import SUBJECTS
from reproduction.experiments import printed
from reproduction.experiments.document import Document
from reproduction.experiments.resample import (
    NAMED_FEATURES,
    PROTOCOLS,
    AnimalSettings,
    Protocol,
    Source,
    animal_trial,
)
from reproduction.experiments.runner import Experiment, run_trials
from reproduction.experiments.scores import LOWER_IS_BETTER, MODELS
from reproduction.experiments.store import Record
from reproduction.experiments.tables import (
    Reproduction,
    score_table,
    standard_error,
    summarise,
    tidy,
    write,
)

PRINTED_ORDER = ("fsa", "mta", "sph", "hth", "mba")
TABLE_ORDER = ("accuracy", "f1", "AUC", "Brier")
OWN_FEATURES = "own"
RIVALS = (
    *((ours, rival) for ours in ("SPM", "PsychM") for rival in ("Naive", "Elkan")),
    ("SPM", "Naive, L1 penalty"),
)


def run_animal(
    *,
    path: str | Path | None = None,
    features: str | pd.DataFrame = "pca50",
    subjects: Sequence[str] = PRINTED_ORDER,
    protocols: Sequence[Protocol] = PROTOCOLS,
    speeded: bool = False,
    trials: int = 200,
    seed: int = 0,
    jobs: int | None = None,
    out: str | Path = "results",
    settings: AnimalSettings | None = None,
    progressbar: bool = True,
) -> Reproduction:
    """The paper's Tables 3 to 6 with our numbers beside the printed ones.

    Parameters
    ----------
    path : path, optional
        Folder of the prepared tables; default: the environment variable ``BAYES_LEPU_DATA``.
    features : {"pca10", "pca50", "full", "statistics"} or DataFrame
        Features of the photographs. A DataFrame has the image numbers as its index.
    subjects : sequence of str
        Codes of annotators; default: the paper's five, in its order.
    protocols : sequence of {"paper", "safe"}
        See `reproduction.experiments.resample`.
    speeded : bool
        Label only the fast half of every annotator's hits.
    trials : int
        Resamples of every annotator under every protocol; the paper drew 200.
    seed, jobs, out, progressbar
        As in `run_table1`.
    settings : AnimalSettings, optional
        Penalties, folds and the start of PsychM; subject, protocol, features and speeded are those
        of the arguments above.

    Returns
    -------
    Reproduction
        ``scores`` has a column ``test``: "half", the test half of the resample, or "held out", the
        518 photographs that nobody judged.
    """
    check_subjects(subjects)
    _check_protocols(protocols)
    source, name = _source(path, features)
    base = settings or AnimalSettings(subjects[0], protocols[0])
    # Read here, so that anything wrong with the data is said before a worker starts.
    data = {s: source.photographs(s, name, speeded).fingerprint for s in subjects}
    base = replace(base, features=name, speeded=speeded)
    variants = [
        replace(base, subject=subject, protocol=protocol, data=data[subject])
        for protocol in protocols
        for subject in subjects
    ]
    records = run_trials(
        Experiment("animal", partial(animal_trial, source=source)),
        variants,
        trials=trials,
        seed=seed,
        jobs=jobs,
        file=Path(out) / "trials-animal.jsonl",
        progressbar=progressbar,
    )
    scores = _all_scores(records)
    summary = summarise(scores, ("test", "protocol", "score", "subject", "model"))
    summary["printed"] = [_printed(row) for row in summary.itertuples(index=False)]
    tested = summary[(summary["test"] == "half") & summary["model"].isin(MODELS)]
    return write(
        out,
        output_name("animal", name, "pca50", speeded),
        scores=scores,
        summary=summary,
        document=_document(scores, summary, records, variants, trials, seed),
        figure=tested[tested["score"] == "accuracy"],
        panels=("protocol", "subject"),
    )


def output_name(stem: str, features: str, usual: str, speeded: bool) -> str:
    """Name of the files of a run: other features or labels do not overwrite the usual ones."""
    return stem + ("" if features == usual else f"-{features}") + ("-speeded" if speeded else "")


def check_subjects(subjects: Sequence[str]) -> None:
    """Refuse codes that no annotator has."""
    if not subjects or not set(subjects) <= set(SUBJECTS):
        raise ModelError(f"subjects = {subjects!r}; expected some of {', '.join(SUBJECTS)}.")


def _check_protocols(protocols: Sequence[str]) -> None:
    if not protocols or not set(protocols) <= set(PROTOCOLS):
        raise ModelError(f"protocols = {protocols!r}; expected some of {', '.join(PROTOCOLS)}.")


def _source(path: str | Path | None, features: str | pd.DataFrame) -> tuple[Source, str]:
    """Where the data are, and a name for the features."""
    if isinstance(features, pd.DataFrame):
        if not features.index.is_unique:
            raise DataError("features has repeated image numbers; expected one row per image.")
        return Source.at(path, features), OWN_FEATURES
    if features not in NAMED_FEATURES:
        raise ModelError(
            f"features = {features!r}; expected one of {', '.join(NAMED_FEATURES)}, or a DataFrame."
        )
    return Source.at(path), features


def _all_scores(records: Sequence[Record]) -> pd.DataFrame:
    columns = ("protocol", "subject")
    half = [tidy(records, columns, key=key) for key in ("scores", "variants")]
    tables = [pd.concat(half).assign(test="half")]
    rest = tidy(records, columns, key="held_out")
    if not rest.empty:
        tables.append(rest.assign(test="held out"))
    return pd.concat(tables, ignore_index=True)


def _printed(row: Any) -> float:
    if row.test != "half" or row.model not in MODELS:
        return float("nan")
    return printed.ANIMAL[row.score][row.model].get(row.subject, float("nan"))


def _document(
    scores: pd.DataFrame,
    summary: pd.DataFrame,
    records: Sequence[Record],
    variants: Sequence[AnimalSettings],
    trials: int,
    seed: int,
) -> Document:
    subjects = list(dict.fromkeys(v.subject for v in variants))
    protocols = list(dict.fromkeys(v.protocol for v in variants))
    blocks: list[str | pd.DataFrame] = [
        f"Mean over {trials} resamples (seed {seed}) ± its standard error; in brackets what the "
        "paper prints. Best in bold, second in italics; Real sees the true classes and does not "
        "compete. All resamples share the same 500 photographs, so the standard errors are those "
        "of the resampling alone.",
        _deviations(variants[0]),
    ]
    half = summary[summary["test"] == "half"]
    for score in TABLE_ORDER:
        for protocol in protocols:
            part = half[(half["score"] == score) & (half["protocol"] == protocol)]
            part = part[part["model"].isin(MODELS)]
            blocks.append(f"**{score}, {protocol} protocol**")
            blocks.append(_table(part, subjects, score))
    blocks += _held_out(summary, subjects, protocols)
    blocks.append(
        "**Do SPM and PsychM beat Naive and Elkan?** Mean difference in accuracy ± its standard "
        "error, and the share of resamples in which the first was strictly better. Naive with an "
        "L1 penalty has no model of the annotator and the sparse slopes of SPM."
    )
    contrasts = compare_rivals(scores)
    for protocol in protocols:
        blocks.append(f"*{protocol} protocol*")
        blocks.append(_contrast_table(contrasts[contrasts["protocol"] == protocol], subjects))
    blocks.append(_verdict(contrasts))
    blocks.append("**Variants of SPM and PsychM**, accuracy.")
    for protocol in protocols:
        part = half[(half["score"] == "accuracy") & (half["protocol"] == protocol)]
        blocks.append(f"*{protocol} protocol*")
        blocks.append(_table(part[part["model"].str.contains(",")], subjects, "accuracy"))
    blocks.append(_fates(records))
    return Document("Human annotators: go/no-go animal categorisation", tuple(blocks))


def _table(part: pd.DataFrame, subjects: Sequence[str], score: str) -> pd.DataFrame:
    models = list(dict.fromkeys(part["model"]))
    return score_table(part, rows="model", columns="subject", order=(models, subjects), score=score)


def _deviations(settings: AnimalSettings) -> str:
    features = f"features are “{settings.features}” of another network than VGG16"
    if settings.features == OWN_FEATURES:
        features = "features are those given"
    return (
        "The data and the fits differ from the paper's. Only one day of the experiment is public, "
        f"so there are 500 photographs and not 1000; {features}. Penalties are "
        f"{', '.join(f'{C:g}' for C in settings.Cs)} for a (L2) and "
        f"{', '.join(f'{C:g}' for C in settings.C_alphas)} for α (L1) on standardised columns, "
        f"chosen in every resample by {settings.folds}-fold Brier score on (X, l). PsychM starts "
        f"at γ = {settings.gamma_start:g}, λ = {settings.lam_start:g} as in the paper, with "
        "small random slopes. The optimiser runs to convergence and is not Nadam or Adam. After "
        "the fit of SPM, the steeper factor is taken for the class (Algorithm 1 as described in "
        "the text); PsychM is left as fitted."
    )


def _held_out(
    summary: pd.DataFrame, subjects: Sequence[str], protocols: Sequence[str]
) -> list[str | pd.DataFrame]:
    rest = summary[(summary["test"] == "held out") & summary["model"].isin(MODELS)]
    blocks: list[str | pd.DataFrame] = []
    for protocol in protocols if not rest.empty else ():
        for score in ("AUC", "accuracy"):
            part = rest[(rest["score"] == score) & (rest["protocol"] == protocol)]
            blocks.append(
                f"**{score} on the 518 photographs nobody judged**, trained by the {protocol} "
                "protocol (84 of them show an animal)"
            )
            blocks.append(_table(part, subjects, score))
    return blocks


def compare_rivals(scores: pd.DataFrame, *, score: str = "accuracy") -> pd.DataFrame:
    """SPM and PsychM against Naive and Elkan, and SPM against a sparse Naive, by resample.

    Returns
    -------
    DataFrame
        protocol, subject, ours, rival, mean difference (signed so that above 0 ours is better), its
        standard error, share of resamples in which ours was strictly better.
    """
    part = scores[(scores["test"] == "half") & (scores["score"] == score)]
    sign = -1.0 if score in LOWER_IS_BETTER else 1.0
    rows = []
    for (protocol, subject), group in part.groupby(["protocol", "subject"], sort=False):
        wide = group.pivot_table(index="trial", columns="model", values="value")
        for ours, rival in RIVALS:
            difference = sign * (wide[ours] - wide[rival]).to_numpy()
            rows.append(
                {
                    "protocol": protocol,
                    "subject": subject,
                    "ours": ours,
                    "rival": rival,
                    "mean": difference.mean(),
                    "se": standard_error(difference),
                    "share_better": float(np.mean(difference > 0)),
                }
            )
    return pd.DataFrame(rows)


def _contrast_table(contrasts: pd.DataFrame, subjects: Sequence[str]) -> pd.DataFrame:
    table = pd.DataFrame(
        "",
        index=pd.Index([f"{a} − {b}" for a, b in RIVALS], name="difference"),
        columns=list(subjects),
    )
    for row in contrasts.itertuples(index=False):
        text = f"{row.mean:+.4f} ± {row.se:.4f} ({100 * row.share_better:.0f} %)"
        table.loc[f"{row.ours} − {row.rival}", row.subject] = text
    return table


def _verdict(contrasts: pd.DataFrame) -> str:
    """Where ours is better, worse or the same by more than two standard errors."""
    sentences = []
    for (protocol, ours, rival), group in contrasts.groupby(
        ["protocol", "ours", "rival"], sort=False
    ):
        beyond = 2 * group["se"].fillna(0)
        better = list(group["subject"][group["mean"] > beyond])
        worse = list(group["subject"][group["mean"] < -beyond])
        even = [s for s in group["subject"] if s not in better + worse]
        parts = [
            f"{word} {', '.join(names)}"
            for word, names in (("better for", better), ("worse for", worse), ("even for", even))
            if names
        ]
        sentences.append(f"{ours} against {rival}, {protocol} protocol: {'; '.join(parts)}.")
    return "By more than two standard errors — " + " ".join(sentences)


def _fates(records: Sequence[Record]) -> str:
    """How often s came out constant, or steeper than t."""
    parts = []
    for model in ("SPM", "PsychM", "PsychM, best of many starts"):
        fitted = [r["outcome"]["fitted"][model] for r in records]
        constant = np.mean([f["slopes_of_s"] == 0 for f in fitted])
        steeper = np.mean([f["s_steeper"] for f in fitted])
        parts.append(f"{model}: {constant:.0%} and {steeper:.0%}")
    return (
        "In some fits the fitted s(x) is constant (the model is then SCAR, or Naive if the "
        "constant is 1). In others s is steeper than t: the factors are swapped, which the labels "
        f"cannot show. Shares of both: {'; '.join(parts)}."
    )
