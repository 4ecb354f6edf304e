"""Mutation testing: change one place of the numerics at a time and see whether a test notices.

``python -m tools.mutants`` lists, per file, the mutants that survive its fast tests. A survivor is
either a test that is missing or a change that does not change the value (an equivalent mutant).
The working copy is never touched: every mutant is made in a temporary copy of the tree.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What is mutated, and the fast tests that must notice.
TARGETS = {
    "links.py": ["test_links.py"],
    "priors.py": ["test_priors.py", "models/test_density.py"],
    "families.py": ["test_priors.py", "models/test_density.py"],
    "arithmetic.py": ["likelihood"],
    "likelihood": ["likelihood"],
    "propensities": ["propensities", "likelihood"],
    "models/density.py": ["models/test_density.py"],
    "models/prior_terms.py": ["models/test_density.py"],
    "inference/folding.py": ["inference/test_folding.py"],
    "inference/orientation.py": ["inference/test_orientation.py"],
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


class Mutant:
    """One change at one place.

    Attributes
    ----------
    line : int
    text : str
        What was changed to what.
    source : str
        The whole file with the change.
    """

    def __init__(self, line: int, text: str, source: str) -> None:
        self.line, self.text, self.source = line, text, source


def mutants(source: str) -> Iterator[Mutant]:
    """All mutants of a file: operators, comparisons, numbers and signs."""
    tree = ast.parse(source)
    for position, node in enumerate(ast.walk(tree)):
        for change in _changes(node):
            changed = copy.deepcopy(tree)
            twin = next(n for i, n in enumerate(ast.walk(changed)) if i == position)
            before = ast.unparse(twin)
            change(twin)
            after = ast.unparse(twin)
            yield Mutant(node.lineno, f"{before}  ->  {after}", ast.unparse(changed))  # type: ignore[attr-defined]


def _changes(node: ast.AST) -> Iterator[object]:
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


def survives(tree: Path, tests: list[str], seconds: float) -> bool:
    """Whether the tests pass in this tree."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    command += [f"tests/{name}" for name in tests]
    environment = os.environ | {"PYTHONPATH": str(tree), "NUMBA_CACHE_DIR": str(tree / ".numba")}
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def run(part: str, tests: list[str], *, sample: int, seed: int, seconds: float) -> tuple[int, int]:
    """Try some mutants of a target; print those that survive. Returns tried and killed."""
    found = [(path, m) for path in files(part) for m in mutants(path.read_text("utf-8"))]
    chosen = random.Random(seed).sample(found, min(sample, len(found)))
    killed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        leave = shutil.ignore_patterns(".git", ".venv", "__pycache__", "site", "*.ipynb", ".*cache")
        shutil.copytree(ROOT, tree, ignore=leave)
        for path, mutant in sorted(chosen, key=lambda c: (c[0], c[1].line)):
            place = tree / path.relative_to(ROOT)
            original = place.read_text("utf-8")
            place.write_text(mutant.source, encoding="utf-8")
            if survives(tree, tests, seconds):
                print(
                    f"survived  {path.relative_to(ROOT)}:{mutant.line}  {mutant.text}", flush=True
                )
            else:
                killed += 1
            place.write_text(original, encoding="utf-8")
    print(f"{part}: {killed} of {len(chosen)} killed ({len(found)} possible)", flush=True)
    return len(chosen), killed


def main() -> int:
    """Try a sample of mutants of every target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=list(TARGETS), help="default: all")
    parser.add_argument("--sample", type=int, default=25, help="mutants per target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600, help="longest run of the tests")
    args = parser.parse_args()
    tried = killed = 0
    for part in args.targets:
        one = run(part, TARGETS[part], sample=args.sample, seed=args.seed, seconds=args.seconds)
        tried, killed = tried + one[0], killed + one[1]
    print(f"{killed} of {tried} mutants killed ({killed / max(tried, 1):.0%})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
