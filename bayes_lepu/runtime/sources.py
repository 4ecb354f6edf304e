"""A digest of source files, for whatever outlives the code that made it."""

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable


@cache
def source_digest(*parts: str, package: str = "bayes_lepu") -> str:
    """SHA-256 of Python files of a package, as hexadecimal digits.

    Parameters
    ----------
    parts : str
        Files and folders, relative to the package's own folder: "links.py", "rows".
    package : str
    """
    digest = hashlib.sha256()
    for part in parts:
        for path, file in _python_files(part, files(package).joinpath(part)):
            digest.update(f"{path}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _python_files(path: str, place: Traversable) -> Iterator[tuple[str, Traversable]]:
    """Files below a place with their paths, in the same order everywhere."""
    if place.is_dir():
        for inside in sorted(place.iterdir(), key=lambda entry: entry.name):
            if inside.is_dir() or inside.name.endswith(".py"):
                yield from _python_files(f"{path}/{inside.name}", inside)
    else:
        yield path, place
