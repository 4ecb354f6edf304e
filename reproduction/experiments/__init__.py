"""The paper's experiments, resumable and parallel.

==================  ====================================================================
`run_table1`        five models on simulated data, four scores
`run_table2`        which model is better than which, by the paper's rule and by interval
`run_ablation`      guesses and lapses switched on and off: what makes the norm rule work
`run_animal`        the paper's five human annotators, by its protocol and by a safe one
`run_animal_bayes`  their posteriors under four models, LOO, verdict, and π against .5
`run_trials`        the machine underneath: any function of settings and a generator
==================  ====================================================================

Needs scikit-learn.
"""

from reproduction.experiments.ablation import run_ablation
from reproduction.experiments.animal import compare_rivals, run_animal
from reproduction.experiments.bayes import BayesSettings, run_animal_bayes
from reproduction.experiments.resample import AnimalSettings
from reproduction.experiments.runner import Experiment, run_trials, trial_seed
from reproduction.experiments.synthetic import SyntheticSettings
from reproduction.experiments.table1 import run_table1
from reproduction.experiments.table2 import TABLE2_SETTINGS, compare_pairs, run_table2
from reproduction.experiments.tables import Reproduction

__all__ = [
    "TABLE2_SETTINGS",
    "AnimalSettings",
    "BayesSettings",
    "Experiment",
    "Reproduction",
    "SyntheticSettings",
    "compare_pairs",
    "compare_rivals",
    "run_ablation",
    "run_animal",
    "run_animal_bayes",
    "run_table1",
    "run_table2",
    "run_trials",
    "trial_seed",
]
