"""The paper's data: its simulator, and the go/no-go experiment of its human annotators.

==========================  ===============================================================
`simulate_paper`            the synthetic experiment, with an option per open question
`load_animal_gonogo`        real human labels, from the prepared tables
`load_animal_heldout`       518 photographs with known truth that nobody judged
`load_animal_trials`        the prepared table of trials
`load_openneuro_gonogo`     the same table from the public export, OpenNeuro ds002680
==========================  ===============================================================
"""

from reproduction.datasets.gonogo import PAPER_SUBJECTS, SUBJECTS, usable_trials
from reproduction.datasets.openneuro import load_openneuro_gonogo
from reproduction.datasets.photographs import (
    load_animal_gonogo,
    load_animal_heldout,
    load_animal_trials,
)
from reproduction.datasets.simulator import simulate_paper

__all__ = [
    "PAPER_SUBJECTS",
    "SUBJECTS",
    "load_animal_gonogo",
    "load_animal_heldout",
    "load_animal_trials",
    "load_openneuro_gonogo",
    "simulate_paper",
    "usable_trials",
]
