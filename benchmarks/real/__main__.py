"""Command line of the benchmark on real tables."""

import argparse
import os
import sys
from pathlib import Path

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
OUT = Path(__file__).resolve().parents[2] / "results" / "real-trials.csv"


def main(arguments: list[str]) -> int:
    """Run what is missing and print the summary; with --store keep the means for the page."""
    for variable in THREADS:  # read when NumPy is first imported, which is below
        os.environ.setdefault(variable, "1")
    from benchmarks.real.contestants import CONTESTANTS, OURS
    from benchmarks.real.labelling import LETTERS, MECHANISMS
    from benchmarks.real.page import STORED, summarise, summary
    from benchmarks.real.peers import PEERS
    from benchmarks.real.public_tables import JUDGING, PROTOCOL, TUNING, load_tables
    from benchmarks.real.trials import KEY, SIZES, finished, plan, run_missing

    known = {"tuning": TUNING, "judging": JUDGING, "ours": tuple(OURS), "peers": tuple(PEERS)}

    def names(text: str) -> list[str]:
        return [one for name in text.split(",") for one in known.get(name, (name,))]

    def several(option: str, default: str, what: str) -> None:
        parser.add_argument(option, type=names, default=names(default), help=what)

    parser = argparse.ArgumentParser(prog="python -m benchmarks.real", description=__doc__)
    parser.add_argument("--tables", type=Path, help="folder of the tables (../shared/data)")
    several("--only", f"tuning,judging,{PROTOCOL}", "tables by name; tuning, judging")
    several("--mechanisms", ",".join([*MECHANISMS, *LETTERS]), "ways of marking")
    several("--methods", "peers,ours", f"of {', '.join(CONTESTANTS)}; or peers, ours")
    several("--sizes", ",".join(map(str, SIZES)), "training rows")
    parser.add_argument("--trials", type=int, default=5, help="repetitions of every cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=OUT, help="CSV file of trials to go on with")
    parser.add_argument("--store", action="store_true", help=f"store the means in {STORED.name}")
    options = parser.parse_args(arguments)
    if unknown := set(options.methods) - set(CONTESTANTS):
        parser.error(f"no method {', '.join(sorted(unknown))}; there are {', '.join(CONTESTANTS)}")

    tables = load_tables(options.tables, wanted=tuple(options.only))
    keys = plan(
        tables,
        options.methods,
        mechanisms=options.mechanisms,
        sizes=[int(size) for size in options.sizes],
        repetitions=options.trials,
    )
    for count, record in enumerate(run_missing(tables, keys, options.out, jobs=options.jobs)):
        if count % 50 == 0 or "error" in record:
            print(f"{count} of at most {len(keys)}: {record}", file=sys.stderr, flush=True)
    trials = finished(options.out)
    if options.store:
        summarise(trials).to_csv(STORED, index=False)
    asked = trials[KEY].apply(tuple, axis=1).isin([tuple(vars(key).values()) for key in keys])
    print(summary(summarise(trials[asked])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
