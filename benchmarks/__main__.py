"""Run all benchmarks, or those named on the command line."""

import json
import os
import sys
from importlib import import_module
from pathlib import Path

from benchmarks.machine import facts

HERE = Path(__file__).parent
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(wanted: list[str]) -> int:
    """Run the benchmarks, print a table for each and write its results."""
    found = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    unknown = sorted(set(wanted) - set(found))
    if unknown:
        print(f"No benchmark named {', '.join(unknown)}; there are: {', '.join(found)}.")
        return 2
    for variable in THREADS:  # read when NumPy is first imported, which is below
        os.environ.setdefault(variable, "1")
    for name in wanted or found:
        before = facts()
        figures = import_module(f"benchmarks.bench_{name}").run()
        print(f"\n{name}")
        width = max(map(len, figures))
        for key, value in figures.items():
            shown = f"{value:.4g}" if isinstance(value, float) else value
            print(f"  {key:<{width}}  {shown}")
        target = HERE / "results" / f"{name}.json"
        target.parent.mkdir(exist_ok=True)
        text = json.dumps({"figures": figures, "machine": before}, indent=2, ensure_ascii=False)
        target.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
