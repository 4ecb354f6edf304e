"""A fit without its rows: what it takes to predict new rows, and what it remembers of its own.

Such a fit is small enough to ship and holds no data of anybody. Whatever needs the rows is an error
that says so.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.tables.encoding import Encoding

if TYPE_CHECKING:
    import xarray as xr

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

    def with_encoding(self, encoding: Encoding) -> Self:
        """The same columns, encoded in another way."""
        return type(self)(**vars(self) | {"encoding": encoding})


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
    facts : mapping of str to str
        What the fit printed.
    """

    pi: Array
    c: Array
    prior_pi: Array
    prior_c: Array
    level: int
    facts: Mapping[str, str]

    def to_dataset(self) -> "xr.Dataset":
        """As a group of a saved fit."""
        import xarray as xr

        return xr.Dataset(
            {
                "pi": ("sample", self.pi),
                "c": (("sample", "annotator"), self.c),
                "prior_pi": ("prior_sample", self.prior_pi),
                "prior_c": ("prior_sample", self.prior_c),
                "level": self.level,
                "facts": json.dumps(dict(self.facts)),
            }
        )

    @classmethod
    def from_group(cls, group: Any) -> Self:
        """Back from the group."""
        pi, c, prior_pi, prior_c = (
            np.asarray(group[name].to_numpy()) for name in ("pi", "c", "prior_pi", "prior_c")
        )
        facts = json.loads(str(group["facts"].item()))
        return cls(pi, c, prior_pi, prior_c, level=int(group["level"]), facts=facts)
