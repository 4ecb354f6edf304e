"""Tables of four trades, made up, so that what happened is known and every answer can be checked.

Each has the truth in ``attrs["truth"]``, which no learner sees.
"""

import numpy as np
import pandas as pd

COUNTRIES = ("DE", "FR", "GB", "NL", "US")
CHANNELS = ("app", "branch", "phone", "web")
COUNTRY_EFFECT = (0.0, -0.5, 0.5, 1.0, 2.0)
CHANNEL_EFFECT = (0.0, 2.0, 1.0, -1.0)


def _happens(rng: np.random.Generator, log_odds: np.ndarray) -> np.ndarray:
    return rng.random(log_odds.shape) < 1 / (1 + np.exp(-log_odds))


def fraud_table(
    n: int = 30_000, *, seed: int = 7, gaps: float = 0.05, level: float = -1.5
) -> pd.DataFrame:
    """Payments as they leave a bank: text, dates, an identifier, missing cells, a few audits.

    Fraud depends on the amount, the country and the hour; whether it is flagged depends on the
    channel. ``level`` sets how common it is.
    """
    rng = np.random.default_rng(seed)
    amount = rng.lognormal(4.0, 1.0, n).round(2)
    hour = rng.integers(0, 24, n)
    country, channel = rng.integers(0, 5, n), rng.integers(0, 4, n)
    size = (np.log(amount) - 4.0).clip(-3, 3)
    fraud = _happens(rng, level + 1.5 * size + np.take(COUNTRY_EFFECT, country) + 0.8 * (hour < 6))
    flagged = fraud & _happens(rng, -0.5 + np.take(CHANNEL_EFFECT, channel))
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
    table.attrs["truth"] = fraud
    return table


def patient_table(n: int = 8_000, *, seed: int = 3) -> pd.DataFrame:
    """Patients of a health system, some with a code for diabetes.

    Who has diabetes depends on age, body mass, sugar and family. Who has it *coded* depends on how
    often the patient is seen and by whom. Sugar was measured for those who are seen often.
    """
    rng = np.random.default_rng(seed)
    age = rng.normal(55, 15, n).clip(18, 95)
    bmi = rng.normal(27, 5, n).clip(15, 55)
    family = rng.random(n) < 0.2
    visits = rng.poisson(np.exp(0.6 + 0.015 * (age - 55)))
    public = rng.random(n) < 0.6
    sick = _happens(rng, -3.2 + 0.07 * (age - 55) + 0.16 * (bmi - 27) + 1.3 * family)
    hba1c = rng.normal(5.4 + 1.6 * sick + 0.01 * (age - 55), 0.6)
    coded = sick & _happens(rng, -1.0 + 0.7 * visits - 0.8 * public)
    table = pd.DataFrame(
        {
            "patient": [f"P{i:05d}" for i in range(n)],
            "age": age.round(),
            "bmi": bmi.round(1),
            "family_history": family,
            "hba1c": hba1c.round(1),
            "visits": visits,
            "insurance": np.where(public, "public", "private"),
            "coded": coded.astype(int),
        }
    )
    table.loc[rng.random(n) < 0.5 * np.exp(-0.5 * visits) + 0.05, "hba1c"] = np.nan
    table.loc[rng.random(n) < 0.08, "bmi"] = np.nan
    table.attrs["truth"] = sick
    return table


def survey_table(side: int = 30, *, seed: int = 5) -> pd.DataFrame:
    """Squares of a map, three observers who looked for a newt in some of them.

    The newt lives at middle heights and near water. Observers find it more easily where the
    vegetation is open, each in their own way; empty where an observer did not go.
    """
    rng = np.random.default_rng(seed)
    east, north = (grid.ravel() for grid in np.meshgrid(np.arange(side), np.arange(side)))
    n = side * side
    u, v = east / side, north / side
    elevation = 300 + 900 * (0.5 * u + 0.5 * v + 0.15 * np.sin(6 * u) * np.cos(5 * v))
    water = np.exp(-8 * np.abs(v - 0.5 - 0.25 * np.sin(5 * u))) + 0.1 * rng.normal(size=n)
    cover = rng.beta(2, 2, n)
    height = (elevation - 750) / 150
    lives = _happens(rng, 1.6 - 1.2 * height**2 + 2.5 * (water - 0.4))
    table = pd.DataFrame(
        {
            "east": east,
            "north": north,
            "elevation": elevation.round(),
            "water": water.round(3),
            "cover": cover.round(3),
        }
    )
    skills = {"anna": (1.2, -3.0), "ben": (0.4, -4.5), "carl": (0.0, -2.0)}
    for name, (ease, hidden) in skills.items():
        found = lives & _happens(rng, ease + hidden * (cover - 0.5))
        went = rng.random(n) < (0.7 if name == "anna" else 0.45)
        table[name] = np.where(went, found.astype(float), np.nan)
    table.attrs["truth"] = lives
    return table


TOPICS = {
    "football": "match goal referee league coach penalty striker season ticket stadium",
    "cooking": "recipe oven garlic butter sauce onion flour simmer taste dinner",
    "travel": "train hotel airport luggage beach museum ticket map passport summer",
    "politics": "vote minister budget tax party law border debate election press",
}
INSULTS = "idiot stupid shut loser pathetic trash clown liar disgusting hate"
EVERYDAY = "the a you this that is was they and so what really just never always"


def comment_table(n: int = 6_000, *, seed: int = 2) -> pd.DataFrame:
    """Comments of a forum, some reported by readers.

    Abuse shows in the words and is more common in politics. Whether an abusive comment is reported
    depends on how many people saw it and on how deep it hangs in the thread.
    """
    rng = np.random.default_rng(seed)
    topics = list(TOPICS)
    topic = rng.integers(0, len(topics), n)
    abusive = _happens(rng, -1.8 + 1.5 * (topic == 3) + 0.5 * (topic == 0))
    views = rng.lognormal(4.5, 1.2, n).round()
    depth = rng.poisson(2.0, n)
    texts = []
    for k, bad in zip(topic, abusive, strict=True):
        words = rng.choice(EVERYDAY.split(), rng.integers(6, 14)).tolist()
        words += rng.choice(TOPICS[topics[k]].split(), rng.integers(3, 8)).tolist()
        words += rng.choice(INSULTS.split(), rng.poisson(2.2 if bad else 0.25)).tolist()
        texts.append(" ".join(rng.permutation(words)))
    reported = abusive & _happens(rng, -0.4 + 1.1 * (np.log(views) - 4.5) - 0.5 * (depth - 2))
    table = pd.DataFrame(
        {
            "text": texts,
            "log_views": np.log(views.clip(1)).round(3),
            "depth": depth,
            "reported": reported.astype(int),
        }
    )
    table.attrs["truth"] = abusive
    return table
