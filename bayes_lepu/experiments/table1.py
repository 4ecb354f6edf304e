r"""Table 1: five models on simulated data with a known biased annotator.

.. math:: P(l=1 \mid x) = s(x)\,t(x), \qquad a, \alpha \sim N(0, \rho_1^2 I) + K R

Half of the rows train, with penalties chosen by 3-fold cross-validation of the Brier score on the
visible labels (Real: on the true classes); the other half scores P(y=1 | x) against the truth.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.datasets.dataset import PUDataset
from bayes_lepu.datasets.paper import Distribution, Ordering, simulate_paper
from bayes_lepu.errors import LepuError
from bayes_lepu.experiments import printed
from bayes_lepu.experiments.document import Document
from bayes_lepu.experiments.runner import Experiment, run_trials
from bayes_lepu.experiments.scores import MODELS, SCORES, class_scores, classifier_scores
from bayes_lepu.experiments.store import Record
from bayes_lepu.experiments.tables import Reproduction, score_table, summarise, tidy, write
from bayes_lepu.links import sigmoid

CS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


@dataclass(frozen=True)
class Table1Settings:
    """What a trial depends on, besides its seed.

    Attributes
    ----------
    n, p, gamma, lam, rho1, rho2, K, distribution, shared_rademacher, ordering
        As in `bayes_lepu.datasets.simulate_paper`; half of the ``n`` rows train.
    orientation : {"sigma-norm", "norm", "energy", "none"}
        The rule that names SPM's factors.
    Cs : tuple of float
        Penalties tried for each factor, on standardised columns.
    folds : int
    models : tuple of str
        Which of the five to run.
    """

    n: int = 5000
    p: int = 5
    gamma: float = 0.05
    lam: float = 0.05
    rho1: float = 10.0
    rho2: float = 1.0
    K: float = 5.0
    distribution: Distribution = "uniform"
    shared_rademacher: bool = False
    ordering: Ordering | None = None
    orientation: str = "sigma-norm"
    Cs: tuple[float, ...] = CS
    folds: int = 3
    models: tuple[str, ...] = MODELS


def synthetic_trial(settings: Table1Settings, rng: np.random.Generator) -> dict[str, Any]:
    """One simulated data set.

    Returns
    -------
    dict
        ``scores`` of every model; ``other_factor``: scores of σ(α·x+β) as a classifier, which is
        what the other naming of the factors would have given; ``named_right``; ``errors`` of
        models that could not be fitted.
    """
    data = simulate_paper(
        settings.n,
        p=settings.p,
        gamma=settings.gamma,
        lam=settings.lam,
        rho1=settings.rho1,
        rho2=settings.rho2,
        K=settings.K,
        distribution=settings.distribution,
        shared_rademacher=settings.shared_rademacher,
        ordering=settings.ordering,
        random_seed=rng,
    )
    assert data.l is not None  # a simulator knows both
    assert data.y is not None
    X, half = data.X.to_numpy(), settings.n // 2  # rows are exchangeable: no shuffling needed
    seed = int(rng.integers(2**31 - 1))
    scores, named, other, errors = {}, {}, {}, {}
    for name, classifier in contenders(settings, seed).items():
        target = data.y if name == "Real" else data.l
        try:
            classifier.fit(X[:half], target[:half])
        except LepuError as error:  # such as fewer labels than folds: one model's misfortune
            errors[name] = str(error)
            continue
        scores[name] = classifier_scores(classifier, X[half:], data.y[half:])
        if name in ("SPM", "PsychM"):
            named[name] = named_right(classifier, data)
            omega = X[half:] @ classifier.propensity_coef_[0] + classifier.propensity_intercept_[0]
            other[name] = class_scores(data.y[half:], sigmoid(omega))
    return {
        "scores": scores,
        "other_factor": other,
        "named_right": named,
        "errors": errors,
        "label_rate": float(data.l.mean()),
        "class_prior": float(data.y.mean()),
    }


def contenders(settings: Table1Settings, seed: int) -> dict[str, Any]:
    """The five classifiers of the paper, unfitted, by name."""
    from bayes_lepu.estimators import (
        ElkanNotoClassifierCV,
        NaiveClassifierCV,
        PsychMClassifierCV,
        SPMClassifierCV,
    )

    Cs, folds = settings.Cs, settings.folds
    made = {
        "SPM": SPMClassifierCV(
            Cs=Cs, cv=folds, orientation=settings.orientation, random_state=seed
        ),
        "PsychM": PsychMClassifierCV(Cs=Cs, cv=folds, random_state=seed),
        "Naive": NaiveClassifierCV(Cs=Cs, cv=folds),
        "Elkan": ElkanNotoClassifierCV(Cs=Cs, cv=folds, random_state=seed),
        "Real": NaiveClassifierCV(Cs=Cs, cv=folds),
    }
    return {name: made[name] for name in settings.models}


def named_right(classifier: Any, data: PUDataset) -> bool:
    """Whether the fitted (t, s) correlate better with the true (t, s) than with (s, t)."""
    X = data.X.to_numpy()
    tau, omega = data.truth["a"], data.truth["alpha"]
    fitted = np.array([classifier.parameters_.a, classifier.parameters_.alpha])
    predictors = X @ np.vstack([fitted, tau, omega]).T
    with np.errstate(invalid="ignore"):  # a factor without slopes correlates with nothing
        r = np.nan_to_num(np.corrcoef(predictors, rowvar=False)[:2, 2:])
    return bool(r[0, 0] + r[1, 1] >= r[0, 1] + r[1, 0])


def share_named_right(records: Sequence[Record], model: str) -> tuple[float, float]:
    """Share of trials in which a model's factors bear the right names, and its standard error."""
    outcomes = [r["outcome"]["named_right"] for r in records]
    right = np.array([o[model] for o in outcomes if model in o], dtype=float)
    if right.size == 0:
        return float("nan"), float("nan")
    share = float(right.mean())
    return share, float(np.sqrt(share * (1 - share) / right.size))


