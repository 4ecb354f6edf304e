"""Finished trials on disk: one JSON line each, written at once, read back on restart.

A trial is known by its experiment, the settings and the library's code it ran under, and its seed.
Only the last line of the file can be torn (the process was killed while it wrote); such a line is
cut off on opening.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from bayes_lepu.errors import FileFormatError
from bayes_lepu.runtime.compilation import source_digest

Record = dict[str, Any]
Key = tuple[str, str, int]

# Doors and pictures of the library: they make no number of a trial.
AROUND = frozenset({"cli", "plots", "report"})
# What a trial runs of this folder; tables, documents and figures are made from trials afterwards.
OWN = (
    "datasets",
    "experiments/bayes.py",
    "experiments/searched.py",
    "experiments/resample.py",
    "experiments/scores.py",
    "experiments/started.py",
    "experiments/synthetic.py",
)


@cache
def code_digest() -> str:
    """Digest of everything that shapes the numbers of a trial."""
    inside = (e for e in files("bayes_lepu").iterdir() if e.is_dir() or e.name.endswith(".py"))
    library = sorted(e.name for e in inside if e.name not in AROUND)
    return source_digest(*library) + source_digest(*OWN, package="reproduction")


def settings_hash(experiment: str, settings: Any) -> str:
    """Twelve hexadecimal digits that name an experiment, its settings and the code.

    Parameters
    ----------
    settings : dataclass instance
        With values that JSON can hold.
    """
    content = {"experiment": experiment, "settings": asdict(settings), "sources": code_digest()}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def key_of(record: Mapping[str, Any]) -> Key:
    """What identifies a trial: experiment, hash of its settings, seed."""
    return record["experiment"], record["hash"], record["seed"]


def made_by_other_code(
    records: Mapping[Key, Record], experiment: str, settings: Sequence[Any], hashes: Sequence[str]
) -> int:
    """How many trials have these settings and yet not these hashes."""
    # As the file holds them: tuples have become lists.
    known = [json.loads(json.dumps(asdict(s))) for s in settings]
    return sum(
        r["experiment"] == experiment and r["hash"] not in hashes and r.get("settings") in known
        for r in records.values()
    )


class TrialStore:
    """The trials in one file.

    Parameters
    ----------
    path : path
        JSON lines; made, with its folder, by the first `append`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def read(self) -> dict[Key, Record]:
        """Every finished trial; a torn last line is cut off the file."""
        if not self.path.exists():
            return {}
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
                os.fsync(file.fileno())
        records: dict[Key, Record] = {}
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                record = json.loads(line)
                records.setdefault(key_of(record), record)
            except (ValueError, KeyError, TypeError) as error:
                raise FileFormatError(
                    f"Line {number} of {self.path} is not a finished trial ({error}). Delete that "
                    "line to run its trial again, or choose another folder."
                ) from error
        return records

    def append(self, record: Record) -> None:
        """Add a trial; when this returns it has reached the disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(json.dumps(record).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
