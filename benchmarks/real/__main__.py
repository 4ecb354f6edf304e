"""Command line of the benchmark on real tables."""

import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(arguments: list[str]) -> int:
    """Run what is missing, store the means of every cell, and print the table of methods."""
    for variable in THREADS:  # read when NumPy is first imported, which is below
        os.environ.setdefault(variable, "1")
    from benchmarks.real.contestants import CONTESTANTS, DEFAULT
    from benchmarks.real.labelling import MECHANISMS
    from benchmarks.real.page import STORED, overall, summarise
    from benchmarks.real.public_tables import load_tables
    from benchmarks.real.trials import Key, finished, run_missing

    parser = argparse.ArgumentParser(prog="python -m benchmarks.real", description=__doc__)
    parser.add_argument("--tables", type=Path, help="folder of CSV tables with a last column y")
    parser.add_argument("--only", nargs="+", default=[], help="names of tables")
    parser.add_argument("--mechanisms", nargs="+", default=[*MECHANISMS], choices=[*MECHANISMS])
    parser.add_argument("--methods", nargs="+", default=[*DEFAULT], choices=[*CONTESTANTS])
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--trials", type=Path, default=HERE.parents[1] / "results" / "real.jsonl")
    parser.add_argument("--cells", type=Path, default=STORED, help="where to store the means")
    options = parser.parse_args(arguments)

    tables = load_tables(options.tables, wanted=tuple(options.only))
    keys = [
        Key(table.name, mechanism, repetition, method)
        for repetition in range(options.repetitions)
        for table in tables
        for mechanism in options.mechanisms
        for method in options.methods
    ]
    for count, record in enumerate(run_missing(tables, keys, options.trials, jobs=options.jobs)):
        if count % 100 == 0:
            print(f"{count} of at most {len(keys)}: {record['table']}", file=sys.stderr, flush=True)
    cells = summarise(finished(options.trials))
    cells.to_csv(options.cells, index=False)
    print(overall(cells).round(3).to_string())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
