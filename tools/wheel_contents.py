"""What a wheel and an sdist must hold, and must not: ``python wheel_contents.py dist``."""

import sys
import tarfile
import zipfile
from pathlib import Path

NEEDED = (
    "bayes_lepu/py.typed",
    "bayes_lepu/report/template.html",
    "bayes_lepu/report/style.css",
    "bayes_lepu/report/script.js",
)
ONLY_IN_SDIST = ("tests/", "models/", "reproduction/")
MAX_BYTES = 2_000_000  # of the wheel


def main(folder: Path) -> int:
    """Print what is wrong; the number of complaints is the exit code."""
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    in_wheel = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    complaints = [f"{wheel.name} lacks {name}" for name in NEEDED if name not in in_wheel]
    complaints += [f"{sdist.name} lacks {name}" for name in NEEDED if name not in in_sdist]
    for prefix in ONLY_IN_SDIST:
        if any(name.startswith(prefix) for name in in_wheel):
            complaints.append(f"{wheel.name} holds {prefix}")
        if not any(name.startswith(prefix) for name in in_sdist):
            complaints.append(f"{sdist.name} lacks {prefix}")
    if (size := wheel.stat().st_size) > MAX_BYTES:
        complaints.append(f"{wheel.name} has {size:,} bytes, more than {MAX_BYTES:,}")
    print("\n".join(complaints) or f"{wheel.name} ({size:,} bytes) and {sdist.name} are complete.")
    return len(complaints)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
