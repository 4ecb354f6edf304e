"""The data of a fit as groups of its tree: observed labels, and everything else about the rows."""

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayes_lepu.annotators import ONE
from bayes_lepu.data import PUData
from bayes_lepu.encoding import Encoding

if TYPE_CHECKING:
    import xarray as xr


def annotator_coords(d: PUData) -> dict[str, Any]:
    """The names of several annotators; nothing for one."""
    return {"annotator": list(d.annotators)} if d.n_annotators > 1 else {}


def observed_group(d: PUData) -> "xr.Dataset":
    """The labels ``l``, and nothing else; of several annotators whether anybody marked the row."""
    import xarray as xr

    return xr.Dataset({"l": ("obs", d.l)}, coords={"obs": d.row_labels})


def constant_group(d: PUData) -> "xr.Dataset":
    """Columns, their scale and masks, audited classes, weights, labels of several annotators."""
    import xarray as xr

    variables: dict[str, Any] = {
        "X": (("obs", "feature"), d.X),
        "audited": ("obs", d.y),
        "center": ("feature", d.center),
        "scale": ("feature", d.scale),
        "class_mask": ("feature", d.class_mask.astype(np.int8)),
        "selection_mask": ("feature", d.selection_mask.astype(np.int8)),
        "outside": (("known", "value_and_error"), d.outside),
    }
    if d.weight.size:
        variables["weight"] = ("obs", d.weight)
    # A variable, because the attributes of a netCDF file hold no more than 64 kB.
    variables["encoding"] = json.dumps(d.encoding.to_dict())
    if d.n_annotators > 1:
        variables["labels"] = (("obs", "annotator"), d.labels)
    coords = {"obs": d.row_labels, "feature": list(d.feature_names)}
    dataset = xr.Dataset(variables, coords=coords | annotator_coords(d))
    dataset.attrs["named"] = int(d.named)
    dataset.attrs["visits"] = json.dumps(d.visit_names)
    if _is_time(str(d.index.dtype)):
        dataset.attrs["row_dtype"] = str(d.index.dtype)
    return dataset


def read_rows(tree: "xr.DataTree") -> PUData:
    """The data from their two groups."""
    observed, constant = tree["observed_data"], tree["constant_data"]
    X = np.ascontiguousarray(constant["X"].to_numpy())
    several = "labels" in constant.data_vars
    labels = (constant["labels"] if several else observed["l"]).to_numpy()
    return PUData(
        X=X,
        labels=np.ascontiguousarray(labels if several else labels[:, None]),
        y=constant["audited"].to_numpy(),
        feature_names=tuple(str(f) for f in constant["feature"].to_numpy()),
        named=bool(constant.attrs["named"]),
        center=constant["center"].to_numpy(),
        scale=constant["scale"].to_numpy(),
        class_mask=constant["class_mask"].to_numpy().astype(bool),
        selection_mask=constant["selection_mask"].to_numpy().astype(bool),
        index=_read_index(constant),
        encoding=Encoding.from_dict(json.loads(str(constant["encoding"].item()))),
        annotators=tuple(map(str, constant["annotator"].to_numpy())) if several else ONE,
        weight=constant["weight"].to_numpy() if "weight" in constant else np.zeros(0),
        outside=constant["outside"].to_numpy(),
        visit_names=tuple(json.loads(constant.attrs["visits"])),
    )


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
