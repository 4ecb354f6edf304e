"""Data sets: the paper's simulator, an embedded demo, and the go/no-go experiment.

==========================  ===============================================================
`simulate_paper`            the paper's synthetic experiment, with an option per open question
`load_demo`                 simulated camera-trap photographs with a known biased annotator
`load_animal_gonogo`        real human labels, from the prepared tables
`load_animal_heldout`       518 photographs with known truth that nobody judged
`load_animal_trials`        the prepared table of trials
`load_openneuro_gonogo`     the same table from the public export, OpenNeuro ds002680
==========================  ===============================================================
"""

from bayes_lepu.datasets.animal import (
    load_animal_gonogo,
    load_animal_heldout,
    load_animal_trials,
)
from bayes_lepu.datasets.dataset import PUDataset
from bayes_lepu.datasets.demo import load_demo
from bayes_lepu.datasets.gonogo import PAPER_SUBJECTS, SUBJECTS, usable_trials
from bayes_lepu.datasets.openneuro import load_openneuro_gonogo
from bayes_lepu.datasets.paper import simulate_paper

__all__ = [
    "PAPER_SUBJECTS",
    "SUBJECTS",
    "PUDataset",
    "load_animal_gonogo",
    "load_animal_heldout",
    "load_animal_trials",
    "load_demo",
    "load_openneuro_gonogo",
    "simulate_paper",
    "usable_trials",
]
