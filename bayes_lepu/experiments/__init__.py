"""The paper's experiments, resumable and parallel.

================  ====================================================================
`run_table1`      five models on simulated data, four scores
`run_table2`      which model is better than which, by the paper's rule and by interval
`run_ablation`    guesses and lapses switched on and off: what makes the norm rule work
`run_trials`      the machine underneath: any function of settings and a generator
================  ====================================================================

Needs the extra ``sklearn``; ``import bayes_lepu`` does not import this package.
"""

from bayes_lepu.experiments.ablation import run_ablation
from bayes_lepu.experiments.runner import Experiment, run_trials, trial_seed
from bayes_lepu.experiments.synthetic import SyntheticSettings
from bayes_lepu.experiments.table1 import run_table1
from bayes_lepu.experiments.table2 import TABLE2_SETTINGS, compare_pairs, run_table2
from bayes_lepu.experiments.tables import Reproduction

__all__ = [
    "TABLE2_SETTINGS",
    "Experiment",
    "Reproduction",
    "SyntheticSettings",
    "compare_pairs",
    "run_ablation",
    "run_table1",
    "run_table2",
    "run_trials",
    "trial_seed",
]
