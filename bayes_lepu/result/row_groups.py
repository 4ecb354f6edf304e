"""The data of a fit as groups of its tree: observed labels, and everything else about the rows."""

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from bayes_lepu.data.annotators import ONE
from bayes_lepu.data.learned import Learned
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.result.without_rows import ColumnsOnly
from bayes_lepu.tables.encoding import Encoding

if TYPE_CHECKING:
    import xarray as xr


# The parts of a sparse X, by rows, and their dimensions.
SPARSE = {"X_data": "cell", "X_indices": "cell", "X_indptr": "row_end"}


def annotator_coords(d: PUData) -> dict[str, Any]:
    """The names of several annotators; nothing for one."""
    return {"annotator": list(d.annotators)} if d.n_annotators > 1 else {}


def observed_group(d: PUData) -> "xr.Dataset":
    """The labels ``l``, and nothing else; of several annotators whether anybody marked the row."""
    import xarray as xr

    return xr.Dataset({"l": ("obs", d.l)}, coords={"obs": d.row_labels})


def column_group(d: PUData) -> "xr.Dataset":
    """The scale and masks of the columns, their encoding, and what is known from outside."""
    import xarray as xr

    variables: dict[str, Any] = {
        "center": ("feature", d.center),
        "scale": ("feature", d.scale),
        "class_mask": ("feature", d.class_mask.astype(np.int8)),
        "selection_mask": ("feature", d.selection_mask.astype(np.int8)),
        "outside": (("known", "value_and_error"), d.outside),
        # A variable, because the attributes of a netCDF file hold no more than 64 kB.
        "encoding": json.dumps(d.encoding.to_dict()),
    }
    coords = {"feature": list(d.feature_names)} | annotator_coords(d)
    attrs = {"named": int(d.named), "visits": json.dumps(d.visit_names)}
    return xr.Dataset(variables, coords=coords, attrs=attrs)


def constant_group(d: PUData) -> "xr.Dataset":
    """Columns, their scale and masks, audited classes, weights, labels of several annotators."""
    variables: dict[str, Any] = {"audited": ("obs", d.y)}
    if d.is_sparse:
        variables |= {
            name: (dim, getattr(d.X, name.removeprefix("X_"))) for name, dim in SPARSE.items()
        }
    else:
        variables["X"] = (("obs", "feature"), d.X)
    if d.weight.size:
        variables["weight"] = ("obs", d.weight)
    if d.drawn.size:
        variables["drawn"] = (("obs", "round_and_probability"), d.drawn)
    if d.n_annotators > 1:
        variables["labels"] = (("obs", "annotator"), d.labels)
    dataset = column_group(d).assign(variables).assign_coords(obs=d.row_labels)
    if _is_time(str(d.index.dtype)):
        dataset.attrs["row_dtype"] = str(d.index.dtype)
    return dataset


def learned_group(learned: Learned) -> "xr.Dataset":
    """The trees behind the learned columns."""
    import xarray as xr

    arrays = {name: (f"{name}_dim", values) for name, values in learned.to_arrays().items()}
    return xr.Dataset(arrays, attrs={"names": json.dumps(learned.names)})


def read_learned(group: Any) -> Learned | None:
    """Inverse of `learned_group`; None where the class is straight."""
    if group is None:
        return None
    arrays = {str(name): values.to_numpy() for name, values in group.data_vars.items()}
    return Learned.from_arrays(json.loads(group.attrs["names"]), arrays)


def read_rows(tree: "xr.DataTree", *, learned: Learned | None) -> PUData:
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
        weight=constant["weight"].to_numpy() if "weight" in constant else np.zeros(0),
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


def _is_time(dtype: str) -> bool:
    """Whether these are dates whose time zone, if any, can be found again by its name."""
    try:
        return pd.api.types.is_datetime64_any_dtype(pd.api.types.pandas_dtype(dtype))
    except TypeError:
        return False
