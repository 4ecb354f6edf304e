"""Parts of error messages: a few of many values, and the name that was probably meant."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any


def some(values: Sequence[Any], *, most: int = 5) -> str:
    """The first few values, for a message."""
    shown = ", ".join(str(v) for v in values[:most])
    return shown + (f" and {len(values) - most} more" if len(values) > most else "")


def unknown(what: str, name: object, known: Iterable[object]) -> str:
    """``"Unknown model 'sdm'. Did you mean 'spm'? Known: naive, scar, spm, psychm."``."""
    known = list(known)
    return (
        f"Unknown {what} {name!r}.{did_you_mean(name, known)} "
        f"Known: {', '.join(str(k) for k in known)}."
    )


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """``" Did you mean 'amount'?"``, or nothing where no known name is near."""
    near = nearest(name, known)
    return "" if near is None else f" Did you mean {near!r}?"


def nearest(name: object, known: Iterable[object]) -> str | None:
    """The known name that differs least from this one, if any is near."""
    names = {str(k).casefold(): str(k) for k in known}
    # 0.6 is difflib's own default: one wrong letter in three still counts as a typing mistake.
    near = get_close_matches(str(name).casefold(), names, n=1, cutoff=0.6)
    return names[near[0]] if near else None
