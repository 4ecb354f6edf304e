"""Mutation testing: change one place of the numerics at a time and see whether a test notices.

``python -m tools.mutants`` tries a sample per target and appends one line of JSON per mutant to
``mutants.jsonl``; what stands there already is not tried again, so that it goes on where it was
stopped. ``--survivors`` tries those again that survived, after a test was added. A survivor is
either a test that is missing or a change that does not change the value (an equivalent mutant);
docs/robustness.md explains each.

No file is touched. One process per group of targets collects their tests and finds out which pass
and are quick; a fork per mutant exchanges the code of functions in memory and runs them, those
first that have noticed most. Compiled sources are interpreted (`tools.interpreted`). A mutant thus
takes about a second.
"""

import argparse
import ast
import copy
import gc
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).resolve().parent.parent
SLOWEST = 0.7  # seconds of CPU that one of the tests may take without a change
LONGEST = 3000  # and all of them
QUIETLY = ["-q", "-n", "0", "-p", "no:cacheprovider"]

# What is mutated, and the fast tests that must notice.
KERNEL = ("likelihood", "factors")
DENSITY = ("models/test_density.py", "models/test_pooled_density.py", "models/test_terms.py")
PRIORS = ("priors", "models/test_density.py")
CHECKS = ("diagnostics/test_figures.py", "diagnostics/test_numbers.py")
COMPILED = {
    "links.py": KERNEL,
    "factors/arithmetic.py": KERNEL,
    "likelihood": KERNEL,
    "factors": KERNEL,
    "models/compiled.py": (*DENSITY, "inference/test_scales.py", "inference/test_folding.py"),
    "inference/quadratic.py": ("inference/test_quadratic.py",),
}
PLAIN = {
    "priors/prior.py": PRIORS,
    "priors/families.py": PRIORS,
    "models/blocks.py": DENSITY,
    "models/density.py": DENSITY,
    "models/prior_terms.py": DENSITY,
    "inference/folding.py": ("inference/test_folding.py",),
    "inference/orientation.py": ("inference/test_orientation.py",),
    "diagnostics/levels.py": CHECKS,
    "diagnostics/profile.py": CHECKS,
    "diagnostics/exceptional.py": CHECKS,
    "diagnostics/data_information.py": CHECKS,
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
    inside = {id(node) for node in _bodies(tree)}
    for position, node in enumerate(ast.walk(tree)):
        for change in _changes(node) if id(node) in inside else ():
            changed = copy.deepcopy(tree)
            twin: Any = next(n for i, n in enumerate(ast.walk(changed)) if i == position)
            before = ast.unparse(twin)
            change(twin)
            after = ast.unparse(twin)
            name = str(path.relative_to(ROOT))
            text = f"{before}  ->  {after}"
            yield Mutant(name, twin.lineno, twin.col_offset, text), ast.unparse(changed)


def _bodies(tree: ast.Module) -> Iterator[ast.AST]:
    """What can be exchanged in memory: bodies of functions, and constants of the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for statement in node.body:
                yield from ast.walk(statement)
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            yield from ast.walk(statement.value)


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


def exchange(module: Any, source: str) -> None:
    """Give the functions and constants of a module, wherever they are held, their changed form."""
    code = compile(source, module.__file__, "exec")
    new = {inner.co_qualname: inner for inner in _codes(code)}
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            changed = new.get(function.__code__.co_qualname)
            if changed and changed.co_freevars == function.__code__.co_freevars:
                function.__code__ = changed
    before = _constants(Path(module.__file__).read_text("utf-8"))
    for name, value in _constants(source).items():
        if value == before[name]:
            continue
        old, now = vars(module)[name], eval(value, vars(module))
        ours = [m for key, m in sys.modules.items() if key.startswith("bayes_lepu")]
        for holder in (m for m in ours if vars(m).get(name) is old):
            setattr(holder, name, now)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes(inner)


def _constants(source: str) -> dict[str, str]:
    """The constants of a module, as they are written."""
    found = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    return {ast.unparse(node.targets[0]): ast.unparse(node.value) for node in found}


class Session:
    """A plug-in of pytest that runs the collected tests again and again, each time in a fork."""

    def __init__(self, parts: list[str], out: Path, *, sample: int, survivors: bool) -> None:
        self.parts, self.out, self.sample, self.survivors = parts, out, sample, survivors
        self.killers: Counter[str] = Counter()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try all mutants of the targets."""
        done, options = read(self.out), {"sample": self.sample, "survivors": self.survivors}
        chosen = [pair for part in self.parts for pair in choose(part, done, **options)]
        seconds = dict(_forked(lambda tell: _time(session.items, tell), LONGEST) if chosen else [])
        quick = [item for item in session.items if seconds.get(item.nodeid, 99) < SLOWEST]
        say(f"{', '.join(self.parts)}: {len(chosen)} mutants, {len(quick)} tests")
        limit = 30 + 3 * round(sum(s for s in seconds.values() if s < 99))
        for mutant, source in chosen if quick else []:
            self._try(mutant, source, quick, limit)
        return True

    def _try(self, mutant: Mutant, source: str, tests: list[Any], limit: int) -> None:
        name = mutant.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        tests = sorted(tests, key=lambda item: -self.killers[item.nodeid])

        def run(tell: Callable[[Any], None]) -> None:
            exchange(sys.modules[name], source)
            for place, item in enumerate(tests):
                following = tests[place + 1] if place + 1 < len(tests) else None
                if any(r.failed for r in runtestprotocol(item, log=False, nextitem=following)):
                    return tell(item.nodeid)
            return tell("")

        killer = (_forked(run, limit) or ["no end"])[0]
        self.killers[killer] += 1
        with self.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(mutant) | {"killer": killer}) + "\n")
        if not killer:
            say(f"survived  {mutant.path}:{mutant.line}  {mutant.text}")


