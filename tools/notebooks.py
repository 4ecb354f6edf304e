"""Execute the notebooks, each in a fresh kernel, and store their outputs: `make notebooks`.

Exits with 1 and names the notebook when a cell fails; the file is then left as it was.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
TIMEOUT = 900


def execute(path: Path) -> None:
    """Run one notebook from top to bottom and write it back with its outputs."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=TIMEOUT,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,  # times of day would change the file on every run
    ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    # What depends on the machine alone stays out of the file.
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    nbformat.write(notebook, path)


def main() -> int:
    """Execute the named notebooks, or all of them in order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all in notebooks/")
    wanted = parser.parse_args().notebooks or sorted(FOLDER.glob("*.ipynb"))
    # A figure in a stored notebook should cost kilobytes; kernels inherit this environment.
    os.environ.setdefault("PYTHONWARNINGS", "ignore::DeprecationWarning,ignore::FutureWarning")
    for path in wanted:
        start = time.monotonic()
        print(f"{path.name} ...", end=" ", flush=True)
        try:
            execute(path)
        except CellExecutionError as error:
            print(f"failed\n{error}")
            return 1
        size = path.stat().st_size / 1024
        print(f"{time.monotonic() - start:.0f} s, {size:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
