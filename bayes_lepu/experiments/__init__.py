"""The paper's experiments, resumable and parallel.

==============  ====================================================================
`table1`        five models on simulated data, four scores
`table2`        which model is better than which, by the paper's rule and by interval
`ablation`      guesses and lapses switched on and off: what makes the norm rule work
`run_trials`    the machine underneath: any function of settings and a generator
==============  ====================================================================

Needs the extra ``sklearn``; ``import bayes_lepu`` does not import this package.
"""

from bayes_lepu.experiments.ablation import ablation
from bayes_lepu.experiments.runner import Experiment, run_trials, trial_seed
from bayes_lepu.experiments.table1 import Table1Settings, table1
from bayes_lepu.experiments.table2 import compare_pairs, table2
from bayes_lepu.experiments.tables import Reproduction

__all__ = [
    "Experiment",
    "Reproduction",
    "Table1Settings",
    "ablation",
    "compare_pairs",
    "run_trials",
    "table1",
    "table2",
    "trial_seed",
]
