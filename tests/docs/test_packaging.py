"""The package as others get it: what it declares is what it imports, and the workflows can run."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import yaml

import bayes_lepu as lepu

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DISTRIBUTIONS = {  # where the name one imports is not the name one installs
    "arviz_base": "arviz-base",
    "arviz_plots": "arviz-plots",
    "arviz_stats": "arviz-stats",
    "sklearn": "scikit-learn",
    "PIL": "pillow",
}


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=!~; ]", entry)[0] for entry in requirements}


def imported() -> set[str]:
    """Top-level modules that the package imports, standard library and itself left out."""
    found = set()
    for path in (ROOT / "bayes_lepu").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add(str(node.module).partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"bayes_lepu"}


def test_every_import_is_declared() -> None:
    declared = names(PROJECT["dependencies"])
    for extra, requirements in PROJECT["optional-dependencies"].items():
        if extra not in ("dev", "docs"):
            declared |= names(requirements)
    missing = {DISTRIBUTIONS.get(name, name) for name in imported()} - declared
    assert not missing


def test_workflows_call_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = set()
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        called |= set(re.findall(r"- run: make ([a-z-]+)", path.read_text()))
    assert called
    assert called <= targets


def test_conda_recipe_follows_the_project() -> None:
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
    assert recipe["context"]["version"] == PROJECT["version"]
    wanted = {entry.replace(">=", " >=") for entry in PROJECT["dependencies"]}
    assert set(recipe["requirements"]["run"]) == wanted | {"python " + PROJECT["requires-python"]}


def test_version_is_that_of_the_project() -> None:
    assert lepu.__version__ == PROJECT["version"]
