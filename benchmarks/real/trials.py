"""Runs trials and keeps every finished one: a line of JSON each, so that a run can be stopped.

A trial is known by table, mechanism, repetition and method. Its data depend on the first three
alone: all methods see the same rows and marks.
"""

import json
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bayes_lepu.errors import LepuError
from benchmarks.real.contestants import CONTESTANTS
from benchmarks.real.labelling import Trial, draw_trial
from benchmarks.real.measures import class_scores, prior_scores
from benchmarks.real.peers import Answer
from benchmarks.real.public_tables import Table

Record = dict[str, float | int | str | None]


@dataclass(frozen=True)
class Key:
    """Which trial."""

    table: str
    mechanism: str
    repetition: int
    method: str


def run(table: Table, key: Key) -> list[Record]:
    """One trial: scores of the method and of its members, or what went wrong."""
    place = f"{key.table}|{key.mechanism}|{key.repetition}"
    seed = zlib.crc32(place.encode())
    trial = draw_trial(table, key.mechanism, np.random.default_rng(seed))
    facts: Record = {**asdict(key), "labelled": int(trial.l.sum())}
    facts |= {"rows": len(trial.X), "columns": trial.X.shape[1]}
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they warn of is what the scores show
        try:
            rng = np.random.default_rng([seed, 1])
            answer = CONTESTANTS[key.method](trial.X, trial.l, rng)
        except (LepuError, np.linalg.LinAlgError) as error:
            return [{**facts, "error": str(error)}]
        facts["CPU seconds"] = round(time.process_time() - began, 4)
        own = {**facts, **_scores(trial, answer)}
        del facts["CPU seconds"]  # the members' are not known apart
        members = answer.members.items()
        return [own, *({**facts, "method": name, **_scores(trial, m)} for name, m in members)]


def _scores(trial: Trial, answer: Answer) -> Record:
    scores = class_scores(trial, answer.class_probability(trial.X_test))
    return {**scores, **prior_scores(trial, answer.pi, answer.interval), **answer.facts}


def finished(path: Path) -> list[Record]:
    """Every trial of the file; a line torn by an interruption is left out."""
    if not path.exists():
        return []
    records = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return records


def run_missing(
    tables: list[Table], keys: Iterable[Key], path: Path, *, jobs: int = 1
) -> Iterator[Record]:
    """Run what the file does not hold yet, store it, and hand it on."""
    done = {tuple(r[name] for name in Key.__annotations__) for r in finished(path)}
    by_name = {table.name: table for table in tables}
    missing = [key for key in keys if tuple(asdict(key).values()) not in done]
    path.parent.mkdir(parents=True, exist_ok=True)
    torn = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" if torn else "")
        for records in _results(by_name, missing, jobs):
            file.write("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records))
            file.flush()
            yield from records


def _results(tables: dict[str, Table], keys: list[Key], jobs: int) -> Iterator[list[Record]]:
    if jobs == 1:
        yield from (run(tables[key.table], key) for key in keys)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run, [tables[key.table] for key in keys], keys, chunksize=4)
