"""Random calls over all options: an answer without a NaN or an error of ours, and nothing else.

The tables are small on purpose: what breaks is found in the shapes, scales, types and combinations.
"""

import inspect
import re
import signal
import warnings

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu import Prior

FAST, SLOW, BATCHES = 150, 1000, 20
SECONDS = 120  # of CPU, after which a call is taken to hang
SCALES = (1e-300, 1e-160, 1e-30, 1e-8, 1.0, 1.0, 1.0, 1.0, 1e8, 1e30, 1e160, 1e300)
KINDS = ("array", "int", "bool", "frame", "frame", "frame", "index", "words", "words", "gaps")
MODELS = (*lepu.list_models(), "psychm", "spm", "spm", "probit", "auto")
OTHERS = {  # values of an option, the last of them wrong
    "class_link": ("probit", "cloglog", "loglog", "cauchit", "curve"),
    "class_learner": (None, "trees", "forest"),
    "false_marks": (True, Prior("beta", concentration=(1, 50)), "yes"),
    "audits": ("random", "chosen", "some"),
    "class_prior": ((0.3, 0.05), (0.5, 0.2), (0.999, 1e-4), (1.5, 0.1)),
    "label_frequency": ((0.3, 0.05), (0.5, 0.2), (0.01, 1e-4), "half"),
    "class_features": (["c0"], "~ c0", "~ c0 + c1", "~ bs(c0, df=4)", "~ (1 | c1)", []),
    "selection_features": (["c1"], ["c0"], "~ c1", "~ c0:c1", "~ log1p(c1)", "~ 1 << 9"),
    "exclude": (["c1"], ["c9"]),
    "missing": ("indicator", "impute", "guess"),
    "standardize": (False, "no"),
    "penalty": ("l2", "l1", "none", {"a": "l1", "alpha": "l2"}, "l3"),
    "C": (0, 1e-12, 1e-3, 1, np.float32(0.5), {"a": 1, "alpha": 0.1}, 1e6, 1e200, np.nan),
    "priors": (
        {"a": Prior("normal", scale=1.0)},
        {"alpha": {"c1": Prior("negative", scale=1.0)}},
        {"b": Prior("student-t", scale=3.0, nu=2.0), "a": Prior("laplace", scale=1.0)},
        {"rates": Prior("dirichlet", concentration=(1, 1, 9))},
        {"a": 3},
    ),
    "orientation": ("norm", "none", "best"),
    "draws": (4, 25, 60, 0),
    "tune": (1, 30, 100, -5),
    "chains": (1, 2, 3, 0),
    "cores": (1, 2, 0),
    "target_accept": (0.5, 0.99, "a"),
    "sampler": ("nutpie", "pymc", "stan"),
}
WRONG = 0.04


def table(rng):
    """A table and labels: odd shapes, scales, types and dependences between columns."""
    n, p = int(rng.integers(2, 60)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, p)) * rng.choice(SCALES)
    shape = rng.choice(["plain", "plain", "twin", "sum", "constant", "nearly constant", "huge"])
    if shape in ("twin", "sum"):
        X[:, -1] = X[:, 0] if shape == "twin" else X.sum(axis=1)
    elif "constant" in shape:
        X[:, 0] = X[0, 0]
        X[-1, 0] *= 1.5 if "nearly" in shape else 1
    elif shape == "huge":
        X[0] *= 1e6
    rate, kind = rng.choice([0.0, 0.5, 0.5, 0.5, 1.0, 2.0]), rng.choice(KINDS)
    l = (X[:, 0] > np.median(X[:, 0]) if rate == 2 else rng.random(n) < rate).astype(int)
    l[rng.integers(n)] ^= rate in (0, 1)
    if kind == "int":
        return np.round(X / np.max(np.abs(X)) * 100).astype(np.int64), l
    if kind in ("array", "bool"):
        return (X if kind == "array" else X > 0), l
    index = [f"r{i}" for i in rng.permutation(n)] if kind == "index" else None
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(p)], index=index)
    if kind == "words":
        frame[f"c{p - 1}"] = rng.choice(["north", "south", "c=1", "é"], n)
    return (frame.mask(rng.random(frame.shape) < 0.1) if kind == "gaps" else frame), l