def say(text: str) -> None:
    """Tell it past pytest, which holds what tests print."""
    print(text, file=sys.__stderr__, flush=True)


def _time(items: list[Any], tell: Callable[[Any], None]) -> None:
    """Seconds of CPU of every test without its fixtures; 99 of one that fails or is too slow."""
    signal.signal(signal.SIGPROF, _give_up)
    for place, item in enumerate(items):
        spent = [99.0]

        def timed(run: Callable[[], None] = item.runtest, spent: list[float] = spent) -> None:
            begun = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, SLOWEST)
            run()
            signal.setitimer(signal.ITIMER_PROF, 0)
            spent.append(time.process_time() - begun)

        item.runtest = timed
        following = items[place + 1] if place + 1 < len(items) else None
        runtestprotocol(item, log=False, nextitem=following)
        tell((item.nodeid, spent[-1]))


def _give_up(*_: object) -> None:
    raise TimeoutError


def _forked(work: Callable[[Callable[[Any], None]], None], cpu: int) -> list[Any]:
    """What a fork of this process tells until it ends or has used its seconds of CPU."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=_limited, args=(work, theirs.send, cpu)
    )
    process.start()
    theirs.close()
    told = []
    try:
        while True:
            told.append(ours.recv())
    except EOFError:
        process.join()
    return told


def _limited(work: Callable[..., None], tell: Callable[[Any], None], cpu: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    work(tell)
    os._exit(0)


def read(path: Path) -> dict[Mutant, str]:
    """What was tried, and the test that killed it."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    return {Mutant(**{k: r[k] for k in Mutant.__annotations__}): r["killer"] for r in records}


def choose(
    part: str, done: dict[Mutant, str], *, sample: int, survivors: bool
) -> list[tuple[Mutant, str]]:
    """The mutants of a target to be tried: a sample of all, or those that survived."""
    place = ROOT / "bayes_lepu" / part
    paths = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    found = [pair for path in paths for pair in mutants(path)]
    if survivors:
        return [(m, source) for m, source in found if done.get(m) == ""]
    files = {str(path.relative_to(ROOT)) for path in paths}
    tried = sum(mutant.path in files for mutant in done)
    left = [(m, source) for m, source in found if m not in done]
    random.Random(part).shuffle(left)
    return left[: max(sample - tried, 0)]


def try_targets(parts: list[str], tests: list[str], out: Path, options: dict[str, Any]) -> None:
    """In a process of its own: targets that are looked after by the same tests."""
    plugins = ["-p", "tools.interpreted"] if parts[0] in COMPILED else []
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is found goes to stderr
    pytest.main([*QUIETLY, *plugins, *tests], plugins=[Session(parts, out, **options)])


def main() -> int:
    """Try a sample of mutants of every target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", help="default: all")
    parser.add_argument("--sample", type=int, default=15, help="mutants per target")
    parser.add_argument("--survivors", action="store_true", help="try those again that survived")
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"))
    args = parser.parse_args()
    groups: dict[tuple[bool, tuple[str, ...]], list[str]] = {}
    for part in args.targets or [*COMPILED, *PLAIN]:
        groups.setdefault((part in COMPILED, (COMPILED | PLAIN)[part]), []).append(part)
    options = {"sample": args.sample, "survivors": args.survivors}
    for (compiled, names), parts in groups.items():
        os.environ["NUMBA_DISABLE_JIT"] = str(int(compiled))  # read once per process
        work = (parts, [f"tests/{name}" for name in names], args.out.absolute(), options)
        process = multiprocessing.get_context("spawn").Process(target=try_targets, args=work)
        process.start()
        process.join()
    tried = read(args.out)
    killed = sum(bool(killer) for killer in tried.values())
    print(f"{killed} of {len(tried)} mutants killed ({killed / max(len(tried), 1):.1%})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
