"""The notebooks: stored executed and small, in the documentation, and running."""

import os
import subprocess
import sys

import nbformat
import pytest
import yaml

from tests.documents import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MAX_KB = 260  # pictures have 110 dots per inch


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_stored_executed_and_small(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    counts = [c.execution_count for c in notebook.cells if c.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1)), "run: make notebooks"
    outputs = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
    assert path.stat().st_size < MAX_KB * 1024


def test_all_are_pages_of_the_documentation():
    class Loader(yaml.SafeLoader):
        """MkDocs writes some options as Python names."""

    nav = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)["nav"]
    sections = [*_section(nav, "Notebooks"), *_section(nav, "Gallery")]
    pages = [uri for entry in sections for uri in entry.values()]
    assert pages == [f"notebooks/{path.stem}.md" for path in NOTEBOOKS]


def _section(nav, name):
    return next(entry[name] for entry in nav if name in entry)


@pytest.mark.slow
def test_all_run_with_few_draws():
    """In one process of their own; the data of notebook 05 are absent, which it must survive."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.notebooks", "--check"],
        cwd=ROOT,
        env={**os.environ, "BAYES_LEPU_DATA": str(ROOT / "no-such-folder")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    for path in NOTEBOOKS:
        assert f"{path.name}:" in done.stdout
    assert "The data are not here" in done.stdout
