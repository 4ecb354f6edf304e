"""Runs trials and keeps every finished one, a line of a CSV file: a run can be stopped.

A trial is known by table, mechanism, size, repetition and method. Its data depend on the first four
alone: all methods see the same rows and marks.
"""

import csv
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from bayes_lepu.errors import LepuError
from benchmarks.real.contestants import CONTESTANTS, SMALL_ONLY
from benchmarks.real.labelling import LETTERS, MECHANISMS, draw_trial
from benchmarks.real.measures import class_scores, prior_scores
from benchmarks.real.public_tables import PROTOCOL, Table

Record = dict[str, float | int | str]
SIZES = (1500, 10000)


@dataclass(frozen=True)
class Key:
    """Which trial."""

    table: str
    mechanism: str
    size: int
    repetition: int
    method: str


KEY = list(Key.__annotations__)
COLUMNS = [*KEY, "rows", "columns", "labelled", "gain", "accuracy", "AUC", "average precision"]
COLUMNS += ["top 5 %", "Brier", "true pi", "pi", "error of pi", "covered", "CPU seconds", "error"]


def plan(
    tables: list[Table],
    methods: Iterable[str],
    *,
    mechanisms: Iterable[str] = (),
    sizes: Iterable[int] = SIZES,
    repetitions: int = 1,
) -> list[Key]:
    """Every trial of these tables, the first repetition first.

    A size above the smallest is left out where the table has not twice as many rows.
    """
    wanted = set(mechanisms)
    return [
        Key(table.name, mechanism, size, repetition, method)
        for repetition in range(repetitions)
        for table in tables
        for size in ((min(sizes),) if table.name == PROTOCOL else sizes)
        if size == SIZES[0] or len(table.y) >= 2 * SIZES[0]
        for mechanism in (LETTERS if table.name == PROTOCOL else MECHANISMS)
        if not wanted or mechanism in wanted
        for method in methods
        if method not in SMALL_ONLY or (size == SIZES[0] and table.name != PROTOCOL)
    ]


def run(table: Table, key: Key) -> Record:
    """One trial: scores of the method, or what went wrong."""
    seed = zlib.crc32(f"{key.table}|{key.mechanism}|{key.repetition}".encode())
    trial = draw_trial(table, key.mechanism, key.size, np.random.default_rng(seed))
    record: Record = {**asdict(key), "labelled": int(trial.l.sum())}
    record |= {"rows": len(trial.X), "columns": trial.X.shape[1], "gain": table.truth[1]}
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they warn of is what the scores show
        try:
            answer = CONTESTANTS[key.method](trial, np.random.default_rng([seed, 1]))
        except (LepuError, np.linalg.LinAlgError) as error:
            return {**record, "error": str(error)}
    record["CPU seconds"] = time.process_time() - began
    return {
        **record,
        **class_scores(trial, answer.score),
        **prior_scores(trial, answer.pi, answer.interval),
    }


def finished(path: Path) -> pd.DataFrame:
    """Every trial of the file."""
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS)
    trials = pd.read_csv(path)
    if list(trials.columns) != COLUMNS:
        raise SystemExit(f"{path} has other columns than this benchmark; name a new file by --out.")
    return trials


def run_missing(
    tables: list[Table], keys: Iterable[Key], path: Path, *, jobs: int = 1
) -> Iterator[Record]:
    """Run what the file does not hold yet, store it, and hand it on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():  # a line torn by an interruption goes
        text = path.read_bytes()
        path.write_bytes(text[: text.rfind(b"\n") + 1])
    done = set(finished(path)[KEY].itertuples(index=False, name=None)) if path.exists() else set()
    missing = [key for key in keys if tuple(asdict(key).values()) not in done]
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if file.tell() == 0:
            writer.writeheader()
        for record in _results({table.name: table for table in tables}, missing, jobs):
            writer.writerow(
                {k: round(v, 5) if isinstance(v, float) else v for k, v in record.items()}
            )
            file.flush()
            yield record


def _results(tables: dict[str, Table], keys: list[Key], jobs: int) -> Iterator[Record]:
    if jobs == 1:
        yield from (run(tables[key.table], key) for key in keys)
        return
    for name in {key.table for key in keys}:
        _ = tables[name].truth  # found here, so that every process has it
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run, [tables[key.table] for key in keys], keys, chunksize=4)
