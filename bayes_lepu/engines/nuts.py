r"""NUTS on the compiled log density, through nutpie and without compiling a PyTensor graph.

nutpie calls the density as a C function. Where it cannot (rows that are elsewhere, knowledge from
outside, another version of nutpie) it calls one in Python, with the same draws.

The sampler moves in whitened coordinates u, z = m + L u, where m is the mode with the largest
evidence and L L' the inverse curvature there: the ridge between the two intercepts (correlation
-0.98 and worse) becomes round before adaptation starts. Chains start at draws of that Gaussian.
Where the columns of the two factors are the same, the folded density is sampled (see `folding`).
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

import numpy as np

from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.engines import folding, orientation, pooling
from bayes_lepu.engines.laplace import Gaussian, Mixture
from bayes_lepu.errors import LOGGER, ModelError, tell
from bayes_lepu.links import Array
from bayes_lepu.model import compiled
from bayes_lepu.model.compiled import Whitened
from bayes_lepu.model.density import LogDensity
from bayes_lepu.priors.prior import Priors
from bayes_lepu.runtime.interruption import was_interrupted

LEAST_DRAWS = 4  # per chain, from which R-hat and effective sizes can be computed
FIRST, LONGEST = 10.0, 300.0  # seconds until the first line; each later one waits twice as long

STATS = {
    "diverging": "diverging",
    "energy": "energy",
    "n_steps": "n_steps",
    "tree_depth": "depth",
    "step_size": "step_size",
    "acceptance_rate": "mean_tree_accept",
}


@dataclass(frozen=True)
class NutsOptions:
    """Options of the sampler, in ArviZ's and PyMC's words."""

    draws: int
    tune: int
    chains: int
    cores: int | None
    target_accept: float
    random_seed: int
    progressbar: bool


@dataclass(frozen=True, eq=False)
class Sample:
    """Labelled draws in coordinates.

    Attributes
    ----------
    z : (chain, draw, dim) array
    stats : mapping of str to (chain, draw) array
        Sampler statistics; ``exchanged`` marks draws whose factors were exchanged against the
        pivot, ``mirrored`` those the sampler produced on the other side of it.
    probability : float or None
        Posterior probability of this naming of the factors before any rule.
    overruled : bool
        Whether a rule was to name the factors and the priors were followed instead.
    """

    z: Array
    stats: Mapping[str, Array] = field(default_factory=dict)
    probability: float | None = None
    overruled: bool = False


def refuse_improper(priors: Priors) -> None:
    """Flat priors have no posterior here: as β grows, s → 1 and the likelihood stays positive."""
    flat = [name for name, prior in priors.items() if not prior.proper]
    if flat:
        raise ModelError(
            f"Flat prior on {', '.join(flat)}: the posterior is improper for every data set. "
            "Use a proper prior such as Prior('normal', scale=1.5), or method='map'."
        )


def sample_nuts(
    density: LogDensity, start: Gaussian, *, options: NutsOptions
) -> tuple[Array, dict[str, Array]]:
    """Raw draws ``(chain, draw, dim)`` of the (folded) density and the sampler's statistics.

    Under unknown scales the sampler moves in coordinates that are centred as far as the data know
    each of them (see `pooling`).
    """
    centring, near = np.zeros(0), start
    if density.layout.has_scales:
        centring = pooling.choose_centring(density, start.mean)
        near = pooling.centred_gaussian(density, start, centring)
    order = density.swap_order if density.can_exchange else None
    root = np.ascontiguousarray(near.root)
    state = compiled.Whitened(near.mean, root, centring, order, density.constants)
    u, stats = sample_whitened(density, state, options)
    v = near.mean + u @ near.root.T
    return (pooling.from_centred(density, v, centring) if centring.size else v), stats


def sample_whitened(
    density: LogDensity, state: Whitened, options: NutsOptions
) -> tuple[Array, dict[str, Array]]:
    """Draws in the coordinates u of v = m + L u, with statistics."""
    import nutpie

    dim = state.mean.size

    def initial(seed: int) -> Array:
        # A function of the chain's seed alone: chains ask for it in the order of their threads.
        return np.random.default_rng([options.random_seed, 6, seed]).standard_normal(dim)

    model = None
    if density.data.is_closed and density.data.in_kernel:
        model = model_of_pointers(state, initial)
    if model is None:
        model = model_in_python(density, state, initial)
    aloud = options.progressbar and not has_screen()
    LOGGER.info(
        "Sampling %d chains of %d warm-up and %d draws", options.chains, options.tune, options.draws
    )
    sampler = nutpie.sample(
        model,
        draws=options.draws,
        tune=options.tune,
        chains=options.chains,
        cores=options.cores,
        seed=options.random_seed,
        target_accept=options.target_accept,
        save_warmup=False,
        progress_bar=options.progressbar and not aloud,
        progress_callback=Progress(aloud=aloud),
        blocking=False,
    )
    return wait(sampler)


def model_of_pointers(state: Whitened, initial: Callable[[int], Array]) -> Any:
    """Nutpie's model of a density that is a C function, so that no chain waits for Python.

    None where this version of nutpie has no such model.
    """
    try:
        from nutpie.compile_pymc import CompiledPyMCModel
    except ImportError:
        return None
    dim = state.mean.size
    given: dict[str, Any] = {
        "compiled_logp_func": compiled.c_density(state),
        "compiled_expand_func": compiled.c_copy(),
        "initial_point_func": initial,
        "user_data": compiled.written(state),
        "shape_info": (["u"], [slice(0, dim)], [(dim,)]),
        "n_expanded": dim,
        "shared_data": {"state": state},  # kept as long as the model
        "shared_var_keys": {},
        "logp_func": None,
        "expand_func": None,
        "dims": {},
        "_n_dim": dim,
        "_shapes": {"u": (dim,)},
        "_coords": {},
    }
    if {field.name for field in fields(CompiledPyMCModel) if field.default is MISSING} - set(given):
        return None
    return CompiledPyMCModel(**given)


def model_in_python(density: LogDensity, state: Whitened, initial: Callable[[int], Array]) -> Any:
    """Nutpie's model of a function in Python: rows that are elsewhere, or outside knowledge."""
    from nutpie.compiled_pyfunc import from_pyfunc

    dim = state.mean.size

    def logp_grad(u: Array) -> tuple[float, Array]:
        z = compiled.coordinates_of(u, state)
        found = density.logp_grad(z) if state.order is None else compiled.folded(*density.fold(z))
        return compiled.carried(*found, z, state)

    # Compiled here: in the sampler's threads an interrupt would wait for the compiler to finish.
    logp_grad(np.zeros(dim))
    return from_pyfunc(
        dim,
        lambda: logp_grad,
        lambda seed1, seed2, chain: lambda u: {"u": u},
        [np.dtype("float64")],
        [(dim,)],
        ["u"],
        make_initial_point_fn=initial,
    )


