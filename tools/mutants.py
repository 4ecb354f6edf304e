"""Mutation testing: change one place of the numerics at a time and see whether a test notices.

``python -m tools.mutants`` tries a sample per target and appends one line of JSON per mutant to
``mutants.jsonl``; what stands there already is not tried again, so that it goes on where it was
stopped. ``--survivors`` tries those again that survived, after a test was added. A survivor is
either a test that is missing or a change that does not change the value (an equivalent mutant);
docs/robustness.md explains each.

The working copy is never touched: every mutant is made in a temporary copy of the tree. The tests
that must notice are those that pass there without a change, and take little time each. Compiled
sources are interpreted (`tools.interpreted`), so that a mutant takes seconds.
"""

import argparse
import ast
import copy
import json
import multiprocessing
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

# What is mutated, and the fast tests that must notice.
COMPILED = {
    "links.py": ["propensities", "test_row_formula.py"],
    "arithmetic.py": ["likelihood", "test_row_formula.py"],
    "likelihood": ["likelihood", "test_row_formula.py"],
    "propensities": ["propensities", "likelihood"],
    "models/compiled.py": ["models/test_density.py"],
    "inference/quadratic.py": ["inference/test_quadratic.py"],
}
PLAIN = {
    "priors.py": ["test_priors.py", "models/test_density.py", "test_fit_options.py"],
    "families.py": ["test_priors.py", "models/test_density.py", "test_column_priors.py"],
    "models/blocks.py": ["models/test_density.py", "models/test_terms.py"],
    "models/density.py": ["models/test_density.py", "models/test_pooled_density.py"],
    "models/prior_terms.py": ["models/test_density.py", "models/test_pooled_density.py"],
    "inference/folding.py": ["inference/test_folding.py"],
    "inference/orientation.py": ["inference/test_orientation.py"],
    "diagnostics/levels.py": ["diagnostics"],
    "diagnostics/profile.py": ["diagnostics"],
    "diagnostics/exceptional.py": ["diagnostics"],
    "diagnostics/data_information.py": ["diagnostics"],
}
SWAPS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
# Imported once, before the processes of the mutants are forked off.
PRELOAD = ["pytest", "numba", "pandas", "scipy.stats", "xarray", "pymc", "sklearn"]


@dataclass(frozen=True)
class Mutant:
    """One change at one place.

    Attributes
    ----------
    path : str
        The file, relative to the root of the tree.
    line, column : int
    text : str
        What was changed to what.
    """

    path: str
    line: int
    column: int
    text: str


def mutants(path: Path) -> Iterator[tuple[Mutant, str]]:
    """All mutants of a file with its changed text: operators, comparisons, numbers and signs."""
    tree = ast.parse(path.read_text("utf-8"))
    for position, node in enumerate(ast.walk(tree)):
        for change in _changes(node):
            changed = copy.deepcopy(tree)
            twin: Any = next(n for i, n in enumerate(ast.walk(changed)) if i == position)
            before = ast.unparse(twin)
            change(twin)
            after = ast.unparse(twin)
            name = str(path.relative_to(ROOT))
            text = f"{before}  ->  {after}"
            yield Mutant(name, twin.lineno, twin.col_offset, text), ast.unparse(changed)


def _changes(node: ast.AST) -> Iterator[Any]:
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPS:
        other = SWAPS[type(node.op)]
        yield lambda twin: setattr(twin, "op", other())
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        other = SWAPS[type(node.ops[0])]
        yield lambda twin: twin.ops.__setitem__(0, other())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield lambda twin: setattr(twin, "op", ast.UAdd())
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield lambda twin: setattr(twin, "value", twin.value + 1)


def files(part: str) -> list[Path]:
    """The Python files of a target."""
    place = ROOT / "bayes_lepu" / part
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


class Passed:
    """A plug-in of pytest: which tests passed and their seconds of CPU, by their names."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.begun = 0.0

    def pytest_runtest_setup(self, item: Any) -> None:
        """Take the time."""
        self.begun = time.process_time()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note how it ended."""
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.when == "call" and report.passed:
            self.seconds[report.nodeid] = time.process_time() - self.begun


