"""Execute the notebooks: `make notebooks`, or with ``--check`` as the tests do.

By default each runs in a fresh kernel and is written back with its outputs. With ``--check`` all
run in this process with few draws (``BAYES_LEPU_FAST=1``) and nothing is written; imports and
compiled code are shared, which takes a tenth of the time. Exits with 1 and names the failing cell.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import nbformat

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
TIMEOUT = 900


class CellError(Exception):
    """A cell of a notebook failed."""


def execute(path: Path) -> None:
    """Run one notebook from top to bottom and write it back with its outputs."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        startup_timeout=TIMEOUT,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,  # times of day would change the file on every run
    )
    try:
        client.execute()
    except CellExecutionError as error:
        raise CellError(str(error)) from None
    # What depends on the machine alone stays out of the file: names, and the line of a first run.
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [
                o for o in cell.outputs if "Compiling the numeric" not in o.get("text", "")
            ]
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    nbformat.write(notebook, path)


def check(path: Path) -> None:
    """Run the cells of one notebook in this process, in a namespace of its own."""
    import matplotlib.pyplot as plt
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.reset()
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code" and not shell.run_cell(cell.source).success:
            raise CellError(f"{path.name}: this cell failed:\n{cell.source}")
    plt.close("all")


def main() -> int:
    """Execute the named notebooks, or all of them in order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all in notebooks/")
    parser.add_argument("--check", action="store_true", help="few draws, nothing is written")
    args = parser.parse_args()
    wanted = [path.resolve() for path in args.notebooks] or sorted(FOLDER.glob("*.ipynb"))
    if args.check:
        os.environ |= {"BAYES_LEPU_FAST": "1", "MPLBACKEND": "Agg"}
        os.chdir(FOLDER)
        sys.path.insert(0, str(FOLDER))  # as in a kernel: the tables are made by a script there
    for path in wanted:
        start = time.monotonic()
        try:
            check(path) if args.check else execute(path)
        except CellError as error:
            print(error)
            return 1
        size = path.stat().st_size / 1024
        print(f"{path.name}: {time.monotonic() - start:.0f} s, {size:.0f} kB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
