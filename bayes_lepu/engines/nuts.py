r"""NUTS on the compiled log density through nutpie, or by PyMC on its own graph.

nutpie calls the density as a C function. Where this is impossible (rows out of memory, external
figures, another version of nutpie), it calls a Python function, with the same draws.

The sampler moves in whitened coordinates u, z = m + L u, where m is the mode with the largest
evidence and L L' the inverse curvature there. Chains start at draws of that Gaussian. Where the
columns of the two factors are the same, the folded density is sampled (see `folding`).

Chains start in the basin with the largest evidence. If they never reach another basin that matters,
this one gets chains of its own, and the result mixes draws of both in proportion to the evidence of
their Gaussians (see `laplace`). ``stats["mode"]`` has the basin of every draw.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

import numpy as np

from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.engines import pooling
from bayes_lepu.engines.folding import on_one_side
from bayes_lepu.engines.laplace import Gaussian, Mixture, gaussian_of_draws
from bayes_lepu.engines.modes import SAME, distance
from bayes_lepu.errors import LOGGER, ModelError, tell
from bayes_lepu.links import Array
from bayes_lepu.model import compiled
from bayes_lepu.model.compiled import Whitened
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.priors.prior import Priors
from bayes_lepu.runtime.interruption import was_interrupted

LEAST_DRAWS = 4  # per chain, from which R-hat and effective sizes can be computed
SMALL_SHARE = 0.05  # of the evidence, below which a basin gets no chains
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
class Run:
    """Chains started in one basin, their draws on one side of the swap."""

    start: Gaussian
    z: Array  # (chain, draw, dim)
    stats: Mapping[str, Array]

    @property
    def flat(self) -> Array:
        """Draws of all chains, ``(draws, dim)``."""
        return self.z.reshape(-1, self.z.shape[-1])

    @property
    def is_calm(self) -> bool:
        """Whether almost no draws diverged."""
        return float(np.mean(self.stats["diverging"])) <= 0.005

    @property
    def max_rhat(self) -> float:
        """The largest R-hat of the coordinates."""
        from arviz_stats.base import array_stats

        worst = float(np.max(array_stats.rhat(self.z, chain_axis=0, draw_axis=1)))
        return worst if np.isfinite(worst) else np.inf


def refuse_improper(priors: Priors) -> None:
    """Refuse flat priors: as β grows, s → 1 and the likelihood stays positive, so the posterior
    would be improper.
    """
    flat = [name for name, prior in priors.items() if not prior.proper]
    if flat:
        raise ModelError(
            f"Flat prior on {', '.join(flat)}: the posterior is improper for every data set. "
            "Use a proper prior such as Prior('normal', scale=1.5), or method='map'."
        )


# Basins -------------------------------------------------------------------------------------------


def separate_basins(density: LogDensity, mixture: Mixture) -> list[tuple[Gaussian, float]]:
    """Gaussians with different t or s, with their share of the evidence, largest first."""
    groups: list[tuple[Gaussian, float]] = []
    for part, weight in zip(mixture.parts, mixture.weights, strict=True):
        for i, (first, total) in enumerate(groups):
            if _gaps(density, part.mean, [first])[0] < 5 * SAME:
                groups[i] = (first, total + float(weight))
                break
        else:
            groups.append((part, float(weight)))
    return sorted(groups, key=lambda group: -group[1])


def sample_basins(
    density: LogDensity, basins: list[tuple[Gaussian, float]], options: NutsOptions
) -> tuple[Run, tuple[float, ...]]:
    """Draws over all basins that matter, and the share of each (one share: a single basin).

    A basin gets no chains if its share of the evidence is small, or if chains of another basin have
    more than 2 % of their draws there.
    """
    runs: list[Run] = []
    shares = np.zeros(0)
    for start, share in basins:
        if runs and (share < SMALL_SHARE or any(_visits(density, run, start) for run in runs)):
            continue
        runs.append(run_chains(density, start, options))
        shares = np.append(shares, share)
    shares /= shares.sum()
    if len(runs) == 1:
        return runs[0], (1.0,)
    rng = np.random.default_rng([options.random_seed, 4])
    mode = rng.choice(len(runs), size=runs[0].z.shape[:2], p=shares)
    taken = (mode, *np.indices(mode.shape))
    z = np.stack([run.z for run in runs])[taken]
    # "mirrored" is left out, because each basin has sides of its own.
    names = set(runs[0].stats) - {"mirrored"}
    stats = {name: np.stack([run.stats[name] for run in runs])[taken] for name in names}
    return Run(runs[0].start, z, {**stats, "mode": mode.astype(float)}), tuple(shares.tolist())


def _visits(density: LogDensity, run: Run, basin: Gaussian) -> bool:
    """Whether a run's chains have been nearer to another basin than to their own."""
    some = run.flat[evenly_spaced(len(run.flat), 800)]
    nearer = [there < here for here, there in (_gaps(density, z, [run.start, basin]) for z in some)]
    return float(np.mean(nearer)) > 0.02


def _gaps(density: LogDensity, z: Array, to: Sequence[Gaussian]) -> list[float]:
    """Distance of t and s at a point from those of Gaussians, the smaller one with and without
    swapping.
    """
    X = density.data.evenly(600).X
    point = density.unpack(z)
    versions = [point, point.swap()] if density.can_exchange else [point]
    centers = (density.unpack(gaussian.mean) for gaussian in to)
    return [min(distance(v, center, X) for v in versions) for center in centers]


