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
from bayes_lepu.experiments import printed
from bayes_lepu.experiments.document import Document
from bayes_lepu.experiments.runner import Experiment, run_trials
from bayes_lepu.experiments.scores import MODELS, SCORES, classifier_scores
from bayes_lepu.experiments.store import Record
from bayes_lepu.experiments.tables import Reproduction, score_table, summarise, tidy, write

CS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
STATED = "γ = λ = .05, ρ₁ = 10, ρ₂ = 1, K = 5, N = 5000"


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
    """Scores of every model on one simulated data set, and whether its factors are named right."""
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
    assert data.l is not None
    assert data.y is not None
    X, half = data.X.to_numpy(), settings.n // 2  # rows are exchangeable: no shuffling needed
    seed = int(rng.integers(2**31 - 1))
    scores, named = {}, {}
    for name, classifier in contenders(settings, seed).items():
        target = data.y if name == "Real" else data.l
        classifier.fit(X[:half], target[:half])
        scores[name] = classifier_scores(classifier, X[half:], data.y[half:])
        if name in ("SPM", "PsychM"):
            named[name] = named_right(classifier, data)
    return {
        "scores": scores,
        "named_right": named,
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


def describe(settings: Table1Settings) -> str:
    """The settings of a run in words."""
    changed = {k: v for k, v in asdict(settings).items() if v != getattr(Table1Settings(), k)}
    text = (
        f"Generator: N = {settings.n} rows, p = {settings.p}, γ = {settings.gamma:g}, "
        f"λ = {settings.lam:g}, ρ₁ = {settings.rho1:g}, ρ₂ = {settings.rho2:g}, "
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
    named = {
        name: np.mean([o["named_right"][name] for o in outcomes])
        for name in ("SPM", "PsychM")
        if name in settings.models
    }
    rates = ", ".join(f"{name} {share:.3f}" for name, share in named.items())
    label_rate = np.mean([o["label_rate"] for o in outcomes])
    models = [m for m in MODELS if m in settings.models]
    return Document(
        "Table 1: simulated data",
        (
            f"Mean over {trials} trials (seed {seed}) ± its standard error; in brackets what the "
            "paper prints. Best in bold, second in italics; Real sees the true classes and does "
            "not compete.",
            score_table(summary, rows="score", columns="model", order=(SCORES, models)),
            describe(settings),
            f"Share of trials in which the fitted factors bear the right names: {rates}. "
            f"Mean label rate {label_rate:.3f}.",
            "Why the printed numbers differ: under the stated generator the annotator's slopes "
            "are as steep as the classifier's and point elsewhere, so that half of the positives "
            "are missed in a region that Naive and Elkan then call negative; no setting that was "
            "searched reproduces all five printed columns. SPM and PsychM, climbed from many "
            "starts, come close to Real. That SPM's rule works here is owed to the guess rate γ, "
            "which flattens the fitted annotator (see the ablation), not to the true norms, which "
            "have one distribution.",
        ),
    )
