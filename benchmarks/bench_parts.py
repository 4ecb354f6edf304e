"""Rows that are not in memory: a Parquet file, and a Dask cluster on this machine.

``python -m benchmarks.bench_parts make 20000000 rows.parquet`` writes a table of 20 columns in
single precision and its labels, ``... fit rows.parquet`` fits it and tells time and memory,
``... dask rows.parquet`` does so with two workers, one of which is killed on the way. `run` does
all of it for a million rows.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import numpy as np

ROWS, COLUMNS, BLOCK = 1_000_000, 20, 500_000


def truth() -> tuple[np.ndarray, np.ndarray]:
    """Slopes of the class and of the annotator."""
    rng = np.random.default_rng(0)
    return rng.normal(size=COLUMNS) * 0.5, rng.normal(size=COLUMNS) * 0.2


def make(n: int, path: str) -> None:
    """Write the table block by block."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    a, alpha = truth()
    names = [f"x{j}" for j in range(COLUMNS)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("marked", pa.int8())])
    with pq.ParquetWriter(path, schema, compression="NONE", use_dictionary=False) as writer:
        for start in range(0, n, BLOCK):
            rng = np.random.default_rng([1, start])
            X = rng.standard_normal((min(BLOCK, n - start), COLUMNS), dtype=np.float32)
            t, s = (1 / (1 + np.exp(-X @ slope)) for slope in (a - 0.05, alpha))
            l = (rng.random(len(X)) < t * s).astype(np.int8)
            columns = [*np.ascontiguousarray(X.T), l]
            writer.write_table(pa.table([pa.array(c) for c in columns], schema=schema))


def fit(path: str) -> dict[str, float]:
    """The default MAP of SPM: time, passes and resident memory."""
    import bayes_lepu as lepu
    from bayes_lepu.data import parts

    passes = 0
    total = parts.Parts.total

    def counted(self, function, **options):
        nonlocal passes
        passes += 1
        return total(self, function, **options)

    parts.Parts.total = counted
    warnings.simplefilter("ignore", lepu.LepuWarning)
    start, cpu = time.perf_counter(), time.process_time()
    found = lepu.fit(path, "marked", model="spm", method="map", random_seed=0, progressbar=False)
    slopes = found.draws.a[0] / found.data.scale
    return {
        "rows": found.data.n_all,
        "seconds": time.perf_counter() - start,
        "cpu seconds": time.process_time() - cpu,
        "sums over all rows": passes,
        "peak resident memory, GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "largest error of a slope of t": float(np.max(np.abs(slopes - truth()[0] + 0.05))),
    }


def dask(path: str) -> dict[str, float]:
    """The same on two workers, one of which is killed, against one process."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    import bayes_lepu as lepu

    warnings.simplefilter("ignore", lepu.LepuWarning)
    options = {"model": "spm", "method": "map", "random_seed": 0, "progressbar": False}
    begun = time.perf_counter()
    alone = lepu.fit(path, "marked", **options)
    middle = time.perf_counter()
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        rows = dd.read_parquet(path, split_row_groups=True)
        start = time.perf_counter()
        both = lepu.dask.fit(rows, "marked", client=client, **options)
        end = time.perf_counter()
        worker = next(iter(cluster.workers.values()))
        threading.Timer((end - start) / 2, lambda: os.kill(worker.pid, 9)).start()
        killed = lepu.dask.fit(rows, "marked", client=client, **options)
    own = alone.coefficients().to_numpy()
    return {
        "rows": alone.data.n_all,
        "one process, seconds": middle - begun,
        "two workers, seconds": end - start,
        "largest difference": float(np.max(np.abs(both.coefficients().to_numpy() - own))),
        "largest difference, one worker killed": float(
            np.max(np.abs(killed.coefficients().to_numpy() - own))
        ),
    }


def run() -> dict[str, float]:
    """Figures of a file of `ROWS` rows, each command in a process of its own."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.parquet"
        make(ROWS, path)
        for command in ("fit", "dask"):
            call = [sys.executable, "-m", "benchmarks.bench_parts", command, path]
            done = subprocess.run(call, check=True, capture_output=True, text=True)
            figures |= {f"{command}: {k}": v for k, v in json.loads(done.stdout).items()}
    return figures


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "make":
        make(int(rest[0]), rest[1])
    else:
        print(json.dumps({"fit": fit, "dask": dask}[command](rest[0]), indent=1))
