"""A table as it leaves a bank: text, dates, an identifier, missing cells, a few audits.

Fraud depends on the amount, the country and the hour; whether a case is flagged depends on the
amount and the channel.
"""

import numpy as np
import pandas as pd

from bayes_lepu.links import sigmoid

COUNTRIES = ("DE", "FR", "GB", "NL", "US")
CHANNELS = ("app", "branch", "phone", "web")
COUNTRY_EFFECT = (0.0, -0.5, 0.5, 1.0, 2.0)
CHANNEL_EFFECT = (0.0, 2.0, 1.0, -1.0)


def fraud_table(n: int = 30_000, *, seed: int = 7, gaps: float = 0.05) -> pd.DataFrame:
    """The table, with the true class in ``attrs["fraud"]``."""
    rng = np.random.default_rng(seed)
    amount = rng.lognormal(4.0, 1.0, n).round(2)
    hour = rng.integers(0, 24, n)
    country, channel = rng.integers(0, 5, n), rng.integers(0, 4, n)
    size = (np.log(amount) - 4.0).clip(-3, 3)
    fraud = rng.random(n) < sigmoid(
        -1.5 + 1.5 * size + np.take(COUNTRY_EFFECT, country) + 0.8 * (hour < 6)
    )
    flagged = fraud & (rng.random(n) < sigmoid(-0.5 + np.take(CHANNEL_EFFECT, channel)))
    audited = (~flagged) & (rng.random(n) < 0.01)
    table = pd.DataFrame(
        {
            "case_id": np.arange(n) + 100_000,
            "opened": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, n), "D"),
            "log_amount": np.log(amount).round(4),
            "night": hour < 6,
            "country": pd.Series(np.take(COUNTRIES, country), dtype=object),
            "channel": pd.Series(np.take(CHANNELS, channel), dtype=object),
            "age": rng.integers(18, 90, n).astype(float),
            "flagged": flagged.astype(int),
            "checked": np.where(audited, fraud.astype(float), np.nan),
        }
    )
    for name in ("log_amount", "country", "age"):
        table.loc[rng.random(n) < gaps, name] = None if name == "country" else np.nan
    table.attrs["fraud"] = fraud
    return table