def run_tests(tree: str, tests: list[str], options: list[str], cpu: int, to: Any) -> None:
    """In a process of its own: run the tests of a tree and send what passed and what failed."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    os.chdir(tree)
    sys.path.insert(0, tree)
    log = os.open("pytest.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    import pytest

    passed = Passed()
    code = pytest.main([*QUIETLY, *options, *tests], plugins=[passed])
    to.send((int(code), passed.seconds, passed.failed))


QUIETLY = ["-q", "-n", "0", "-p", "no:cacheprovider"]
QUIETLY += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what was preloaded
SLOWEST = 0.7  # seconds of CPU that one of the tests may take without a change
BASELINE = 3000  # and all of them


class Tree:
    """A copy of the working copy in which one file at a time is changed."""

    def __init__(self, folder: Path, *, compiled: bool) -> None:
        self.folder = folder / "tree"
        self.options = ["-p", "tools.interpreted"] if compiled else []
        self.seconds: dict[str, dict[str, float]] = {}
        leave = shutil.ignore_patterns(
            ".git", ".venv", "__pycache__", "site", "*.ipynb", ".*cache", "results", "img"
        )
        shutil.copytree(ROOT, self.folder, ignore=leave)
        environment = {"NUMBA_CACHE_DIR": str(self.folder / ".numba"), "PYTHONPATH": str(ROOT)}
        os.environ |= environment | ({"NUMBA_DISABLE_JIT": "1"} if compiled else {})
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(PRELOAD)

    def run(
        self, tests: list[str], cpu: int, *options: str
    ) -> tuple[int, dict[str, float], list[str]]:
        """Exit code of pytest, what passed, what failed; code -1 where there was no end."""
        ours, theirs = self.context.Pipe(duplex=False)
        work = (str(self.folder), tests, [*self.options, *options], cpu, theirs)
        process = self.context.Process(target=run_tests, args=work)
        process.start()
        theirs.close()
        try:
            found = ours.recv()
        except EOFError:
            found = (-1, {}, ["no end"])
        process.join()
        return found

    def tests(self, names: list[str]) -> tuple[list[str], int]:
        """The tests that pass and are quick, and the seconds of CPU after which there is no end."""
        for name in (name for name in names if name not in self.seconds):
            _, seconds, failed = self.run([f"tests/{name}"], BASELINE)
            self.seconds[name] = {n: s for n, s in seconds.items() if n not in failed}
        passed = {n: s for name in names for n, s in self.seconds[name].items()}
        quick = [name for name, seconds in passed.items() if seconds < SLOWEST]
        if not quick:
            said = (self.folder / "pytest.log").read_text("utf-8")[-2000:]
            raise RuntimeError(f"None of the tests {names} passes without a change:\n{said}")
        return quick, 60 + 3 * round(sum(passed.values()))

    def kills(self, tests: list[str], cpu: int, mutant: Mutant, source: str) -> str:
        """The first test that fails with this change; empty where none does."""
        place = self.folder / mutant.path
        shutil.copy2(place, spare := place.with_suffix(".spare"))
        place.write_text(source, encoding="utf-8")
        try:
            code, _, failed = self.run(tests, cpu, "-x")
        finally:
            shutil.move(spare, place)
        return "" if code == 0 else (failed or [f"exit code {code}"])[0]


def read(path: Path) -> dict[Mutant, str]:
    """What was tried, and the test that killed it."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    return {Mutant(**{k: r[k] for k in Mutant.__annotations__}): r["killer"] for r in records}


def choose(
    part: str, done: dict[Mutant, str], *, sample: int, survivors: bool
) -> list[tuple[Mutant, str]]:
    """The mutants of a target to be tried: a sample of all, or those that survived."""
    found = [pair for path in files(part) for pair in mutants(path)]
    if survivors:
        return [(m, source) for m, source in found if done.get(m) == ""]
    chosen = random.Random(part).sample(found, min(sample, len(found)))
    return [(m, source) for m, source in chosen if m not in done]


def run(parts: Iterable[str], out: Path, *, compiled: bool, sample: int, survivors: bool) -> None:
    """Try mutants of some targets; every one becomes a line of the file."""
    table = COMPILED if compiled else PLAIN
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder), compiled=compiled)
        for part in parts:
            chosen = choose(part, read(out), sample=sample, survivors=survivors)
            tests, cpu = tree.tests(table[part]) if chosen else ([], 0)
            print(f"{part}: {len(chosen)} mutants, {len(tests)} tests", flush=True)
            for mutant, source in chosen:
                killer = tree.kills(tests, cpu, mutant, source)
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(mutant) | {"killer": killer}) + "\n")
                if not killer:
                    print(f"survived  {mutant.path}:{mutant.line}  {mutant.text}", flush=True)


def main() -> int:
    """Try a sample of mutants of every target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", help="default: all")
    parser.add_argument("--sample", type=int, default=15, help="mutants per target")
    parser.add_argument("--survivors", action="store_true", help="try those again that survived")
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"))
    args = parser.parse_args()
    wanted = args.targets or [*COMPILED, *PLAIN]
    for table, compiled in ((COMPILED, True), (PLAIN, False)):
        parts = [part for part in table if part in wanted]
        # A process of its own for each way of running: numba reads its switch only once.
        context = multiprocessing.get_context("spawn")
        options = {"compiled": compiled, "sample": args.sample, "survivors": args.survivors}
        process = context.Process(target=run, args=(parts, args.out), kwargs=options)
        process.start()
        process.join()
    tried = read(args.out)
    killed = sum(bool(killer) for killer in tried.values())
    print(f"{killed} of {len(tried)} mutants killed ({killed / max(len(tried), 1):.1%})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
