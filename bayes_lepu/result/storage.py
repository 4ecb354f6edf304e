"""The file a fit is kept in: netCDF, followed by a checksum that is verified before anything else.

Conventions
-----------
The last 48 bytes are `MARK` (8), the length of the netCDF part (8, little-endian) and its SHA-256
(32). HDF5 ignores what follows its own end, so that `xarray.open_datatree` and `arviz.from_netcdf`
read the same file. Nothing is handed to HDF5 before the checksum agrees: on damaged bytes it may
crash, ask for any amount of memory, or not return at all.
"""

import hashlib
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from bayes_lepu.errors import FileFormatError
from bayes_lepu.runtime.files import replace_file

if TYPE_CHECKING:
    import xarray as xr

MARK = b"LEPUSHA2"
HDF5 = b"\x89HDF\r\n\x1a\n"
TRAILER = len(MARK) + 8 + 32


def write_tree(tree: "xr.DataTree", path: Path) -> Path:
    """Write a tree; an existing file is replaced when the new one is complete, not before."""
    # HDF5 crashes at exit after a disk ran full under it, so it writes to memory only.
    content = bytes(tree.to_netcdf(engine="h5netcdf"))
    return replace_file(path, content + _trailer(content))


def read_tree(path: Path) -> "xr.DataTree":
    """The tree of a file, fully read, if its checksum agrees."""
    import xarray as xr

    content = _checked(path)
    try:
        with xr.open_datatree(BytesIO(content), engine="h5netcdf") as opened:
            _refuse_more_than_there_is(opened, len(content), path)
            # Group by group: DataTree.load leaves some variables lazy, and the file open.
            groups = {g.path: g.to_dataset(inherit=False).load() for g in opened.subtree}
            return xr.DataTree.from_dict(groups)
    except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
        raise FileFormatError(
            f"{path} is not a netCDF file written by Fit.save ({error})."
        ) from error


def _trailer(content: bytes) -> bytes:
    return MARK + len(content).to_bytes(8, "little") + hashlib.sha256(content).digest()


def _checked(path: Path) -> bytes:
    """The netCDF part of a file whose checksum agrees."""
    if not path.exists():
        raise FileFormatError(f"{path} does not exist. Fit.save(path) writes such a file.")
    if not path.is_file():
        raise FileFormatError(f"{path} is not a file. Fit.save(path) writes one.")
    try:
        whole = path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read ({error.strerror}).") from error
    if not whole.startswith(HDF5):
        raise FileFormatError(f"{path} is not a netCDF file written by Fit.save.")
    content, trailer = whole[:-TRAILER], whole[-TRAILER:]
    if not trailer.startswith(MARK):
        raise FileFormatError(
            f"{path} does not end in the checksum that Fit.save writes: it is cut short, or was "
            "written by something else. Fit again, or take another copy of the file."
        )
    if trailer != _trailer(content):
        raise FileFormatError(
            f"{path} is damaged: its checksum does not agree with its contents. Fit again, or take "
            "another copy of the file."
        )
    return content


def _refuse_more_than_there_is(tree: "xr.DataTree", size: int, path: Path) -> None:
    """Refuse arrays larger than the file, which HDF5 would make out of nothing.

    Nothing is compressed here, so a fit never holds more bytes than its file. Texts count for
    nothing: their length is known only after they are read.
    """
    total = sum(
        variable.size * variable.dtype.itemsize
        for group in tree.subtree
        for variable in group.to_dataset(inherit=False).variables.values()
        if variable.dtype.kind in "biuf"
    )
    if total > size:
        raise FileFormatError(
            f"{path} claims to hold {total} bytes of numbers in a file of {size}: not a file "
            "written by Fit.save."
        )
