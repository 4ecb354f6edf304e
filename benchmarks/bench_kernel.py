"""The fused kernel against one read of X, and against PyTensor on the same density.

"One read" is a numba loop that sums the entries of X with reordering allowed, on one thread: the
least that any function of all of X can cost. PyTensor gets its numba mode and the faster of two
stable forms, the log-sum-exp of the odds and the sum of positive terms.
"""

from collections.abc import Callable

import numpy as np
import pytensor
import pytensor.tensor as pt
from numba import njit

from bayes_lepu import rows as likelihood
from bayes_lepu.rows import Links, Point, Rows, evaluation, make_point, make_rows
from benchmarks.machine import interleaved, ratio

LOG_W_PSYCHM = np.log([0.1, 0.2, 0.7])
Term = pt.TensorVariable
MODELS = {"spm": likelihood.CERTAIN_LINK, "psychm": LOG_W_PSYCHM}
Arguments = tuple[Rows, Links, Point]


@njit(fastmath=True)
def read_once(x: np.ndarray) -> float:
    """Sum of all entries, one thread."""
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


def arguments(n: int, p: int, model: str, *, annotators: int = 1) -> Arguments:
    """Standard normal X, 30 % labelled, slopes of predictors with sd about 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    labels = rng.random((n, annotators)) < 0.3
    a, *alpha = rng.normal(size=(1 + annotators, p)) / np.sqrt(p)
    beta = np.full(annotators, -0.2)
    point = make_point(a=a, b=0.1, alpha=alpha, beta=beta, rates=MODELS[model])
    return make_rows(X, labels), Links(), point


def pytensor_form(model: str, form: str, args: Arguments) -> Callable[[], list]:
    """The compiled log-likelihood and gradient of PyTensor, as a call without arguments."""
    rows, _, point = args
    X, labels = rows.X, rows.labels[0]
    coefs = [pt.dvector("a"), pt.dscalar("b"), pt.dvector("alpha"), pt.dscalar("beta")]
    values = [point.a, point.b, point.alpha[0], point.beta[0]]
    tau = pt.dot(pt.constant(X), coefs[0]) + coefs[1]
    omega = pt.dot(pt.constant(X), coefs[2]) + coefs[3]
    logits = pt.dvector("logits")  # of (gamma, lambda) against rho
    log_w = pt.special.log_softmax(pt.concatenate([logits, [0.0]]))
    if model == "psychm":
        coefs, values = [*coefs, logits], [*values, LOG_W_PSYCHM[:2] - LOG_W_PSYCHM[2]]
    make = {"logsumexp": _logsumexp_form, "positive terms": _positive_form}[form]
    loglik = make(pt.constant(labels.astype(float)), tau, omega, None if model == "spm" else log_w)
    compiled = pytensor.function(coefs, [loglik, *pt.grad(loglik, coefs)], mode="NUMBA")
    compiled.trust_input = True
    inputs = [np.asarray(value, dtype=float) for value in values]
    _check(model, form, args, compiled(*inputs))
    return lambda: compiled(*inputs)


def _logsumexp_form(l: Term, tau: Term, omega: Term, log_w: Term | None) -> Term:
    def logsumexp(terms: list[Term]) -> Term:
        highest = terms[0]
        for term in terms[1:]:
            highest = pt.maximum(highest, term)
        return highest + pt.log(sum(pt.exp(term - highest) for term in terms))

    if log_w is None:
        eta = -logsumexp([-tau, -omega, -tau - omega])
    else:
        log_gamma, log_lam, log_rho = log_w[0], log_w[1], log_w[2]
        log_k, log_not_gamma = pt.logaddexp(log_gamma, log_rho), pt.logaddexp(log_lam, log_rho)
        odds_against = [log_lam + 0 * tau, log_not_gamma - omega, -tau, -tau - omega]
        eta = pt.logaddexp(log_k, log_gamma - omega) - logsumexp(odds_against)
    return pt.sum(l * eta - pt.softplus(eta))


def _positive_form(l: Term, tau: Term, omega: Term, log_w: Term | None) -> Term:
    t, not_t = pt.sigmoid(tau), pt.sigmoid(-tau)
    psi, not_psi = pt.sigmoid(omega), pt.sigmoid(-omega)
    if log_w is not None:
        w = pt.exp(log_w)
        psi, not_psi = w[0] + w[2] * psi, w[1] + w[2] * not_psi
    return pt.sum(pt.log(pt.switch(pt.eq(l, 1), t * psi, not_t + t * not_psi)))


def _check(model: str, form: str, args: Arguments, output: list) -> None:
    loglik, gradient = likelihood.loglik_grad(*args)
    theirs = np.hstack([np.ravel(part) for part in output[1:]])
    if not np.allclose(output[0], loglik) or not np.allclose(theirs, gradient[: theirs.size]):
        raise RuntimeError(f"PyTensor's {form} form of {model} is not the kernel's density.")


def run() -> dict[str, float | str]:
    """Ratios of times, and milliseconds for orientation."""
    figures: dict[str, float | str] = {}
    large = {model: arguments(1_000_000, 20, model) for model in MODELS}
    X = large["spm"][0].X
    calls: dict[str, Callable] = {"read": lambda: read_once(X.ravel())}
    for model, args in large.items():
        calls[model] = lambda args=args: likelihood.loglik_grad(*args)
        calls[f"{model} pair"] = lambda args=args: likelihood.evaluation.loglik_grad_pair(*args)
    times = interleaved(calls, repeats=21)
    figures["1M x 20: ms to read X once"] = 1e3 * min(times["read"])
    for model in MODELS:
        figures[f"1M x 20 {model}: gradient / one read of X"] = ratio(times, model, "read")
        figures[f"1M x 20 {model}: pair / gradient"] = ratio(times, f"{model} pair", model)

    for model in MODELS:
        small = arguments(5_000, 5, model)
        calls = {
            "ours": lambda args=small: likelihood.loglik_grad(*args),
            "pair": lambda args=small: likelihood.evaluation.loglik_grad_pair(*args),
            "info": lambda args=small: likelihood.loglik_grad_info(*args),
            "rows": lambda args=small: likelihood.row_terms(*args),
        }
        forms = ("logsumexp", "positive terms")
        calls |= {form: pytensor_form(model, form, small) for form in forms}
        times = interleaved(calls, repeats=31)
        ratios = {form: ratio(times, form, "ours") for form in forms}
        best = min(forms, key=ratios.__getitem__)
        name = f"5000 x 5 {model}"
        figures[f"{name}: microseconds of the gradient"] = 1e6 * min(times["ours"])
        figures[f"{name}: PyTensor's faster stable form"] = best
        figures[f"{name}: PyTensor / gradient"] = ratios[best]
        figures |= {f"{name}: {k} / gradient": ratio(times, k, "ours") for k in ("pair", "info")}
        figures[f"{name}: pointwise / gradient"] = ratio(times, "rows", "ours")
    return figures | _annotators()


def _annotators() -> dict[str, float | str]:
    """The cost of further annotators of the same rows, and of the general form for one."""
    one = arguments(10_000, 10, "spm")
    calls: dict[str, Callable] = {"one": lambda: likelihood.loglik_grad(*one)}
    calls["general"] = lambda: evaluation.several_grad(one[0], one[1].codes, one[2])
    five = arguments(10_000, 10, "spm", annotators=5)
    calls["five"] = lambda: likelihood.loglik_grad(*five)
    times = interleaved(calls, repeats=31)
    return {
        "10000 x 10 spm: general form / one annotator": ratio(times, "general", "one"),
        "10000 x 10 spm: five annotators / one annotator": ratio(times, "five", "one"),
    }
