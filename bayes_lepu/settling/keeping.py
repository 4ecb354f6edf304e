"""Answers that several plots and tables ask for, kept for as long as the fit lives."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate
from weakref import WeakKeyDictionary

from bayes_lepu.result import FittedModel


def kept[**P, T](
    find: Callable[Concatenate[FittedModel, P], T],
) -> Callable[Concatenate[FittedModel, P], T]:
    """Decorator: find once for a fit and these keywords; a fit does not change."""
    found: WeakKeyDictionary[FittedModel, dict[Any, T]] = WeakKeyDictionary()

    @wraps(find)
    def look_up(fit: FittedModel, *args: P.args, **keywords: P.kwargs) -> T:
        own = found.setdefault(fit, {})
        key = args, tuple(sorted(keywords.items()))
        if key not in own:
            own[key] = find(fit, *args, **keywords)
        return own[key]

    return look_up
