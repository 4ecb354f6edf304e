"""The file of a fit: the fields of `Fit` as arrays and JSON, with a checksum.

`load` reads the group ``state``. The other groups have the draws as ArviZ stores them, for
`arviz.from_netcdf`. Attributes describe the file.

Conventions
-----------
The last 48 bytes are `MARK` (8), the length of the netCDF part (8, little-endian) and its SHA-256
(32). HDF5 ignores bytes after its own end, so `xarray.open_datatree` and `arviz.from_netcdf` can
read the same file. The checksum is verified before HDF5 reads anything, because on damaged bytes
HDF5 may crash, ask for any amount of memory, or not return at all.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.sparse import csr_array, issparse

from bayes_lepu.choosing import Candidate, Choice
from bayes_lepu.dask import PartitionedData
from bayes_lepu.data.encoding import Encoding
from bayes_lepu.data.frames import as_coordinate
from bayes_lepu.data.learned import Learned
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines.engines import Quality
from bayes_lepu.engines.modes import Mode
from bayes_lepu.engines.orientation import Orientation
from bayes_lepu.errors import FileFormatError, ModelError
from bayes_lepu.factors import CURVES, RATES, Factor
from bayes_lepu.factors import REGISTRY as PROPENSITIES
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import ARRAYS, Parameters, stack
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.options import FitOptions, check_options
from bayes_lepu.priors.prior import Prior
from bayes_lepu.result.facts import Provenance
from bayes_lepu.result.tree import stored_groups
from bayes_lepu.rows import NOT_SHOWN
from bayes_lepu.runtime.files import replace_file

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

FORMAT = "bayes_lepu.fit"
FORMAT_VERSION = 9
# Errors that reading an incomplete or foreign file can raise.
WRONG = (LookupError, ValueError, TypeError, AttributeError, AssertionError, ArithmeticError)
TOO_MUCH = (MemoryError, RecursionError, RuntimeError, OSError)
SPARSE = ("data", "indices", "indptr")  # the parts of a sparse X, by rows

# The fields of `PUData` with an entry per row.
ROWS = ("X", "labels", "y", "index", "weight", "drawn")


class ColumnsOnly(PUData):
    """`PUData` without the fields of single rows; reading one of these raises an error."""

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """Raise the error for a missing field; present fields never get here."""
        if name not in ROWS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise ModelError(
            "This fit was saved without its rows (data=False): it predicts new rows and repeats "
            "what it printed when it was saved. For this, load the fit that was saved with them."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.feature_names)})"

    def __dask_tokenize__(self) -> list[tuple[str, Any]]:
        """Token from the present fields; Dask's own would read every field."""
        return sorted(vars(self).items())


@dataclass(frozen=True, eq=False)
class Remembered:
    """Results that need the rows, stored when a fit is saved after its verdict or without rows."""

    pi: Array  # class prior, (draw,)
    c: Array  # label frequency, (draw, J)
    prior_pi: Array  # draws of the prior; empty for a point estimate
    prior_c: Array
    level: int  # of the verdict
    pi_range: tuple[float, float] | None  # of the verdict
    hits: Array  # fewest and most positives among the first open rows (`Alternatives`)
    facts: Mapping[str, str]  # what the fit printed


# Written -------------------------------------------------------------------------------------


def to_saved(fit: "Fit", *, remembered: Remembered | None = None, rows: bool = True) -> xr.DataTree:
    """The tree to write, with the rows of the fit or without."""
    state = {name: _packed(values) for name, values in _state(fit, rows).items()}
    if remembered is not None:
        state["remembered"] = _packed(vars(remembered))
    shown = stored_groups(fit) if rows else {}
    tree = xr.DataTree.from_dict(shown | {f"state/{name}": part for name, part in state.items()})
    tree.attrs |= {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "about": "bayes_lepu fit; read it with bayes_lepu.load(path) or arviz.from_netcdf(path)",
    }
    return tree