def call(seed, *, method=None):
    """A table, labels and options."""
    rng = np.random.default_rng([8, seed])
    X, l = table(rng)
    options = {"random_seed": int(rng.integers(100)), "progressbar": False, "model": "spm"}
    options["model"] = str(rng.choice(MODELS)) if rng.random() > WRONG else "none such"
    options["method"] = method or str(rng.choice(["map", "laplace", "nuts"], p=[0.5, 0.35, 0.15]))
    options |= {"draws": 25, "tune": 60, "chains": 2}
    n = len(l)
    if rng.random() < 0.25:
        options["y"] = np.where(rng.random(n) < 0.3, np.maximum(l, rng.integers(0, 2, n)), np.nan)
    for name, values in OTHERS.items():
        useless = name in ("C", "penalty") and options["method"] != "map"
        if rng.random() < (0.03 if useless or (name == "audits" and "y" not in options) else 0.13):
            at = -1 if rng.random() < WRONG else rng.integers(len(values) - 1)
            options[name] = values[at]
    if rng.random() < 0.15:
        options["sample_weight"] = rng.choice([0, 1e-300, 0.5, 1, 1, 3, 1e9], n)
    if rng.random() < 0.12:
        L = np.where(
            rng.random((n, 3)) < 0.2, np.nan, (rng.random((n, 3)) < 0.5) | (l > 0)[:, None]
        )
        l = pd.DataFrame(L, columns=["anna", "ben", "carl"], index=getattr(X, "index", None))
        if rng.random() < 0.3:
            options["visits"] = {"hours": rng.random((n, 3))}
    return X, l, options, rng


def readable(message):
    """Whether a message says something, and no list in it is empty."""
    return len(message) > 20 and not re.search(r"[:,;] *[.)](\s|$)|\S  \S| [.,]", message)


def use(fit, X, rng, folder):
    """What one does with a fit, each step an answer or an error of ours."""
    n = fit.data.n
    steps = {
        "decide": lambda: fit.decide(budget=3),
        "plan": lambda: fit.suggest_audit(3, goal=str(rng.choice(["total", "find"]))),
        "audits": lambda: fit.audit_estimate(),
        "groups": lambda: fit.class_prior(by=np.arange(n) < n / 2),
        "ratio": lambda: fit.compare_groups(np.arange(n) < n / 2, True, False),
        "bounds": lambda: fit.bounds(s_min=0.2),
        "summary": lambda: fit.summary(),
        "update": lambda: fit.update(method="map", class_prior=(0.4, 0.1)).class_prior(),
        "report": lambda: fit.report(folder / "r.html"),
        "save": lambda: str(lepu.load(fit.save(folder / "f.nc"))) == str(fit),
    }
    for name in rng.choice(list(steps), 3, replace=False):
        try:
            assert steps[name]() is not False, name
        except lepu.LepuError as error:
            assert readable(str(error)), name  # noqa: PT017 - either outcome is right


def check(seed, folder, *, method=None, judge=True):
    X, l, options, rng = call(seed, method=method)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", lepu.LepuWarning)
        warnings.filterwarnings("ignore", "Importing 'IfElse'", DeprecationWarning)
        try:
            fit = lepu.fit(X, l, **options)
        except lepu.LepuError as error:
            assert readable(str(error))  # noqa: PT017 - either outcome is right
            return "refused"
        found = [fit.missed()["mean"], fit.pi_draws, fit.missed(total=True)["mean"] / 1e12]
        if not pd.DataFrame(X).isna().any(axis=None):
            found += [fit.predict_proba(X)[:, 1], fit.propensity(X)["mean"], fit.missed(X)["mean"]]
        for values in found:
            assert np.all((np.asarray(values) >= 0) & (np.asarray(values) <= 1))  # no NaN either
        if judge:
            card = str(fit)
            assert "level" in card
            assert not re.search(r"\bnan\b|\binf\b", card), card
            use(fit, X, rng, folder)
    return "answered"


def limited(seed, folder, **options):
    """A call that may not take for ever."""

    def hangs(*_):
        raise AssertionError("the call hangs")

    signal.signal(signal.SIGVTALRM, hangs)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        return check(seed, folder, **options)
    except Exception as error:
        error.add_note(f"seed {seed}: {call(seed)[2]}")
        raise
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def test_every_option_is_tried():
    options = {
        n for n, p in inspect.signature(lepu.fit).parameters.items() if p.kind == p.KEYWORD_ONLY
    }
    always = {"model", "method", "random_seed", "progressbar", "y", "sample_weight", "visits"}
    assert options == always | set(OTHERS)


def test_any_call_gets_an_answer_or_a_clear_error(tmp_path):
    found = [limited(seed, tmp_path, method="map", judge=seed % 10 == 0) for seed in range(FAST)]
    assert found.count("answered") > FAST / 3


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_many_calls_get_an_answer_and_a_verdict(batch, tmp_path):
    size = SLOW // BATCHES
    for seed in range(batch * size, (batch + 1) * size):
        limited(seed, tmp_path)
