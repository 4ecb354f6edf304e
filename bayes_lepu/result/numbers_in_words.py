"""Numbers in printed sentences: counts, shares, intervals, and differences of log likelihood.

Only significant digits are printed, also for rare classes. A difference of d log-likelihood units
(natural logarithms, "nats") makes the data e^d times as likely.
"""

import math
from collections.abc import Callable, Mapping

UNITS = "log-likelihood units"
NO_GAP = 0.05  # log-likelihood units below which two answers are called equally likely


def number(value: float, *, digits: int = 3) -> str:
    """A number with three digits, without an exponent where it can be avoided."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == int(value) and abs(value) < 1e7:
        return f"{int(value):,}".replace(",", "\u202f").replace("-", "−")
    size = abs(value)
    if size < 1e-10:  # a rounding error of numbers that cancel
        return "0"
    if size >= 1e6 or size < 1e-4:
        return f"{value:.2e}".replace("-", "−")
    places = max(0, digits - 1 - math.floor(math.log10(size)))
    return f"{value:.{places}f}".replace("-", "−")


def say_count(value: float) -> str:
    """A number of rows: rounded, with narrow spaces for thousands; small expectations keep digits.

    >>> say_count(0.0), say_count(0.04), say_count(12.6)
    ('0', 'fewer than 0.1', '13')
    """
    if value < 0.05:
        return "0" if value == 0 else "fewer than 0.1"
    if value < 2 and value != round(value):
        return f"{value:.1f}"
    return f"{round(value):,}".replace(",", "\u202f")


def say_share(value: float) -> str:
    """A share in per cent: rounded, with more digits below one per cent and above 99.

    >>> say_share(0.714), say_share(0.0153), say_share(0.00042), say_share(0.9996)
    ('71%', '1.5%', '0.042%', '99.96%')
    """
    if not math.isfinite(value):
        return "–"
    if 0 < value < 1e-4:
        return "under 0.01%"
    rest = min(value, 1 - value)
    if rest < 5e-5 and value > 0.5:
        return "100%"
    if rest <= 0 or rest >= 0.1:
        return f"{100 * value:.0f}%"
    if value > 0.5:
        return f"{100 * value:.{0 if rest >= 0.01 else 1 if rest >= 0.001 else 2}f}%"
    places = 1 - math.floor(math.log10(100 * value))
    return f"{100 * value:.{max(places, 0)}f}%"


def has_interval(row: Mapping[str, float]) -> bool:
    """Whether a summary comes from draws."""
    return "lower" in row and not math.isnan(row["lower"])


def with_interval(row: Mapping[str, float], say: Callable[[float], str] = say_count) -> str:
    """A number, or a share, with its interval."""
    if not has_interval(row):
        return say(row["mean"])
    return f"{say(row['mean'])} ({say(row['lower'])} to {say(row['upper'])})"


def say_range(row: Mapping[str, float], say: Callable[[float], str] = say_count) -> str:
    """A number over all models that predict the labels as well: "40 to 90", "about 40"."""
    low, high = say(row["low"]), say(row["high"])
    return f"about {low}" if low == high else f"{low} to {high}"


def share(value: float, decimals: int = 2) -> str:
    """A share with at least two decimals, and at least two significant digits if it is small.

    >>> share(0.358), share(0.0117), share(0.00266, 3), share(0.0)
    ('0.36', '0.012', '0.0027', '0.00')
    """
    small = 0 < abs(value) < 1
    places = max(decimals, 1 - math.floor(math.log10(abs(value)))) if small else decimals
    return f"{value:.{places}f}"


def ratio(gap: float) -> str:
    """e^|gap| in words: "1.4", "7.4", "150", "more than a million"."""
    value = math.exp(min(abs(gap), 30.0))
    if value > 1e6:
        return "more than a million"
    return f"{value:.1f}" if value < 10 else f"{float(f'{value:.2g}'):,.0f}"


def as_likely(gap: float) -> str:
    """How likely something is relative to its rival: "150 times as likely", "equally likely"."""
    if abs(gap) < NO_GAP:
        return "equally likely"
    return f"{ratio(gap)} times {'as' if gap > 0 else 'less'} likely"


def worse(gap: float, *, of: str = UNITS) -> str:
    """By how much a rival loses: "2.0 log-likelihood units worse (7.4 times less likely)"."""
    if abs(gap) < NO_GAP:
        return "equally good"
    if gap == math.inf:
        return "ruled out by what is known of the rows"
    side = "worse" if gap > 0 else "better"
    return f"{abs(gap):.1f} {of} {side} ({as_likely(-gap)})"
