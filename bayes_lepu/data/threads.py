"""Sums over the rows of one large table by several threads.

Rows are cut into blocks by the size of the table alone. Whoever asks for a sum takes one block
after the other, and so does every helper; the sums of the blocks are added in the order of the
rows. The answer is thus the same, bit for bit, for any number of threads from two on, and that of
one thread to rounding. A helper that gets no processor takes no blocks, so that on busy cores
little is lost.
"""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from math import ceil
from typing import Any

import numpy as np

from bayes_lepu.data.parts import Sums, added
from bayes_lepu.likelihood import Rows
from bayes_lepu.likelihood.information import blocks_of_rows

BLOCK_CELLS = 1_000_000  # of X: half a millisecond of work; a block costs some 0.05 ms extra
LEAST_BLOCKS = 4  # with two, an evaluation by NUTS took a tenth longer on busy cores


def is_cut(shape: tuple[int, ...]) -> bool:
    """Whether a table of this shape is large enough to be cut into blocks."""
    return shape[0] * shape[1] >= LEAST_BLOCKS * BLOCK_CELLS


def total(function: Callable[[Rows], Sums], rows: Rows, threads: int) -> Sums:
    """The sums over all rows, by so many threads at most, of which the calling one is the first."""
    n, p = rows.X.shape
    pairs = ceil(n * p / (2 * BLOCK_CELLS))  # an even number of blocks divides well
    blocks = deque(enumerate(blocks_of_rows(rows, ceil(n / (2 * pairs)))))
    sums: list[Any] = [None] * len(blocks)

    def work() -> None:
        while True:
            try:
                place, block = blocks.popleft()
            except IndexError:
                return
            labels = np.ascontiguousarray(block.labels)
            sums[place] = function(block._replace(labels=labels))

    helpers = []
    try:
        for _ in range(min(threads, len(sums)) - 1):
            # In a copy of the context, where NumPy keeps what to do about infinities.
            helpers.append(_pool().submit(copy_context().run, work))
        work()
    finally:
        blocks.clear()  # after an interrupt nobody begins another block
    for helper in helpers:
        if not helper.cancel():
            helper.result()
    return added(sums)


def count_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    """The helpers of this process, started when they are first needed."""
    return ThreadPoolExecutor(count_cores(), thread_name_prefix="bayes_lepu")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork, so a child needs its own
    os.register_at_fork(after_in_child=_pool.cache_clear)