def run_chains(density: LogDensity, start: Gaussian, options: NutsOptions) -> Run:
    """Chains in one basin, with a second run if the first one fails by R-hat or divergences.

    The second run has the same length, starts from the mean and covariance of the first one's draws
    and takes smaller steps. The better of the two is kept.
    """
    first = _run(density, start, options)
    # R-hat of short chains is noisy: the threshold of 1.01 is for chains of 1000 draws or more.
    highest = max(1.01, 1 + 10 / options.draws)
    if options.chains == 1 or (first.is_calm and first.max_rhat <= highest):
        return first
    careful = replace(
        options,
        target_accept=max(options.target_accept, 0.97),
        random_seed=int(np.random.SeedSequence([options.random_seed, 7]).generate_state(1)[0]),
    )
    say = tell if options.progressbar else LOGGER.info
    say("The chains do not agree yet: sampling once more, from their spread and with smaller steps")
    second = _run(density, gaussian_of_draws(first.flat, start.log_evidence), careful)
    return min(first, second, key=lambda run: (not run.is_calm, run.max_rhat))


def _run(density: LogDensity, start: Gaussian, options: NutsOptions) -> Run:
    z, stats = sample_nuts(density, start, options=options)
    if density.can_exchange:
        z, mirrored = on_one_side(density, z, start.mean)
        stats = {**stats, "mirrored": mirrored.astype(float)}
    return Run(start, z, stats)


# nutpie -------------------------------------------------------------------------------------------


def sample_nuts(
    density: LogDensity, start: Gaussian, *, options: NutsOptions
) -> tuple[Array, dict[str, Array]]:
    """Raw draws ``(chain, draw, dim)`` of the (folded) density and the sampler's statistics.

    Under unknown scales the sampler moves in coordinates that are centred as far as the labels
    identify each of them (see `pooling`).
    """
    centring, near = np.zeros(0), start
    if density.layout.has_scales:
        centring = pooling.choose_centring(density, start.mean)
        near = pooling.centred_gaussian(density, start, centring)
    order = density.swap_order if density.can_exchange else np.zeros(0, dtype=np.intp)
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
    # nutpie's own bar can be seen in a terminal or a notebook.
    screen = sys.stderr.isatty() or bool({"ipykernel", "marimo"} & set(sys.modules))
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
        progress_bar=options.progressbar and screen,
        progress_callback=_progress(tell if options.progressbar and not screen else LOGGER.info),
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
    """Nutpie's model of a Python function, for rows out of memory and external figures."""
    from nutpie.compiled_pyfunc import from_pyfunc

    dim = state.mean.size

    def logp_grad(u: Array) -> tuple[float, Array]:
        z = compiled.coordinates_of(u, state)
        found = compiled.folded(*density.fold(z)) if state.order.size else density.logp_grad(z)
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

    nutpie's own function ignores Ctrl-C and returns chains of unequal length, padded with NaN. Here
    an interrupt stops the sampler and raises `KeyboardInterrupt`.
    """
    try:
        while True:
            try:
                trace = sampler.wait(timeout=0.5)
                break
            except TimeoutError:
                if was_interrupted():
                    raise KeyboardInterrupt from None
        stats = {name: trace["sample_stats"][key].to_numpy() for name, key in STATS.items()}
        return trace["posterior"]["u"].to_numpy(), stats
    except BaseException:
        sampler.cancel()
        raise


def _progress(say: Callable[[str], None]) -> Callable[[Sequence[Any]], None]:
    """Callback that logs progress at doubling intervals, from the chains' numbers of draws."""
    began = last = time.monotonic()
    pause = FIRST

    def report(chains: Sequence[Any]) -> None:
        nonlocal last, pause
        now, done = time.monotonic(), sum(chain.finished_draws for chain in chains)
        if now - last >= pause and done:
            last, pause = now, min(2 * pause, LONGEST)
            wanted = sum(chain.total_draws for chain in chains)
            minutes = (now - began) * (wanted - done) / done / 60
            say(
                f"Sampled {done} of {wanted} draws, warm-up included; about {minutes:.1f} minutes "
                "left"
            )

    return report


# PyMC ---------------------------------------------------------------------------------------------


def sample_pymc(
    density: LogDensity, start: Parameters, options: NutsOptions
) -> tuple[Array, dict[str, Array]]:
    """Draws ``(chain, draw, dim)`` by `pymc.sample` on the model's graph, and statistics.

    Chains start, without jitter, at a mode; the density is not folded.
    """
    import pymc as pm

    with density.spec.build(density.data, density.priors):
        trace = pm.sample(
            draws=options.draws,
            tune=options.tune,
            chains=options.chains,
            cores=options.cores,
            target_accept=options.target_accept,
            random_seed=options.random_seed,
            progressbar=options.progressbar,
            compute_convergence_checks=False,
            nuts_sampler="pymc",
            init="adapt_diag",
            initvals=_values(density, start),
        )
    made = trace["posterior"].sizes if "posterior" in trace.children else {}
    if (made.get("chain"), made.get("draw")) != (options.chains, options.draws):
        raise KeyboardInterrupt  # PyMC swallows it and returns what it has
    return density.layout.of_variables(trace["posterior"]), stats_of(trace)


def stats_of(trace: Any) -> dict[str, Array]:
    """Statistics of the sampler under PyMC's names, of those that it kept."""
    group: Any = trace.get("sample_stats", {})
    named = {name: group[other] for name, other in STATS.items() if other in group}
    named |= {name: group[name] for name in STATS if name in group}
    return {name: values.to_numpy() for name, values in named.items()}


def _values(density: LogDensity, point: Parameters) -> dict[str, Any]:
    """The point as starting values of the PyMC variables, rates a little inside."""
    layout = density.layout
    out = layout.variables(density.pack(point))
    for block in layout.blocks:
        if block.transform == "ratios":
            x = np.clip(out[block.name], 1e-4, 1 - 1e-4)
            out[block.name] = x / x.sum() if block.is_simplex else x
    return {block.name: out[block.name] for block in layout.blocks if block.size}