def _packed(values: Mapping[str, Any]) -> xr.Dataset:
    """Arrays under their names, and everything else as JSON."""
    arrays = {k: v for k, v in values.items() if isinstance(v, np.ndarray)}
    rest = {k: v for k, v in values.items() if k not in arrays}
    named = {k: ([f"{k}_{axis}" for axis in range(v.ndim)], v) for k, v in arrays.items()}
    return xr.Dataset(named | {"JSON": json.dumps(rest, default=lambda number: number.item())})


def _unpacked(group: Any) -> dict[str, Any]:
    """Inverse of `_packed`."""
    found = {str(name): variable.to_numpy() for name, variable in group.data_vars.items()}
    return json.loads(str(found.pop("JSON").item())) | found


def _state(fit: "Fit", rows: bool) -> dict[str, Mapping[str, Any]]:
    """Everything a fit is made of, by group."""
    spec, data = fit.spec, fit.data
    plain = [field.name for field in fields(Mode) if field.name not in ("point", "z")]
    state: dict[str, Mapping[str, Any]] = {
        "call": {
            "model": spec.name,
            "propensity": spec.propensity.name,
            "of_class": _describe(spec.of_class),
            "false_marks": spec.false_marks,
            "options": fit.options.to_json(),
            "provenance": asdict(fit.provenance),
            "priors": {name: prior.to_dict() for name, prior in fit.priors.items()},
            "orientation": vars(fit.orientation),
            "quality": vars(fit.quality),
            "choice": [vars(c) for c in fit.choice.candidates] if fit.choice else None,
        },
        "parameters": _arrays(fit.parameters),
        "modes": _arrays(stack([mode.point for mode in fit.modes]))
        | {"z": np.stack([mode.z for mode in fit.modes])}
        | {"each": [{name: getattr(mode, name) for name in plain} for mode in fit.modes]},
        "data": _columns(data) | (_rows(data) if rows else {}),
        "stats": {name: np.asarray(values) for name, values in fit.stats.items()},
    }
    if fit.log_likelihood is not None and rows:
        state["of_rows"] = {"log_likelihood": fit.log_likelihood}
    if data.learned is not None:
        state["learned"] = data.learned.to_arrays() | {"names": data.learned.names}
    if not data.in_memory:
        counts = {"counts": data.kind_counts, "weights": data.kind_weights}
        state["all_rows"] = counts | {"pi": fit.pi_draws, "c": fit.c_by_annotator}
    return state


def _describe(factor: Factor) -> dict[str, Any]:
    """The parts of a factor with known rates, as JSON."""
    own = {"name": factor.name, "formula": factor.formula, "fixed": factor.fixed}
    return own | {"link": factor.link.name}


def _arrays(p: Parameters) -> dict[str, Array]:
    own = {name: getattr(p, name) for name in ARRAYS if getattr(p, name) is not None}
    return own | {f"pooling {name}": values for name, values in p.pooling.items()}


def _columns(data: PUData) -> dict[str, Any]:
    """The fields of the data that do not depend on rows."""
    names = [f.name for f in fields(PUData) if f.name not in (*ROWS, "encoding", "learned")]
    return {name: getattr(data, name) for name in names} | {"encoding": data.encoding.to_dict()}


def _rows(data: PUData) -> dict[str, Any]:
    """The fields of the rows: X (dense or sparse), l, y and so on; index dates as numbers."""
    own = {name: getattr(data, name) for name in ROWS}
    if data.is_sparse:
        X: Any = own.pop("X")
        own |= {f"X_{part}": getattr(X, part) for part in SPARSE}
    dtype = str(data.index.dtype)
    if is_time(dtype):
        return own | {"index": np.asarray(data.index.asi8), "dated": dtype}
    return own | {"index": as_coordinate(data.index), "dated": None}


def is_time(dtype: str) -> bool:
    """Whether these are dates without a time zone, or with one that can be restored by its name."""
    try:
        return pd.api.types.is_datetime64_any_dtype(pd.api.types.pandas_dtype(dtype))
    except TypeError:
        return False


# Read ----------------------------------------------------------------------------------------


