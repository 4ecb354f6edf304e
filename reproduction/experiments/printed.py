"""The numbers the paper prints, as printed: to stand beside ours, never to be asserted.

``TABLE1`` is its table of simulated trials, ``TABLE2`` the ticks of its significance table,
``ANIMAL`` the four tables of the five human annotators.
"""

from types import MappingProxyType

_MODELS = ("SPM", "PsychM", "Naive", "Elkan", "Real")
_SUBJECTS = ("fsa", "mta", "sph", "hth", "mba")


def _by_model(rows: dict[str, tuple[float, ...]]) -> dict[str, dict[str, float]]:
    return {row: dict(zip(_MODELS, values, strict=True)) for row, values in rows.items()}


def _by_subject(rows: tuple[tuple[float, ...], ...]) -> dict[str, dict[str, float]]:
    return {
        model: dict(zip(_SUBJECTS, values, strict=True))
        for model, values in zip(_MODELS, rows, strict=True)
    }


TABLE1 = MappingProxyType(
    _by_model(
        {
            "f1": (0.8920, 0.8876, 0.8807, 0.8826, 0.9598),
            "AUC": (0.9748, 0.9761, 0.9748, 0.9735, 0.9931),
            "accuracy": (0.9023, 0.8989, 0.8931, 0.8946, 0.9605),
            "Brier": (0.0779, 0.0790, 0.0900, 0.0887, 0.0304),
        }
    )
)
"""Average score of every model over 500 trials, by score and model."""

TABLE2 = MappingProxyType(
    {
        ("SPM", "PsychM"): True,
        ("SPM", "Naive"): True,
        ("SPM", "Elkan"): True,
        ("SPM", "Real"): True,
        ("PsychM", "Naive"): False,
        ("PsychM", "Elkan"): False,
        ("PsychM", "Real"): False,
        ("Naive", "Elkan"): False,
        ("Naive", "Real"): False,
        ("Elkan", "Real"): False,
    }
)
"""Whether the row's model is ticked as "significantly better" in f1 than the column's."""

ANIMAL = MappingProxyType(
    {
        "accuracy": _by_subject(
            (
                (0.90387, 0.92031, 0.92633, 0.93073, 0.93840),
                (0.90515, 0.92025, 0.92811, 0.93015, 0.93981),
                (0.89486, 0.91154, 0.91915, 0.92400, 0.93363),
                (0.89556, 0.91135, 0.91862, 0.92237, 0.93241),
                (0.96021, 0.95958, 0.95984, 0.96025, 0.96016),
            )
        ),
        "f1": _by_subject(
            (
                (0.89479, 0.91477, 0.92218, 0.92758, 0.93678),
                (0.89584, 0.91418, 0.92377, 0.92644, 0.93729),
                (0.88341, 0.90391, 0.91356, 0.91942, 0.93038),
                (0.88440, 0.90373, 0.91308, 0.91759, 0.92901),
                (0.95993, 0.95919, 0.95962, 0.96012, 0.95991),
            )
        ),
        "AUC": _by_subject(
            (
                (0.97333, 0.97891, 0.98068, 0.98161, 0.98342),
                (0.97643, 0.98076, 0.98257, 0.98283, 0.98495),
                (0.97480, 0.97901, 0.98098, 0.98147, 0.98367),
                (0.97376, 0.97786, 0.97947, 0.98015, 0.98235),
                (0.99286, 0.99317, 0.99317, 0.99327, 0.99326),
            )
        ),
        "Brier": _by_subject(
            (
                (0.07813, 0.06450, 0.05940, 0.05556, 0.04981),
                (0.07535, 0.06384, 0.05797, 0.05615, 0.04873),
                (0.08851, 0.07363, 0.06633, 0.06305, 0.05453),
                (0.08744, 0.07351, 0.06634, 0.06421, 0.05551),
                (0.03055, 0.03054, 0.03077, 0.03030, 0.03040),
            )
        ),
    }
)
"""Average score over 200 resamples, by score, model and subject."""
