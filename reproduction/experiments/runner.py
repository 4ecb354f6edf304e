"""Runs trials in parallel, keeps every finished one, and goes on where it was stopped.

Trials go through joblib, so ``with joblib.parallel_config(backend="dask")`` (or another backend)
takes them to a cluster unchanged. Every worker computes on one thread: two trials side by side are
faster than two threads inside one.
"""

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bayes_lepu.errors import ModelError
from bayes_lepu.runtime.interruption import stops_at_once
from reproduction.experiments.store import (
    Record,
    TrialStore,
    made_by_other_code,
    settings_hash,
)

Outcome = dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """A named function of settings and a random generator.

    Attributes
    ----------
    name : str
    trial : callable
        ``trial(settings, rng)`` returns what JSON can hold. It is sent to workers by pickle, so it
        is a function of a module. Finished trials count only while the library's code stays as it
        is; a trial written elsewhere is not watched.
    """

    name: str
    trial: Callable[[Any, np.random.Generator], Outcome]


@dataclass(frozen=True)
class Task:
    """One trial to run."""

    experiment: Experiment
    settings: Any
    hash: str
    trial: int
    seed: int
    owner: int  # the process that started the run


def trial_seed(seed: int, trial: int) -> int:
    """Seed of one trial of a run: a whole number below 2**53, which every format holds exactly."""
    state = np.random.SeedSequence([seed, trial]).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(11))


@stops_at_once
def run_trials(
    experiment: Experiment,
    settings: Sequence[Any],
    *,
    trials: int,
    seed: int = 0,
    jobs: int | None = None,
    file: str | Path,
    progressbar: bool = True,
) -> list[Record]:
    """Run what is still missing and return the records of all trials.

    Parameters
    ----------
    experiment : Experiment
    settings : sequence of dataclass instances
        Each is run ``trials`` times, with the same seeds, so that settings are compared on the
        same random numbers.
    trials : int
    seed : int
        Seed of the run; trial k has the seed ``trial_seed(seed, k)`` whatever ran before it.
    jobs : int, optional
        Processes; None leaves it to joblib's configuration (one process by default).
    file : path
        The store of finished trials. Trials of other settings, or of another state of the library's
        code, are left alone and not used.
    progressbar : bool

    Returns
    -------
    list of dict
        By settings, then by trial: the same list however often the run was interrupted.
    """
    for name, value, least in (("trials", trials, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ModelError(f"{name} = {value!r}; a whole number, {least} or above, is expected.")
    store = TrialStore(file)
    done = store.read()
    hashes = [settings_hash(experiment.name, s) for s in settings]
    older = made_by_other_code(done, experiment.name, settings, hashes)
    if older and progressbar:
        print(f"{experiment.name}: {older} trials made by other code left aside", file=sys.stderr)
    # All settings of one trial stand together: a run cut short compares like with like.
    tasks = [
        Task(experiment, s, h, k, trial_seed(seed, k), os.getpid())
        for k in range(trials)
        for s, h in zip(settings, hashes, strict=True)
    ]
    missing = [t for t in tasks if (experiment.name, t.hash, t.seed) not in done]
    with _Progress(len(tasks), len(tasks) - len(missing), experiment.name, progressbar) as progress:
        for record in _results(missing, jobs):
            store.append(record)
            progress.step()
    done = store.read()
    order = {h: i for i, h in enumerate(hashes)}
    tasks.sort(key=lambda t: (order[t.hash], t.trial))
    # The number of a trial belongs to the run, not to the record: seeds identify trials.
    return [done[experiment.name, t.hash, t.seed] | {"trial": t.trial} for t in tasks]


def run_task(task: Task) -> Record:
    """One trial on one thread, with its settings, seed, CPU seconds and warnings."""
    from threadpoolctl import threadpool_limits

    _end_with(task.owner)
    began = time.process_time()
    with threadpool_limits(limits=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = task.experiment.trial(task.settings, np.random.default_rng(task.seed))
    return {
        "experiment": task.experiment.name,
        "hash": task.hash,
        "settings": asdict(task.settings),
        "seed": task.seed,
        "outcome": outcome,
        "warnings": sorted({f"{w.category.__name__}: {w.message}" for w in caught}),
        "cpu_seconds": round(time.process_time() - began, 3),
    }


@cache
def _end_with(owner: int) -> None:
    """In a worker: end when the process that started it has gone, were it killed outright."""
    if os.getppid() != owner:  # the owner itself, or a worker on another machine
        return

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _results(tasks: Sequence[Task], jobs: int | None) -> Iterator[Record]:
    """Records as they come, in any order."""
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend

    if not tasks:
        return
    backend, _ = get_active_backend()
    if getattr(backend, "supports_return_generator", False):
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        yield from parallel(delayed(run_task)(t) for t in tasks)
        return
    # A backend that only hands back whole lists gets short ones, so that little is ever at stake.
    parallel = Parallel(n_jobs=jobs, batch_size=1)
    width = 2 * max(1, parallel._effective_n_jobs())
    for i in range(0, len(tasks), width):
        yield from parallel(delayed(run_task)(t) for t in tasks[i : i + width])


class _Progress:
    """A bar on a terminal, a line every tenth of the way elsewhere; both on standard error."""

    def __init__(self, total: int, done: int, name: str, show: bool) -> None:
        self.total, self.done, self.name, self.show = total, done, name, show
        self.bar: Any = None

    def __enter__(self) -> "_Progress":
        if self.show and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

            columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self.bar = Progress("{task.description}", *columns, console=Console(stderr=True))
            self.task = self.bar.add_task(self.name, total=self.total, completed=self.done)
            self.bar.start()
        elif self.show and self.done:
            print(f"{self.name}: {self.done} of {self.total} trials found", file=sys.stderr)
        return self

    def step(self) -> None:
        self.done += 1
        if self.bar is not None:
            self.bar.advance(self.task)
        elif self.show and self.done * 10 // self.total > (self.done - 1) * 10 // self.total:
            print(f"{self.name}: {self.done} of {self.total} trials", file=sys.stderr, flush=True)

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()
