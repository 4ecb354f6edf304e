"""Atomic writing of files: after a failure the old file is still complete."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bayes_lepu.errors import ModelError


def page_name(path: str | Path) -> Path:
    """The path of an HTML page, which must end in .html or .htm unless it is a device."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm") and (path.is_file() or not path.exists()):
        raise ModelError(
            f"{path} is no name of a page: the report is HTML, and a name that ends in .html or "
            ".htm is expected. A browser prints it to PDF."
        )
    return path


def replace_file(path: Path, content: bytes) -> Path:
    """Write a file atomically; see `new_file`."""
    with new_file(path) as file:
        file.write(content)
    return path


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A temporary file in the same folder, which replaces the target when it is complete.

    Permissions of an existing file are kept, and links are followed.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder; the name of a file is expected.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {target.parent}.")
    if target.exists() and not target.is_file():  # a pipe or a device, such as /dev/stdout
        with path.open("wb") as file:
            yield file
        return
    part = target.with_name(f".{target.name[:80]}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            part.chmod(target.stat().st_mode & 0o777)
        part.replace(target)
    except OSError as error:
        reason = error.strerror or str(error)
        clear = type(error)(f"{path} was not written ({reason}); nothing there was changed.")
        clear.errno = error.errno
        raise clear from error
    finally:
        part.unlink(missing_ok=True)
    if os.name == "posix":  # the new name survives a power cut too
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
