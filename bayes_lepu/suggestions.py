"""Words for messages: a few of many values, and the name that was probably meant."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

MAX_NAMED = 5


def some(values: Sequence[Any], *, most: int = MAX_NAMED) -> str:
    """The first few values, for a message."""
    shown = ", ".join(str(v) for v in values[:most])
    return shown + (f" and {len(values) - most} more" if len(values) > most else "")


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """``" Did you mean 'amount'?"``, or nothing where no known name is near."""
    names = {str(k).casefold(): str(k) for k in known}
    # 0.6 is difflib's own default: one wrong letter in three still counts as a typing mistake.
    near = get_close_matches(str(name).casefold(), names, n=1, cutoff=0.6)
    return f" Did you mean {names[near[0]]!r}?" if near else ""
