"""The file of a fit: its tree without what can be made again, a checksum, and the way back.

The root's attributes hold the format, its version, and the options of the call as JSON: the file
explains itself. `arviz.from_netcdf` reads it too.

Conventions
-----------
The last 48 bytes are `MARK` (8), the length of the netCDF part (8, little-endian) and its SHA-256
(32). HDF5 ignores what follows its own end, so that `xarray.open_datatree` and `arviz.from_netcdf`
read the same file. Nothing is handed to HDF5 before the checksum agrees: on damaged bytes it may
crash, ask for any amount of memory, or not return at all.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
import xarray as xr
from scipy.sparse import csr_array

from bayes_lepu.choosing import Candidate, Choice
from bayes_lepu.dask import PartitionedData
from bayes_lepu.data.encoding import Encoding
from bayes_lepu.data.labels import ONE
from bayes_lepu.data.learned import Learned
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines.engines import Quality
from bayes_lepu.engines.modes import Mode
from bayes_lepu.engines.orientation import Orientation
from bayes_lepu.errors import FileFormatError, ModelError
from bayes_lepu.factors import CURVES, Factor
from bayes_lepu.factors import REGISTRY as PROPENSITIES
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.model.variables import (
    from_variables,
)
from bayes_lepu.options import FitOptions
from bayes_lepu.priors.prior import Prior
from bayes_lepu.result.origin import Provenance
from bayes_lepu.result.tree import (
    SPARSE,
    groups_without_rows,
    learned_group,
    stored_groups,
)
from bayes_lepu.runtime.files import replace_file

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

FORMAT = "bayes_lepu.fit"
FORMAT_VERSION = 8
WRONG = (LookupError, ValueError, TypeError, AttributeError)  # of what a file lacks or has instead
LEARNED = "learned"  # the group of the trees that learned the shape of the class


# The fields of `PUData` with an entry per row.
ROWS = ("X", "labels", "y", "index", "weight", "drawn")


class ColumnsOnly(PUData):
    """`PUData` without what belongs to single rows, which is an error to ask for."""

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """Only what is not there ends here."""
        if name not in ROWS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise ModelError(
            "This fit was saved without its rows (data=False): it predicts new rows and says what "
            "it printed when it was saved. For this, load the fit that was saved with them."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.feature_names)})"

    def __dask_tokenize__(self) -> list[tuple[str, Any]]:
        """By what is there; Dask would ask for every field."""
        return sorted(vars(self).items())


@dataclass(frozen=True, eq=False)
class Remembered:
    """What a fit knew of its rows when it was saved after its verdict, or without them.

    Attributes
    ----------
    pi : (draw,) array
        Class prior.
    c : (draw, J) array
        Label frequency of every annotator.
    prior_pi, prior_c : (draw,) arrays
        Draws of both from the prior; empty for a point estimate.
    level : int
        Level of the verdict.
    pi_range : (float, float), optional
        Range of π of the verdict.
    hits : (2, rows) array
        Fewest and most positives among the first open rows (`actions.missed.Alternatives`).
    facts : mapping of str to str
        What the fit printed.
    """

    pi: Array
    c: Array
    prior_pi: Array
    prior_c: Array
    level: int
    pi_range: tuple[float, float] | None
    hits: Array
    facts: Mapping[str, str]

    def to_dataset(self) -> xr.Dataset:
        """As a group of a saved fit."""
        arrays = {k: v for k, v in vars(self).items() if isinstance(v, np.ndarray)}
        rest = {k: v for k, v in vars(self).items() if k not in arrays}
        named = {k: ([f"{k}_{i}" for i in range(v.ndim)], v) for k, v in arrays.items()}
        return xr.Dataset(named | {"rest": json.dumps(rest)})

    @classmethod
    def from_group(cls, group: Any) -> Self:
        """Inverse of `to_dataset`."""
        own = {str(name): variable.to_numpy() for name, variable in group.data_vars.items()}
        rest = json.loads(str(own.pop("rest").item()))
        ends = rest.pop("pi_range")
        return cls(**own, **rest, pi_range=ends and (ends[0], ends[1]))


def to_saved(
    fit: "Fit",
    *,
    all_groups: bool = False,
    remembered: Remembered | None = None,
    rows: bool = True,
) -> xr.DataTree:
    """The tree to write, by default without the groups that `read_fit` does not need."""
    if all_groups:
        tree = fit.tree.copy()
    else:
        tree = xr.DataTree.from_dict(stored_groups(fit) if rows else groups_without_rows(fit))
    if remembered is not None:
        tree["remembered"] = xr.DataTree(remembered.to_dataset())
    if fit.data.learned is not None:
        tree[LEARNED] = learned_group(fit.data.learned)
    tree.attrs |= {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "about": "bayes_lepu fit; read it with bayes_lepu.load(path) or arviz.from_netcdf(path)",
        "model": fit.spec.name,
        "propensity": fit.spec.propensity.name,
        "of_class": json.dumps(_describe(fit.spec.of_class)),
        "false_marks": int(fit.spec.false_marks),
        "options": fit.options.to_json(),
        "provenance": fit.provenance.to_json(),
        "priors": json.dumps({k: v.to_dict() for k, v in fit.priors.items()}),
        "orientation": json.dumps(vars(fit.orientation)),
        "quality": json.dumps(vars(fit.quality), default=lambda number: number.item()),
        "choice": json.dumps([vars(c) for c in fit.choice.candidates] if fit.choice else None),
    }
    return tree


def read_fit(
    path: Path, propensity: Factor | None = None, class_link: Factor | None = None
) -> dict[str, Any]:
    """The fields of the fit that a file holds; other files and formats are refused.

    Factors whose links do not come with the library have to be given.
    """
    tree = read_tree(path)
    found, version = tree.attrs.get("format"), tree.attrs.get("format_version")
    if found != FORMAT:
        raise FileFormatError(
            f"{path} is not a saved fit of this kind (format {found!r}, {FORMAT!r} expected)."
        )
    if version != FORMAT_VERSION:
        raise FileFormatError(
            f"{path} has format version {version}; this release reads version {FORMAT_VERSION}. "
            "Use the release that wrote it, or fit again."
        )
    name = tree.attrs.get("propensity")
    known = dict(PROPENSITIES) | ({} if propensity is None else {propensity.name: propensity})
    if name not in known:
        raise FileFormatError(
            f"{path} holds a fit of model {tree.attrs.get('model')!r} with the propensity "
            f"{name!r}; this release knows {', '.join(known)}. One of your own goes into "
            "lepu.load(path, model=...)."
        )
    of_class = class_link or _built_in(json.loads(tree.attrs["of_class"]))
    if of_class is None:
        raise FileFormatError(
            f"{path} holds a fit whose class has a link of your own: {tree.attrs['of_class']}. "
            "Hand it over: lepu.load(path, class_link=...)."
        )
    try:
        return _from_tree(tree, known[name], of_class)
    except (*WRONG, MemoryError, OverflowError, RecursionError) as error:
        raise FileFormatError(
            f"{path} is incomplete ({error}). Save the fit again, or use the release that wrote it."
        ) from error


def _describe(factor: Factor) -> dict[str, Any]:
    """What a factor with known rates is made of."""
    return {
        "name": factor.name,
        "formula": factor.formula,
        "link": factor.link.name,
        "fixed": factor.fixed,
    }


def _built_in(stored: dict[str, Any]) -> Factor | None:
    """The factor that was described; None where its link does not come with the library."""
    link = CURVES.get(stored["link"])
    if link is None or stored["fixed"] is None:
        return link
    gamma, lam, rho = stored["fixed"]
    return Factor(stored["name"], stored["formula"], link.link, fixed=(gamma, lam, rho))


def _from_tree(tree: xr.DataTree, propensity: Factor, of_class: Factor) -> dict[str, Any]:
    main = tree["map"] if "map" in tree.children else tree["posterior"]
    marks = bool(tree.attrs["false_marks"])
    spec = ModelSpec(tree.attrs["model"], propensity, of_class, false_marks=marks)
    data = read_rows(tree, learned=read_learned(tree.children.get(LEARNED)))
    orientation = json.loads(tree.attrs["orientation"])
    orientation["sizes"] = {k: tuple(v) for k, v in orientation["sizes"].items()}
    group = tree.children.get("remembered")
    stats = tree["sample_stats"].data_vars if "sample_stats" in tree.children else {}
    levels = None
    if "all_rows" in tree.children:
        every = {str(k): v.to_numpy() for k, v in tree["all_rows"].data_vars.items()}
        data = PartitionedData.of(data, kind_counts=every["counts"], kind_weights=every["weights"])
        levels = every["pi"], every["c"]
    compared = json.loads(tree.attrs["choice"])
    priors = _read_priors(tree.attrs["priors"])
    density = LogDensity(spec, data, priors)
    return {
        "spec": spec,
        "data": data,
        "priors": priors,
        "levels": levels,
        "parameters": _read_parameters(main, tree["log_weights"], density),
        "modes": _read_modes(tree["modes"], density),
        "orientation": Orientation(**orientation),
        "options": FitOptions.from_json(tree.attrs["options"]),
        "provenance": Provenance.from_json(tree.attrs["provenance"]),
        "stats": {str(k): v.to_numpy() for k, v in stats.items() if k != "lp"},
        "quality": Quality(**json.loads(tree.attrs["quality"])),
        "choice": None if compared is None else Choice(tuple(Candidate(**one) for one in compared)),
        "remembered": Remembered.from_group(group) if group else None,
    }


def _read_priors(text: str) -> dict[str, Prior]:
    return {name: Prior.from_dict(stored) for name, stored in json.loads(text).items()}


def _read_parameters(group: Any, log_w: Any, density: LogDensity) -> Parameters:
    logs = log_w["log_weights"].to_numpy()
    values = {str(name): variable.to_numpy() for name, variable in group.data_vars.items()}
    found = from_variables(density, values, logs)
    if not all(np.isfinite(getattr(found, name)).all() for name in ("a", "b", "alpha")):
        raise ValueError("numbers among its parameters are not finite")
    return found


def _read_modes(group: Any, density: LogDensity) -> tuple[Mode, ...]:
    points = _read_parameters(group, group, density)
    plain = [field.name for field in fields(Mode) if field.type is float]
    return tuple(
        Mode(
            point=points.take(i),
            z=group["z"].to_numpy()[i],
            hits=int(group["hits"][i]),
            role=str(group["role"].to_numpy()[i]),  # type: ignore[arg-type]
            converged=bool(group["converged"][i]),
            artefact=str(group["artefact"].to_numpy()[i]),
            **{name: float(group[name][i]) for name in plain},
        )
        for i in range(group.sizes["mode"])
    )


MARK = b"LEPUSHA2"
HDF5 = b"\x89HDF\r\n\x1a\n"
TRAILER = len(MARK) + 8 + 32
NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"


def write_tree(tree: xr.DataTree, path: Path) -> Path:
    """Write a tree; an existing file is replaced when the new one is complete, not before."""
    # HDF5 crashes at exit after a disk ran full under it, so it writes to memory only.
    content = bytes(tree.to_netcdf(engine="h5netcdf"))
    return replace_file(path, content + _trailer(content))


def read_tree(path: Path) -> xr.DataTree:
    """The tree of a file, fully read, if its checksum agrees."""
    content = _checked(path)
    try:
        _refuse_foreign_parts(content, path)
        with xr.open_datatree(BytesIO(content), engine="h5netcdf") as opened:
            # Group by group: DataTree.load leaves some variables lazy, and the file open.
            groups = {g.path: g.to_dataset(inherit=False).load() for g in opened.subtree}
            return xr.DataTree.from_dict(groups)
    except FileFormatError:
        raise
    except (OSError, ValueError, KeyError, RuntimeError, TypeError, MemoryError) as error:
        raise FileFormatError(
            f"{path} is not a netCDF file written by Fit.save ({error})."
        ) from error


def _refuse_foreign_parts(content: bytes, path: Path) -> None:
    """Refuse what `Fit.save` never writes: other files, links, filters, groups in groups.

    HDF5 reads external storage and follows external links wherever they lead, and a group that
    holds itself never ends. Nothing is compressed here, so that a fit holds no more bytes of
    numbers than its file: more of them HDF5 would make out of nothing. Texts count for nothing,
    since their length is known only after they are read.
    """
    import h5py

    with h5py.File(BytesIO(content), "r") as file:
        groups, seen, total = [(file, 0)], set(), 0
        for group, depth in groups:
            for name in group:
                if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                    raise ValueError(f"{name!r} is a link")
                part = group[name]
                place = h5py.h5o.get_info(part.id).addr
                if place in seen or depth > 3:  # a fit has one level of groups
                    raise ValueError(f"{name!r} is there twice, or too deep")
                seen.add(place)
                if isinstance(part, h5py.Group):
                    groups.append((part, depth + 1))
                    continue
                if not isinstance(part, h5py.Dataset):
                    continue
                layout = part.id.get_create_plist()
                if part.external or part.is_virtual or layout.get_nfilters():
                    raise ValueError(f"{name!r} is kept in another file, or compressed")
                said = part.attrs.get("NAME")  # of a dimension, which holds no numbers
                bare = isinstance(said, bytes) and said.startswith(NO_VARIABLE)
                if part.dtype.kind in "biuf" and not bare:
                    total += part.size * part.dtype.itemsize
    if total > len(content):
        raise FileFormatError(
            f"{path} claims to hold {total} bytes of numbers in a file of {len(content)}: not a "
            "file written by Fit.save."
        )


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


def read_learned(group: Any) -> Learned | None:
    """Inverse of `learned_group`; None where the class is straight."""
    if group is None:
        return None
    arrays = {str(name): values.to_numpy() for name, values in group.data_vars.items()}
    return Learned.from_arrays(json.loads(group.attrs["names"]), arrays)


def read_rows(tree: xr.DataTree, *, learned: Learned | None) -> PUData:
    """The data from their two groups; without the rows where these were left out."""
    constant = tree["constant_data"]
    columns = _read_columns(constant) | {"learned": learned}
    if "audited" not in constant.data_vars:
        return ColumnsOnly(**columns)
    several = "labels" in constant.data_vars
    labels = (constant["labels"] if several else tree["observed_data"]["l"]).to_numpy()
    return PUData(
        X=_read_table(constant, columns["scale"].size),
        labels=np.ascontiguousarray(labels if several else labels[:, None]),
        y=constant["audited"].to_numpy(),
        index=_read_index(constant),
        weight=constant["weight"].to_numpy() if "weight" in constant else np.ones(len(labels)),
        drawn=constant["drawn"].to_numpy() if "drawn" in constant else np.zeros((0, 2)),
        **columns,
    )


def _read_table(constant: Any, p: int) -> Any:
    """X, dense or sparse."""
    if "X" in constant.data_vars:
        return np.ascontiguousarray(constant["X"].to_numpy())
    parts = tuple(constant[name].to_numpy() for name in SPARSE)
    X = csr_array(parts, shape=(constant.sizes["obs"], p))
    X.check_format(full_check=True)
    return X


def _read_columns(constant: Any) -> dict[str, Any]:
    several = "annotator" in constant.coords
    return {
        "feature_names": tuple(str(f) for f in constant["feature"].to_numpy()),
        "named": bool(constant.attrs["named"]),
        "center": constant["center"].to_numpy(),
        "scale": constant["scale"].to_numpy(),
        "class_mask": constant["class_mask"].to_numpy().astype(bool),
        "selection_mask": constant["selection_mask"].to_numpy().astype(bool),
        "encoding": Encoding.from_dict(json.loads(str(constant["encoding"].item()))),
        "annotators": tuple(map(str, constant["annotator"].to_numpy())) if several else ONE,
        "outside": constant["outside"].to_numpy(),
        "visit_names": tuple(json.loads(constant.attrs["visits"])),
    }


def _read_index(constant: Any) -> pd.Index:
    """Row labels; dates are stored as text, and of other kinds the text is what is left."""
    rows, dtype = constant["obs"].to_numpy(), constant.attrs.get("row_dtype")
    if dtype is None:
        return pd.Index(rows)
    times = pd.to_datetime(rows, format="ISO8601", utc=True)
    aware = isinstance(pd.api.types.pandas_dtype(dtype), pd.DatetimeTZDtype)
    return (times if aware else times.tz_localize(None)).astype(dtype)
