r"""One trial on simulated data with a known biased annotator, which Tables 1 and 2 repeat.

.. math:: P(l=1 \mid x) = s(x)\,t(x), \qquad a, \alpha \sim N(0, \rho_1^2 I) + K R

Half of the rows train, with penalties chosen by 3-fold cross-validation of the Brier score on the
visible labels (Real: on the true classes); the other half scores P(y=1 | x) against the truth.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bayes_lepu.datasets import PUDataset
from bayes_lepu.errors import LepuError
from bayes_lepu.links import sigmoid
from reproduction.datasets.simulator import Distribution, Ordering, simulate_paper
from reproduction.experiments.runner import Experiment, run_trials
from reproduction.experiments.scores import MODELS, class_scores, classifier_scores
from reproduction.experiments.store import Record

CS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


@dataclass(frozen=True)
class SyntheticSettings:
    """What a trial depends on, besides its seed.

    Attributes
    ----------
    n, p, gamma, lam, rho1, rho2, K, distribution, shared_rademacher, ordering
        As in `reproduction.datasets.simulate_paper`; half of the ``n`` rows train.
    orientation : {"sigma-norm", "norm", "none"}
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


def synthetic_trial(settings: SyntheticSettings, rng: np.random.Generator) -> dict[str, Any]:
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
            found = classifier.best_estimator_
            named[name] = named_right(found, data)
            omega = X[half:] @ found.propensity_coef_[0] + found.propensity_intercept_[0]
            other[name] = class_scores(data.y[half:], sigmoid(omega))
    return {
        "scores": scores,
        "other_factor": other,
        "named_right": named,
        "errors": errors,
        "label_rate": float(data.l.mean()),
        "class_prior": float(data.y.mean()),
    }


def contenders(settings: SyntheticSettings, seed: int) -> dict[str, Any]:
    """The five classifiers of the paper, unfitted, by name."""
    from bayes_lepu.estimators import ElkanNotoClassifier, PUClassifier
    from reproduction.experiments.searched import Searched

    def searched(model: str) -> Any:
        one = PUClassifier(model=model, orientation=settings.orientation, random_state=seed)
        grid = {"class_penalty": settings.Cs, "selection_penalty": settings.Cs}
        if model == "naive":
            grid.pop("selection_penalty")
        return Searched(one, grid, cv=settings.folds)

    elkan = ElkanNotoClassifier(random_state=seed)
    made = {
        "SPM": searched("spm"),
        "PsychM": searched("psychm"),
        "Naive": searched("naive"),
        "Elkan": Searched(elkan, {"class_penalty": settings.Cs}, cv=settings.folds),
        "Real": searched("naive"),
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


def run_synthetic(
    settings: Sequence[SyntheticSettings],
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


def describe(settings: SyntheticSettings, *, rates: bool = True) -> str:
    """The settings of a run in words, with or without γ and λ."""
    changed = {k: v for k, v in asdict(settings).items() if v != getattr(SyntheticSettings(), k)}
    text = (
        f"Generator: N = {settings.n} rows, p = {settings.p}, "
        + (f"γ = {settings.gamma:g}, λ = {settings.lam:g}, " if rates else "")
        + f"ρ₁ = {settings.rho1:g}, ρ₂ = {settings.rho2:g}, "
        f"K = {settings.K:g}, X {settings.distribution}, Rademacher vectors "
        f"{'shared' if settings.shared_rademacher else 'independent'}, "
        f"{settings.ordering or 'no'} ordering of |a| and |α|. Penalties: "
        f"{', '.join(f'{C:g}' for C in settings.Cs)} for each factor, chosen by "
        f"{settings.folds}-fold Brier score on (X, l); the orientation of SPM by the rule "
        f"“{settings.orientation}”."
    )
    if changed:
        listed = ", ".join(f"{k} = {v}" for k, v in changed.items())
        text += f" Different from the default: {listed}."
    return text
