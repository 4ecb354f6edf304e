"""Compiled code on disk is used only while everything inside it is up to date."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import bayes_lepu
from bayes_lepu.runtime.compilation import SOURCES

PACKAGE = Path(bayes_lepu.__file__).parent
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


def test_all_that_is_compiled_counts():
    """A file of compiled code that is none of the sources would be out of date unnoticed."""
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text("utf-8")
        if "runtime.compilation import compiled" in text or "import numba" in text:
            assert any(PACKAGE / part in (file, *file.parents) for part in SOURCES), file
        assert "njit" not in text or file.name == "compilation.py", file


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
