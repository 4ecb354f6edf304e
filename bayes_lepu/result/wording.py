"""Differences of log likelihood or log density, in words that need no glossary.

A difference of d units (natural logarithms, "nats") makes the data e^d times as likely.
"""

import math

UNITS = "log-likelihood units"
NOTHING = 0.05
MANY = 1e6


def units(gap: float, *, of: str = UNITS) -> str:
    """A difference with its unit: "2.0 log-likelihood units"."""
    return f"{round(gap, 1) + 0.0:.1f} {of}"  # + 0.0: no "-0.0"


def ratio(gap: float) -> str:
    """e^|gap| in words: "1.4", "7.4", "150", "more than a million"."""
    value = math.exp(min(abs(gap), 30.0))
    if value > MANY:
        return "more than a million"
    return f"{value:.1f}" if value < 10 else f"{float(f'{value:.2g}'):,.0f}"


def as_likely(gap: float) -> str:
    """How likely something is against its rival: "150 times as likely", "equally likely"."""
    if abs(gap) < NOTHING:
        return "equally likely"
    return f"{ratio(gap)} times {'as' if gap > 0 else 'less'} likely"


def worse(gap: float, *, of: str = UNITS) -> str:
    """By how much a rival loses: "2.0 log-likelihood units worse (7.4 times less likely)"."""
    if abs(gap) < NOTHING:
        return "equally good"
    side = "worse" if gap > 0 else "better"
    return f"{units(abs(gap), of=of)} {side} ({as_likely(-gap)})"
