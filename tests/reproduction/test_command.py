"""``bayes-lepu reproduce``: in a clone it runs, after a plain install it says what it needs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bayes_lepu
from tests.patience import slow

PACKAGE = Path(bayes_lepu.__file__).parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the library alone, as a wheel would leave it."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(PACKAGE, folder / "bayes_lepu", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def reproduce(installed: Path, cwd: Path, *options: str) -> subprocess.CompletedProcess[str]:
    # -P: the folder one stands in is not on the path, as for the installed command.
    return subprocess.run(
        [sys.executable, "-P", "-m", "bayes_lepu", "reproduce", *options],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("options", [slow([]), ["table1", "--trials", "5"]])
def test_a_plain_install_asks_for_the_clone(installed: Path, tmp_path: Path, options: list[str]):
    done = reproduce(installed, tmp_path, *options)
    assert done.returncode == 2
    assert "not part of the installed library. Clone its repository" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_plain_install_says_so_in_its_help(installed: Path, tmp_path: Path):
    done = reproduce(installed, tmp_path, "--help")
    assert done.returncode == 0
    assert "Clone" in done.stdout


@pytest.mark.slow
def test_in_a_clone_it_runs_although_the_library_is_installed_elsewhere(
    installed: Path, tmp_path: Path
):
    done = reproduce(
        installed,
        PACKAGE.parent,
        "table1",
        "--trials",
        "1",
        "--rows",
        "200",
        "--out",
        str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "table1.md").exists()