def read_fit(
    path: Path, propensity: Factor | None = None, class_link: Factor | None = None
) -> dict[str, Any]:
    """The fields of the fit in a file; other files and formats are refused.

    Factors with links of the user's own must be passed.
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
    try:
        state = {name: _unpacked(group) for name, group in tree["state"].children.items()}
        return _fields(path, state, propensity, class_link)
    except FileFormatError:
        raise
    except (*WRONG, *TOO_MUCH) as error:
        raise FileFormatError(
            f"{path} is incomplete ({error}). Save the fit again, or use the release that wrote it."
        ) from error


def _fields(
    path: Path,
    state: Mapping[str, dict[str, Any]],
    propensity: Factor | None,
    class_link: Factor | None,
) -> dict[str, Any]:
    """Inverse of `_state`."""
    call = state["call"]
    spec = _read_spec(path, call, propensity, class_link)
    data = _read_data(state["data"], state.get("learned"))
    levels = None
    if every := state.get("all_rows"):
        counts, weights = every["counts"], every["weights"]
        data = PartitionedData.of(data, kind_counts=counts, kind_weights=weights)
        levels = every["pi"], every["c"]
    orientation, modes, remembered = call["orientation"], state["modes"], state.get("remembered")
    sizes = {rule: tuple(pair) for rule, pair in orientation["sizes"].items()}
    each, z = modes.pop("each"), modes.pop("z")
    points, draws = (_read_parameters(p, spec, data) for p in (modes, state["parameters"]))
    priors = {name: Prior.from_dict(stored) for name, stored in call["priors"].items()}
    LogDensity(spec, data, priors).pack(draws)  # raises if these do not match
    if not each or len(each) != len(z):
        raise ValueError("its modes do not fit each other")
    options = FitOptions.from_json(call["options"])
    check_options(replace(options, audits=None), audited=True)
    own = state.get("of_rows", {}).get("log_likelihood")
    if own is not None and own.shape != (*draws.b.shape, data.n):
        raise ValueError("its log-likelihood does not fit its draws and rows")
    choice = call["choice"] and Choice(tuple(Candidate(**one) for one in call["choice"]))
    if remembered:
        ends = remembered["pi_range"]
        remembered["pi_range"] = ends and (ends[0], ends[1])
    return {
        "spec": spec,
        "data": data,
        "priors": priors,
        "levels": levels,
        "parameters": draws,
        "modes": tuple(Mode(points.take(i), z[i], **own) for i, own in enumerate(each)),
        "orientation": Orientation(**orientation | {"sizes": sizes}),
        "options": options,
        "provenance": Provenance(**call["provenance"]),
        "stats": state["stats"],
        "quality": Quality(**call["quality"]),
        "choice": choice,
        "log_likelihood": own,
        "remembered": Remembered(**remembered) if remembered else None,
    }


def _read_spec(
    path: Path, call: Mapping[str, Any], propensity: Factor | None, class_link: Factor | None
) -> ModelSpec:
    name, stored = str(call["propensity"]), call["of_class"]
    known = dict(PROPENSITIES) | ({} if propensity is None else {propensity.name: propensity})
    if name not in known:
        raise FileFormatError(
            f"{path} holds a fit of model {call['model']!r} with the propensity {name!r}; this "
            f"release knows {', '.join(known)}. One of your own goes into "
            "lepu.load(path, model=...)."
        )
    of_class = class_link or CURVES.get(stored["link"])
    if of_class is None:
        raise FileFormatError(
            f"{path} holds a fit whose class has a link of your own: {json.dumps(stored)}. "
            "Hand it over: lepu.load(path, class_link=...)."
        )
    if class_link is None and stored["fixed"] is not None:
        gamma, lam, rho = stored["fixed"]
        rates = (gamma, lam, rho)
        of_class = Factor(stored["name"], stored["formula"], of_class.link, fixed=rates)
    marks = bool(call["false_marks"])
    return ModelSpec(str(call["model"]), known[name], of_class, false_marks=marks)


def _read_parameters(stored: Mapping[str, Any], spec: ModelSpec, data: PUData) -> Parameters:
    of_pool = "pooling "
    pooling = {k.removeprefix(of_pool): v for k, v in stored.items() if k.startswith(of_pool)}
    own = {name: stored[name] for name in ARRAYS if name in stored}
    found = Parameters(**own, pooling=pooling, link=spec.propensity.link, of_class=spec.of_class)
    shapes = (
        (found.a, (*found.b.shape, data.p)),
        (found.alpha, (*found.beta.shape, data.p)),
        (found.log_w, (*found.beta.shape, len(RATES))),
    )
    if any(values.shape != shape for values, shape in shapes) or not found.b.size:
        raise ValueError("arrays of its parameters do not fit each other")
    finite = all(np.isfinite(own[name]).all() for name in ARRAYS if name in own and name != "log_w")
    if not finite or np.isnan(found.log_w).any():
        raise ValueError("numbers among its parameters are not finite")
    return found


def _read_data(own: dict[str, Any], learned: dict[str, Any] | None) -> PUData:
    """The data, with or without rows as saved."""
    for name in ("feature_names", "annotators", "visit_names"):
        own[name] = tuple(own[name])
        if not all(isinstance(text, str) for text in own[name]):
            raise ValueError(f"{name} are no texts")
    own["encoding"] = Encoding.from_dict(own["encoding"])
    if learned is not None:
        own["learned"] = Learned.from_arrays(learned.pop("names"), learned)
    if "index" not in own:
        return ColumnsOnly(**own)
    n, p = len(own["index"]), len(own["feature_names"])
    if "X" not in own:
        own["X"] = csr_array(tuple(own.pop(f"X_{part}") for part in SPARSE), shape=(n, p))
        own["X"].check_format(full_check=True)
    dtype = own.pop("dated")
    _check_numbers(own, n, p)
    own["index"] = pd.DatetimeIndex(own["index"], dtype=dtype) if dtype else pd.Index(own["index"])
    return PUData(**own)


def _check_numbers(own: Mapping[str, Any], n: int, p: int) -> None:
    """Refuse arrays with values that no fit can have."""
    J, X, y, drawn = len(own["annotators"]), own["X"], own["y"], own["drawn"]
    shapes = {
        "X": (n, p),
        "labels": (n, J),
        "y": (n,),
        "weight": (n,),
        "drawn": (n if drawn.size else 0, 2),
        "center": (p,),
        "scale": (p,),
        "class_mask": (p,),
        "selection_mask": (p,),
        "outside": (2, 2),
    }
    if any(own[name].shape != shape for name, shape in shapes.items()):
        raise ValueError("arrays of its rows do not fit each other")
    masks = own["class_mask"].dtype == own["selection_mask"].dtype == bool
    numbers = (X.data if issparse(X) else X, own["weight"], own["center"], own["scale"])
    possible = [
        masks and all(np.isfinite(values).all() for values in numbers),
        (np.isnan(y) | (y == 0) | (y == 1)).all(),
        np.isin(own["labels"], (0, 1) if J == 1 else (0, 1, NOT_SHOWN)).all(),
        ((drawn >= 0) & (drawn < np.inf) | np.isnan(drawn)).all(),  # NaN: not drawn
        (own["weight"] >= 0).all() and own["weight"].sum() > 0 and (own["scale"] > 0).all(),
    ]
    if not all(possible):
        raise ValueError("numbers among its rows are impossible")


# The file ------------------------------------------------------------------------------------

MARK = b"LEPUSHA2"
HDF5 = b"\x89HDF\r\n\x1a\n"
TRAILER = len(MARK) + 8 + 32
NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"


def write_tree(tree: xr.DataTree, path: Path) -> Path:
    """Write a tree; an existing file is replaced only when the new one is complete."""
    # HDF5 crashes at exit if a disk became full while it was writing, so it writes to memory.
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
    except (*WRONG, *TOO_MUCH) as error:
        raise FileFormatError(
            f"{path} is not a netCDF file written by Fit.save ({error})."
        ) from error


def _refuse_foreign_parts(content: bytes, path: Path) -> None:
    """Refuse what `Fit.save` never writes: links to other files, filters, nested groups.

    HDF5 follows external links and storage to any path, and a group that contains itself would
    never end. `Fit.save` does not compress, so a file with more bytes of numbers than its own size
    would make HDF5 allocate memory for data that are not there. Texts are not counted, because
    their length is known only after they are read.
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
