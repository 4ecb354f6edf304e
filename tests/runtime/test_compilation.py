"""Compiled code on disk is used only while everything inside it is up to date."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bayes_lepu
from bayes_lepu.runtime.compilation import SOURCES, source_digest

PACKAGE = Path(bayes_lepu.__file__).parent
NEVER_COMPILED = (
    "bayes_lepu.errors",
    "bayes_lepu.suggestions",
)
CALLEE = """
from bayes_lepu.runtime.compilation import compiled


@compiled()
def one():
    return 1
"""
CALLER = """
from bayes_lepu.runtime.compilation import compiled
from bayes_lepu.rows.callee import one


@compiled()
def ten():
    return 10 * one()


print(ten(), sum(ten.stats.cache_hits.values()))
"""


def run_caller(folder: Path) -> tuple[int, int]:
    """Result of the calling function, and how many of its compilations were read from disk."""
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", "import bayes_lepu.rows.caller"],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    value, hits = done.stdout.split()
    return int(value), int(hits)


def test_a_changed_callee_in_another_file_is_compiled_again(tmp_path):
    package = tmp_path / "bayes_lepu"
    for part in (*SOURCES, "errors.py"):
        target = package / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (PACKAGE / part).is_dir():
            shutil.copytree(PACKAGE / part, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(PACKAGE / part, target)
    for folder in (package, package / "rows", package / "runtime"):
        (folder / "__init__.py").write_text("")
    callee = package / "rows" / "callee.py"
    callee.write_text(CALLEE)
    (package / "rows" / "caller.py").write_text(CALLER)

    assert run_caller(tmp_path) == (10, 0)
    assert run_caller(tmp_path) == (10, 1)
    callee.write_text(CALLEE.replace("return 1", "return 2"))
    assert run_caller(tmp_path) == (20, 0)


def uses_numba(tree: ast.Module) -> bool:
    imported = {
        a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names
    }
    imported |= {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    return any(name.split(".")[0] == "numba" or name.endswith("compilation") for name in imported)


def counts(path: Path) -> bool:
    return any(path == PACKAGE / part or PACKAGE / part in path.parents for part in SOURCES)


def compiled_modules() -> list[Path]:
    files = sorted(PACKAGE.rglob("*.py"))
    return [f for f in files if counts(f) or uses_numba(ast.parse(f.read_text("utf-8")))]


def test_all_that_is_compiled_counts():
    for file in compiled_modules():
        assert counts(file), file
        # What a compiled module imports is compiled into it.
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            if module and module.startswith("bayes_lepu.") and module not in NEVER_COMPILED:
                path = PACKAGE.joinpath(*module.split(".")[1:])
                assert counts(path if path.is_dir() else path.with_suffix(".py")), (file, module)


def test_nothing_is_compiled_past_the_common_decorator():
    for file in PACKAGE.rglob("*.py"):
        if file.name != "compilation.py":
            assert "njit" not in file.read_text("utf-8"), file


def test_the_digest_is_of_the_files_named():
    assert source_digest("links.py") == source_digest("links.py")
    assert source_digest("links.py") != source_digest("errors.py")
    assert source_digest("rows") != source_digest("rows/formula.py")
    with pytest.raises(FileNotFoundError):
        source_digest("missing.py")


WITHOUT = """
import warnings
from numba.core.caching import CacheImpl
CacheImpl._locator_classes = []
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import bayes_lepu
    from bayes_lepu.factors.arithmetic import exp
print(len([w for w in seen if "NUMBA_CACHE_DIR" in str(w.message)]), exp(0.0))
"""


def test_the_library_works_where_nothing_can_be_kept():
    """As where the home folder and the library's own are read-only: one warning says so."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "1.0"]


DAMAGED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import kept
print(kept.one(), sum(kept.one.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_damaged_machine_code_is_compiled_again(tmp_path):
    (tmp_path / "kept.py").write_text(CALLEE)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run() -> str:
        command = [sys.executable, "-c", DAMAGED, str(tmp_path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    assert [run(), run()] == ["1 0\n", "1 1\n"]
    for ending in ("nbi", "nbc"):
        (file,) = (tmp_path / "cache").rglob(f"kept.one*.{ending}")
        file.write_bytes(file.read_bytes()[:20])
        assert run().startswith("1 ")


STRANGE = """
from numba.core import dispatcher
dispatcher.Dispatcher.enable_caching = lambda self: setattr(self, "_cache", object())
from bayes_lepu.factors.arithmetic import exp
print(exp(0.0), sum(exp.stats.cache_hits.values()))
"""


def test_where_the_cache_of_numba_has_other_parts_nothing_is_kept():
    """Its insides are private: without them each process compiles, and nothing is out of date."""
    done = subprocess.run(
        [sys.executable, "-c", STRANGE], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1.0", "0"]
