"""Fitted classifiers in files of plain data: reading one runs nothing, whoever wrote it.

Conventions
-----------
Two lines of JSON: a head with the format and the SHA-256 of the rest, and the classifier by the
name of its class, its parameters and its fitted attributes. Numbers come back to the last bit.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.errors import FileFormatError, ModelError
from bayes_lepu.factors import REGISTRY as PROPENSITIES
from bayes_lepu.models.parameters import ARRAYS, Parameters
from bayes_lepu.runtime.files import replace_file

FORMAT, VERSION = "bayes_lepu.estimator", 1
KINDS = "biufUO"  # of arrays: numbers, text, and mixtures of these
BROKEN = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


def write(estimator: Any, path: Path) -> Path:
    """Write a fitted classifier; what is no plain data is refused."""
    fitted = {k: v for k, v in vars(estimator).items() if k.endswith("_") and k[0] != "_"}
    content = {
        "class": type(estimator).__name__,
        "parameters": {k: _encode(v, k) for k, v in estimator.get_params(deep=False).items()},
        "fitted": {k: _encode(v, k) for k, v in fitted.items()},
    }
    body = json.dumps(content).encode()
    head = {"format": FORMAT, "version": VERSION, "sha256": hashlib.sha256(body).hexdigest()}
    return replace_file(path, json.dumps(head).encode() + b"\n" + body + b"\n")


def read(path: Path, classes: Mapping[str, type]) -> Any:
    """The classifier of a file, if its checksum agrees and it is one of these classes."""
    content = _checked(path)
    try:
        kind = classes[content["class"]]
        estimator = kind(**{k: _decode(v) for k, v in content["parameters"].items()})
        for name, value in content["fitted"].items():
            if not (name.isidentifier() and name.endswith("_") and name[0] != "_"):
                raise ValueError(f"{name!r} is no fitted attribute")
            vars(estimator)[name] = _decode(value)
    except BROKEN as error:
        raise FileFormatError(
            f"{path} is incomplete ({error}). Save the classifier again, or use the release that "
            "wrote it."
        ) from error
    return estimator


def _checked(path: Path) -> dict[str, Any]:
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        found = json.loads(head)
        known = isinstance(found, dict) and found.get("format") == FORMAT
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError):
        known = False
    if not known:
        raise FileFormatError(
            f"{path} is no file that a classifier's save(path) wrote. Fits are read by "
            "bayes_lepu.load; pickles are not read at all."
        )
    if found.get("version") != VERSION:
        raise FileFormatError(
            f"{path} has format version {found.get('version')!r}; this release reads {VERSION}. "
            "Use the release that wrote it, or fit again."
        )
    body = body.removesuffix(b"\n")
    if found.get("sha256") != hashlib.sha256(body).hexdigest():
        raise FileFormatError(
            f"{path} is damaged: its checksum does not agree with its contents. Fit again, or take "
            "another copy of the file."
        )
    return json.loads(body)


def _encode(value: Any, name: str) -> Any:
    """A value as JSON knows it; arrays, tables and parameters under a name of their own."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_encode(item, name) for item in value]
    if isinstance(value, np.ma.MaskedArray):
        return {"masked": _encode(value.data, name), "mask": _encode(value.mask, name)}
    if isinstance(value, np.ndarray) and value.dtype.kind in KINDS:
        return {"array": _encode(value.tolist(), name), "dtype": value.dtype.str}
    if isinstance(value, pd.DataFrame):
        columns = {str(k): _encode(v.to_numpy(), name) for k, v in value.items()}
        index = _encode(value.index.to_numpy(), name)
        return {"table": columns, "index": index, "name": _encode(value.index.name, name)}
    if isinstance(value, Parameters):
        given = {k: getattr(value, k) for k in ARRAYS}
        arrays = {k: None if v is None else _encode(np.asarray(v), name) for k, v in given.items()}
        pooling = {k: _encode(np.asarray(v), name) for k, v in value.pooling.items()}
        return {"point": arrays, "pooling": pooling, "link": value.link.name}
    if isinstance(value, Mapping):
        return {"mapping": {str(k): _encode(v, name) for k, v in value.items()}}
    raise ModelError(
        f"{name} = {value!r} cannot be saved: numbers, text, lists, arrays and tables can. Replace "
        f"it by set_params({name}=...) first; predictions do not depend on it."
    )


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        dtype = np.dtype(str(value["dtype"]))
        if dtype.kind not in KINDS:
            raise ValueError(f"arrays of type {dtype} are not saved")
        return np.array(value["array"], dtype=dtype)
    if "masked" in value:
        return np.ma.MaskedArray(_decode(value["masked"]), mask=_decode(value["mask"]))
    if "table" in value:
        columns = {k: _decode(v) for k, v in value["table"].items()}
        return pd.DataFrame(columns, index=pd.Index(_decode(value["index"]), name=value["name"]))
    if "point" in value:
        links = {p.link.name: p.link for p in PROPENSITIES.values()}
        arrays = {k: _decode(value["point"][k]) for k in ARRAYS}
        pooling = {k: _decode(v) for k, v in value["pooling"].items()}
        return Parameters(**arrays, pooling=pooling, link=links[value["link"]])
    return {k: _decode(v) for k, v in value["mapping"].items()}
