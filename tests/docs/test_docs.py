"""Documents cannot drift: examples run, names, map, pictures and figures are compared."""

import contextlib
import importlib
import inspect
import json
import re
import sys

import matplotlib
import pytest

import bayes_lepu as lepu
from bayes_lepu.model import list_models
from tests.documents import ROOT, blocks, run
from tests.patience import slow
from tools.defaults_version import defaults_version
from tools.figures import DOCUMENTS, ROW, TABLE, refreshed
from tools.pictures import graph

DOCS = ROOT / "docs"
PACKAGES = (
    "bayes_lepu",
    "bayes_lepu.datasets",
    "bayes_lepu.estimators",
    "bayes_lepu.plots",
    "reproduction.datasets",
    "reproduction.experiments",
)
PAGES = sorted(DOCS.rglob("*.md"))
STORED = json.loads((DOCS / "stored-results.json").read_text("utf-8"))
LONG = ("coming-from", "choosing-a-model", "experiments", "panel")  # pages whose examples take long


def public_names():
    """Every name exported by the library, its public packages and the experiments, in full."""
    names = set()
    for package in PACKAGES:
        module = importlib.import_module(package)
        names |= {f"{module.__name__}.{name}" for name in module.__all__}
    # A name of the top level that is also exported by a package is documented once.
    names -= {"bayes_lepu.plots", "bayes_lepu.load_demo"}
    return names


def documented_names():
    found = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        found |= set(re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE))
        for package in re.findall(r"^\[\[public names of ([\w.]+)\]\]$", text, re.MULTILINE):
            names = importlib.import_module(package).__all__
            found |= {f"{package}.{name}" for name in names}
    return found


def test_reference_pages_are_the_public_names():
    """And, beyond them, what public functions return and how scores are to be read."""
    beyond = {f"bayes_lepu.verdict.records.{n}" for n in ("Identifiability", "Check", "Offer")}
    beyond.add("bayes_lepu.estimators")
    beyond.add("bayes_lepu.dask.predict_proba")  # of an extra
    assert documented_names() == public_names() | beyond


# LOO on the few draws of an example may warn of influential rows, as it should.
@pytest.mark.filterwarnings("ignore:Estimated shape parameter:UserWarning")
@pytest.mark.parametrize(
    "page",
    [slow(p) if p.stem in LONG else p for p in PAGES if blocks(p, "python")],
    ids=lambda p: p.stem,
)
def test_examples_of_the_pages_run(page, tmp_path):
    matplotlib.use("Agg")
    namespace = {}
    with contextlib.chdir(tmp_path):
        for code in blocks(page, "python"):
            run(code, page, namespace)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def test_every_public_name_is_in_an_example_that_runs():
    """In a block of a page, or after >>> in its docstring; both are executed by tests."""
    code = "\n".join(block for page in PAGES for block in blocks(page, "python"))
    missing = []
    for name in sorted(public_names()):
        package, _, last = name.rpartition(".")
        thing = getattr(importlib.import_module(package), last)
        if not re.search(rf"\b{last}\b", code) and ">>> " not in (thing.__doc__ or ""):
            missing.append(name)
    assert not missing


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_quoted_figures_are_the_stored_ones(path):
    text = path.read_text(encoding="utf-8")
    assert ROW.findall(text) or TABLE.findall(text)
    assert refreshed(text) == text, "run: python -m tools.figures"


@pytest.mark.parametrize("name", [*list_models(), "panel", "false_marks"])
def test_graph_pictures_are_those_of_the_models(name):
    picture = ROOT / "models" / name / "graph.svg"
    assert picture.read_text(encoding="utf-8") == graph(name), "run: python -m tools.pictures"
    assert "](graph.svg)" in (picture.parent / "card.md").read_text(encoding="utf-8")


def test_the_groups_of_options_are_those_of_fit():
    text = (DOCS / "reference" / "fitting.md").read_text("utf-8")
    rows = re.findall(r"^\| [a-z ]+ \| (`.*) \|$", text, re.MULTILINE)
    named = sorted(name for row in rows for name in re.findall(r"`(\w+)`", row))
    assert named == sorted(set(inspect.signature(lepu.fit).parameters) - {"X", "l"})


LINK = re.compile(r"\]\(([^)#:\s]+\.(?:md|ipynb|html|png|svg))")


def test_links_between_pages_hold_in_a_clone():
    """The site's hook turns those that lead out of ``docs/`` into links between its pages."""
    for page in PAGES:
        for target in LINK.findall(page.read_text("utf-8")):
            assert (page.parent / target).exists(), (page, target)


@pytest.mark.parametrize("what", STORED)
def test_stored_results_are_those_of_todays_defaults(what):
    """After a change of the defaults make them again, and write the new version beside them."""
    assert (ROOT / what).exists()
    today = defaults_version(learned=True)
    assert STORED[what]["defaults"] == today, f"{STORED[what]['make']}, then {today!r}"