SYNTHETIC = Experiment("synthetic", synthetic_trial)


def table1(
    *,
    trials: int = 500,
    seed: int = 0,
    jobs: int | None = None,
    out: str | Path = "reproduction",
    settings: Table1Settings | None = None,
    progressbar: bool = True,
) -> Reproduction:
    """The paper's Table 1 with our numbers beside the printed ones.

    Parameters
    ----------
    trials : int
        The paper ran 500.
    seed, jobs, progressbar
        As in `run_trials`.
    out : path
        Folder of the results: finished trials (a later call goes on from there), and the table as
        CSV, Parquet, Markdown, HTML and a plot.
    settings : Table1Settings, optional
        Default: the generator the paper states, X uniform on (-1, 1).

    Returns
    -------
    Reproduction
    """
    settings = settings or Table1Settings()
    records = run_synthetic([settings], trials, seed, jobs, out, progressbar)
    scores = tidy(records, ())
    summary = summarise(scores, ("score", "model"))
    summary["printed"] = [
        printed.TABLE1[row.score][row.model] for row in summary.itertuples(index=False)
    ]
    return write(
        out,
        "table1",
        scores=scores,
        summary=summary,
        document=_document(summary, records, settings, trials, seed),
        panels=("score",),
    )


def run_synthetic(
    settings: Sequence[Table1Settings],
    trials: int,
    seed: int,
    jobs: int | None,
    out: str | Path,
    progressbar: bool,
) -> list[Record]:
    """Trials of the simulated experiment, kept in one file that all tables share."""
    return run_trials(
        SYNTHETIC,
        settings,
        trials=trials,
        seed=seed,
        jobs=jobs,
        file=Path(out) / "trials-synthetic.jsonl",
        progressbar=progressbar,
    )


def describe(settings: Table1Settings, *, rates: bool = True) -> str:
    """The settings of a run in words, with or without γ and λ."""
    changed = {k: v for k, v in asdict(settings).items() if v != getattr(Table1Settings(), k)}
    text = (
        f"Generator: N = {settings.n} rows, p = {settings.p}, "
        + (f"γ = {settings.gamma:g}, λ = {settings.lam:g}, " if rates else "")
        + f"ρ₁ = {settings.rho1:g}, ρ₂ = {settings.rho2:g}, "
        f"K = {settings.K:g}, X {settings.distribution}, Rademacher vectors "
        f"{'shared' if settings.shared_rademacher else 'independent'}, "
        f"{settings.ordering or 'no'} ordering of |a| and |α|. Penalties: "
        f"{', '.join(f'{C:g}' for C in settings.Cs)} for each factor, chosen by "
        f"{settings.folds}-fold Brier score on (X, l); SPM's factors named by the rule "
        f"“{settings.orientation}”."
    )
    if changed:
        listed = ", ".join(f"{k} = {v}" for k, v in changed.items())
        text += f" Different from the default: {listed}."
    return text


def _document(
    summary: pd.DataFrame,
    records: Sequence[Record],
    settings: Table1Settings,
    trials: int,
    seed: int,
) -> Document:
    outcomes = [r["outcome"] for r in records]
    label_rate = np.mean([o["label_rate"] for o in outcomes])
    named = [
        f"{name} {share:.3f}"
        for name in ("SPM", "PsychM")
        if np.isfinite(share := share_named_right(records, name)[0])
    ]
    blocks: list[str | pd.DataFrame] = [
        f"Mean over {trials} trials (seed {seed}) ± its standard error; in brackets what the "
        "paper prints. Best in bold, second in italics; Real sees the true classes and does "
        "not compete.",
        score_table(summary, rows="score", columns="model", order=(SCORES, settings.models)),
        describe(settings),
    ]
    if named:
        blocks.append(
            "Share of trials in which the fitted factors bear the right names: "
            f"{', '.join(named)}. Mean label rate {label_rate:.3f}."
        )
    if failed := sum(len(o["errors"]) for o in outcomes):
        blocks.append(f"{failed} fits failed and are left out; the trials file says why.")
    if set(MODELS) <= set(settings.models):
        blocks.append(_explanation(summary))
    return Document("Table 1: simulated data", tuple(blocks))


def _explanation(summary: pd.DataFrame) -> str:
    """How far our numbers are from the printed ones, and why."""
    accuracy = summary[summary["score"] == "accuracy"].set_index("model")
    ours, paper = accuracy["mean"], accuracy["printed"]
    gaps = ", ".join(f"{m} {ours['Real'] - ours[m]:.3f}" for m in MODELS if m != "Real")
    printed_gaps = ", ".join(f"{m} {paper['Real'] - paper[m]:.3f}" for m in MODELS if m != "Real")
    return (
        f"Accuracy below Real: {gaps}; as printed: {printed_gaps}. Under the paper's generator a "
        "and α have one distribution and independent directions, so that the positives an "
        "annotator misses lie together in one region, which Naive and Elkan call negative. No "
        "setting that was searched gives all five printed columns: numbers near .89 for Naive "
        "need a and α almost parallel (--shared-rademacher with a small --rho1). Where SPM's rule "
        "names the factors well although the true norms have one distribution, that is owed to "
        "the guess rate, which flattens the fitted annotator: see the ablation."
    )