def wait(sampler: Any) -> tuple[Array, dict[str, Array]]:
    """Draws and statistics of nutpie's background sampler.

    nutpie's own waiting swallows Ctrl-C and returns chains of unequal length, filled up with NaN.
    Here an interrupt stops the sampler and goes on as `KeyboardInterrupt`.
    """
    try:
        trace = _finished(sampler)
        stats = {name: trace["sample_stats"][key].to_numpy() for name, key in STATS.items()}
        return trace["posterior"]["u"].to_numpy(), stats
    except BaseException:
        sampler.cancel()
        raise


def _finished(sampler: Any) -> Any:
    """What the sampler returns; looks now and then for an interrupt that was swallowed."""
    while True:
        try:
            return sampler.wait(timeout=0.5)
        except TimeoutError:
            if was_interrupted():
                raise KeyboardInterrupt from None


class Progress:
    """Told of the chains now and then, it says a line ever more seldom.

    Parameters
    ----------
    aloud : bool
        Whether to say it where nobody listens to the logger, too.
    """

    def __init__(self, *, aloud: bool) -> None:
        self._say = tell if aloud else LOGGER.info
        self._began = self._last = time.monotonic()
        self._pause = FIRST

    def __call__(self, chains: Sequence[Any]) -> None:
        """Look at the chains, each with ``finished_draws`` and ``total_draws``."""
        now = time.monotonic()
        done = sum(chain.finished_draws for chain in chains)
        if now - self._last < self._pause or not done:
            return
        self._last, self._pause = now, min(2 * self._pause, LONGEST)
        wanted = sum(chain.total_draws for chain in chains)
        left = (now - self._began) * (wanted - done) / done
        self._say(f"Sampled {done} of {wanted} draws, warm-up included; about {_span(left)} left")


def has_screen() -> bool:
    """Whether the sampler's own bar can be seen: in a terminal or a notebook."""
    return sys.stderr.isatty() or bool({"ipykernel", "marimo"} & set(sys.modules))


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def label_draws(
    density: LogDensity,
    z: Array,
    stats: Mapping[str, Array],
    reference: Array,
    rule: str,
    rng: np.random.Generator,
) -> Sample:
    """Name the factors of every draw: by the density, or by a rule for the whole mode.

    A rule is a guess made for want of better; where priors that treat the factors differently give
    its naming less than 5 %, the density decides.
    """
    if not density.can_exchange:
        return Sample(z, stats)
    if "mirrored" in stats:  # the draws are on one side already
        folded = folding.odds_of(density, z, stats["mirrored"] > 0)
    else:
        folded = folding.pivot(density, z, reference)
        stats = {**stats, "mirrored": folded.mirrored.astype(float)}
    asked = orientation.settled_by(density.spec, density.data, rule) == "rule"
    named = folded
    if asked and _rule_says_swap(density, folded.z, rule):
        named = folding.Folded(density.swap(folded.z), ~folded.mirrored, -folded.log_odds)
    if asked and named.probability >= 0.05:
        index = folding.condition_on_naming(named.weight, rng)
        kept = np.take_along_axis(named.z, index[..., None], axis=1)
        stats = {name: np.take_along_axis(v, index, axis=1) for name, v in stats.items()}
        return Sample(kept, stats, named.probability)
    labelled, exchanged = folding.keep_or_exchange(density, folded, rng)
    probability = folded.probability
    if exchanged.mean() > 0.5:
        # The other naming is the more probable one: make it the pivot.
        exchanged, probability = ~exchanged, 1 - probability
    stats = {**stats, "exchanged": exchanged.astype(float)}
    return Sample(labelled, stats, probability, overruled=asked)


def dominant(mixture: Mixture) -> Gaussian:
    """The mode with the largest evidence."""
    return max(mixture.parts, key=lambda g: g.log_evidence)


def _rule_says_swap(density: LogDensity, z: Array, rule: str) -> bool:
    """Whether the rule names the other factor in most of the mode's draws."""
    flat = z.reshape(-1, z.shape[-1])
    some = flat[evenly_spaced(len(flat), 400)]
    rows = density.data.some(20_000)  # sizes of predictors need no more
    votes = [orientation.rule_says_swap(density.unpack(point), rows, rule) for point in some]
    return float(np.mean(votes)) > 0.5
