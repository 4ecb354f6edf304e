r"""Rows that are not all in memory: sums over parts of them.

.. math:: \sum_i f(x_i) = \sum_k \sum_{i \in \text{part } k} f(x_i)

Log-likelihood, gradient, information and everything that describes a fit as a whole are such sums
(so is what a table in memory gives, as a single part). A `Source` is what the parts come from:
batches of a file, one after the other, or partitions on other machines.

Which rows a random sample holds depends on their positions alone: every row has a random number,
and those with the smallest are taken. The sample is thus the same in memory and in parts of any
size, and a smaller sample is a part of a larger one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.errors import DataError
from bayes_lepu.likelihood import Rows
from bayes_lepu.links import Array

Sums = tuple[Any, ...]  # numbers and arrays


class Source(Protocol):
    """Parts in a fixed order, which can be gone through again and again."""

    def map(self, function: Callable[..., Any], *more: Iterable[Any]) -> Self:
        """The source of what a function makes of every part, with further arguments for each."""

    def __iter__(self) -> Iterator[Any]:
        """The parts in order."""


class Batches:
    """Parts that are read one after the other, again in every pass.

    Parameters
    ----------
    begin : callable
        Begins a new pass: an iterator over the parts.
    """

    def __init__(self, begin: Callable[[], Iterator[Any]]) -> None:
        self._begin = begin

    def __iter__(self) -> Iterator[Any]:
        return self._begin()

    def map(self, function: Callable[..., Any], *more: Iterable[Any]) -> "Batches":
        """The batches of what a function makes of every batch."""
        return Batches(lambda: map(function, self, *more))


@dataclass(frozen=True, eq=False)
class Parts:
    """All rows of a fit, most of which are elsewhere.

    Attributes
    ----------
    rows : Source or None
        Of data on the internal scale; None where the rows are out of reach, as in a fit that was
        read from a file.
    counts : (kinds,) int array
        Number of rows of every `RowKind`.
    weights : (kinds,) array
        Sum of their weights.
    pool : PUData or None
        Rows of every kind at random, which smaller samples are taken from.
    keys : (rows of the pool,) array
        Their random numbers.
    show : callable
        Makes the progress of a pass visible: takes the parts and gives them back.
    """

    rows: Source | None
    counts: NDArray[np.int64]
    weights: Array
    pool: Any = None
    keys: Array = field(default_factory=lambda: np.zeros(0))
    show: Callable[[Iterable[Any]], Iterable[Any]] = iter

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    def each(self, change: Callable[[Any], Any]) -> "Parts":
        """The same rows, every part of them changed."""
        rows = None if self.rows is None else self.rows.map(change)
        return replace(self, rows=rows, pool=None if self.pool is None else change(self.pool))

    def total(self, function: Callable[[Rows], Sums]) -> Sums:
        """The sums over all rows, in one pass."""
        if self.rows is None:
            raise DataError(
                f"The {self.n} rows of this fit are not here, only a sample of them. Fit them "
                "again, or ask for rows that you pass (X=)."
            )
        n, *found = added(self.show(self.rows.map(_OfRows(function)))) or (0,)
        refuse_other_rows(n, self.n)
        return tuple(found)


@dataclass(frozen=True)
class _OfRows:
    """A function of rows as one of the data of a part, which counts them too.

    It has a name, by which other machines know it.
    """

    function: Callable[[Rows], Sums]

    def __call__(self, part: Any) -> Sums:
        return part.n, *self.function(part.as_rows)


def added(parts: Iterable[Sums]) -> Sums:
    """The sums of all parts, in their order; nothing of no parts."""
    totals: Sums = ()
    for sums in parts:
        totals = tuple(a + b for a, b in zip(totals, sums, strict=True)) if totals else sums
    return totals


def refuse_other_rows(got: int, n: int) -> None:
    """Refuse a table that is not the same in every pass, of which no sum means anything."""
    if got != n:
        raise DataError(
            f"X had {n} rows in the first pass and {got} in a later one; the same rows are "
            "expected in every pass. Fit a copy that nobody changes; an iterator that can be gone "
            "through once only is to be made anew each time, by a function."
        )


def random_keys(start: int, count: int) -> Array:
    """The random numbers of rows ``start`` to ``start + count``, the same every time."""
    generator = np.random.PCG64(0)
    generator.advance(start)
    return np.random.Generator(generator).random(count)


def evenly_spaced(count: int, most: int) -> slice:
    """Every k-th of so many rows or draws, such that at most ``most`` are taken."""
    return slice(None, None, max(1, -(-count // most)))
