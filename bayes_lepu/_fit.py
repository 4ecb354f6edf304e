"""`fit`: from a table and labels to an answer, the stages in order."""

import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.data import PUData, read_data, warn_if_small
from bayes_lepu.errors import ConvergenceWarning, ModelError
from bayes_lepu.inference.map import MapResult, fit_map
from bayes_lepu.inference.orientation import check_rule
from bayes_lepu.links import RowKind
from bayes_lepu.models import get_model
from bayes_lepu.models.parameters import Parameters, stack
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors import DEFAULT_C, Prior, Priors, default_priors, penalty_priors
from bayes_lepu.result import Fit

if TYPE_CHECKING:
    import pymc as pm

METHODS = ("map",)


def fit(
    X: Any,
    l: Any,
    *,
    model: str = "psychm",
    method: str = "map",
    y: Any = None,
    class_features: Sequence[str | int] | None = None,
    selection_features: Sequence[str | int] | None = None,
    standardize: bool = True,
    penalty: str | Mapping[str, str] | None = None,
    C: float | Mapping[str, float] | None = None,
    priors: Priors | None = None,
    orientation: str = "sigma-norm",
    n_starts: int | None = None,
    optimizer: str = "auto",
    random_seed: int | None = None,
) -> Fit:
    r"""Learn the classifier t(x) = P(y=1 | x) and the propensity s(x) = P(l=1 | y=1, x).

    .. math:: P(l=1 \mid x) = s(x)\,t(x), \qquad t(x) = \sigma(a\cdot x + b)

    Parameters
    ----------
    X : DataFrame or array of shape (n, p)
        Features. Column names are kept and matched in predictions.
    l : sequence of 0/1 or bool
        Visible labels: 1 only for positives.
    model : {"naive", "scar", "spm", "psychm"}
        The labelling mechanism; see `list_models`.
    method : {"map"}
        ``map``: the mode of the posterior, which is the paper's penalised MLE.
    y : sequence, optional
        Audited classes (0 or 1), NaN where unknown.
    class_features, selection_features : sequence, optional
        Columns that may enter t and s. Different columns settle which factor is which.
    standardize : bool
        Work on standardised columns; penalties and priors refer to that scale.
    penalty : {"l2", "l1", "none"} or mapping with keys "a", "alpha"
        The paper's penalty on each factor's slopes. Default for MAP: "l2".
    C : float or mapping with keys "a", "alpha"
        The paper's penalty coefficients. Default 0.01.
    priors : mapping of str to Prior, optional
        Priors by parameter name, on top of the defaults.
    orientation : {"sigma-norm", "norm", "energy", "none"}
        How SPM's two factors are told apart where the data cannot.
    n_starts : int, optional
        Number of starts of the search for modes.
    optimizer : {"auto", "scoring", "lbfgs", "adam", "nadam"}
    random_seed : int, optional
        Seed of every random draw.

    Returns
    -------
    Fit

    Examples
    --------
    >>> import bayes_lepu as lepu
    >>> demo = lepu.load_demo()
    >>> fit = lepu.fit(demo.X, demo.l, model="psychm", method="map", random_seed=1)
    >>> fit.predict_proba(demo.X).shape
    (2500, 2)
    """
    spec = get_model(model)
    if method not in METHODS:
        raise ModelError(f"Unknown method {method!r}. Known: {', '.join(METHODS)}.")
    check_rule(orientation)
    data = read_data(
        X,
        l,
        y=y,
        class_features=class_features,
        selection_features=selection_features,
        standardize=standardize,
    )
    _check_audit(spec, data)
    chosen = _choose_priors(spec, data, method, penalty, C, priors)
    settings = {
        "model": model,
        "method": method,
        "standardize": standardize,
        "orientation": orientation,
        "n_starts": n_starts,
        "optimizer": optimizer,
        "random_seed": random_seed,
        "versions": {p: version(p) for p in ("bayes-lepu", "numpy", "numba", "scipy", "pandas")},
    }
    rng = np.random.default_rng(random_seed)
    result = fit_map(
        spec, data, chosen, rule=orientation, n_starts=n_starts, optimizer=optimizer, rng=rng
    )
    _warn_unconverged(result)
    return Fit(
        spec=spec,
        data=data,
        priors=chosen,
        method=method,
        parameters=_as_single_draw(result.point),
        modes=result.modes,
        orientation=result.orientation,
        settings={**settings, "kkt_residual": result.kkt},
    )


def build_model(
    X: Any,
    l: Any,
    *,
    model: str = "psychm",
    y: Any = None,
    class_features: Sequence[str | int] | None = None,
    selection_features: Sequence[str | int] | None = None,
    standardize: bool = True,
    priors: Priors | None = None,
) -> "pm.Model":
    """The PyMC model, to inspect, extend, or sample by other means.

    Arguments are those of `fit`; the priors are the default ones with ``priors`` on top.

    Examples
    --------
    >>> import bayes_lepu as lepu
    >>> demo = lepu.load_demo()
    >>> [v.name for v in lepu.build_model(demo.X, demo.l, model="scar").free_RVs]
    ['a', 'b', 'c']
    """
    spec = get_model(model)
    data = read_data(
        X,
        l,
        y=y,
        class_features=class_features,
        selection_features=selection_features,
        standardize=standardize,
    )
    _check_audit(spec, data)
    return spec.build(data, _choose_priors(spec, data, "nuts", None, None, priors))


def _choose_priors(
    spec: ModelSpec,
    data: PUData,
    method: str,
    penalty: str | Mapping[str, str] | None,
    C: float | Mapping[str, float] | None,
    overrides: Priors | None,
) -> dict[str, Prior]:
    if method == "map":
        base = penalty_priors(penalty or "l2", DEFAULT_C if C is None else C)
    else:
        if penalty is not None or C is not None:
            raise ModelError(
                "penalty and C belong to method='map' (they leave the intercepts flat, which has "
                "no proper posterior). Give priors={'a': Prior(...), 'alpha': Prior(...)} instead."
            )
        base = default_priors(int(data.class_mask.sum()), int(data.selection_mask.sum()))
    chosen = spec.complete_priors(base, overrides)
    flat = sum(
        int(mask.sum())
        for name, mask in (("a", data.class_mask), ("alpha", data.selection_mask))
        if name in chosen and not chosen[name].proper
    )
    if flat:
        warn_if_small(data, flat)
    return chosen


def _check_audit(spec: ModelSpec, data: PUData) -> None:
    missed = int(np.sum(data.kind == RowKind.MISSED))
    if spec.name == "naive" and missed:
        raise ModelError(
            f"{missed} unlabelled row(s) are audited as positive, which the naive model (s = 1) "
            "rules out. Use model='scar', 'spm' or 'psychm'."
        )


def _as_single_draw(point: Parameters) -> Parameters:
    return stack([stack([point])])


def _warn_unconverged(result: MapResult) -> None:
    if not result.modes[0].converged:
        warnings.warn(
            f"The best mode is not a converged optimum (residual {result.kkt:.2g}). Use more "
            "starts (n_starts=), a stronger penalty (C=), or optimizer='lbfgs'.",
            ConvergenceWarning,
            stacklevel=3,
        )
