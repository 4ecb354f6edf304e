"""The paper's experiments: ``python -m reproduction table1 --trials 100``, or all without options.

Without options every table is made in full and copied, with picture and summary, to
``docs/reproduction``. ``runs.json`` there says how many trials the last run of each added, how long
they took, and on which machine. The human annotators are left out where BAYES_LEPU_DATA does not
name the folder of their tables. A run that was stopped goes on where it was.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.machine import facts
from reproduction import command

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reproduction"
COMMANDS = {
    "table1": "table1 --trials 500 --jobs 2",
    "table2": "table2 --trials 500 --jobs 2",
    "ablation": "ablation --jobs 2",
    "animal": "animal --jobs 2",
    "animal-bayes": "animal --bayes",
}


def run_all(out: Path) -> int:
    """Run every experiment and store its page."""
    have_data = "BAYES_LEPU_DATA" in os.environ
    for name, options in COMMANDS.items():
        if name.startswith("animal") and not have_data:
            print(f"{name}: left out, BAYES_LEPU_DATA is not set")
            continue
        before, began, found = facts(), time.perf_counter(), count_trials(out)
        run = [*shlex.split(options), "--out", str(out)]
        subprocess.run([sys.executable, "-m", "reproduction", *run], check=True)
        minutes = round((time.perf_counter() - began) / 60, 1)
        store(name, out, f"python -m reproduction {options}")
        if trials := count_trials(out) - found:
            note(name, {"trials run": trials, "minutes": minutes, "machine": before})
    return 0


def count_trials(out: Path) -> int:
    """Trials finished so far, of all experiments."""
    return sum(len(file.read_bytes().splitlines()) for file in out.glob("trials-*.jsonl"))


def store(name: str, out: Path, made_by: str) -> None:
    """Copy the page of a finished run, with its picture and the command that makes it."""
    PAGES.mkdir(parents=True, exist_ok=True)
    text = (out / f"{name}.md").read_text(encoding="utf-8")
    picture = out / f"{name}.png"
    if picture.exists():
        shutil.copy(picture, PAGES)
        text += f"\n![{name}]({picture.name})\n"
    text += f"\n    {made_by}\n"
    (PAGES / f"{name}.md").write_text(text, encoding="utf-8")
    shutil.copy(out / f"{name}.csv", PAGES)


def note(name: str, run: dict[str, object]) -> None:
    """Keep the facts of a run in runs.json."""
    file = PAGES / "runs.json"
    runs = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    runs[name] = run
    file.write_text(json.dumps(runs, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(command.main(sys.argv[1:]) if sys.argv[1:] else run_all(ROOT / "results"))
