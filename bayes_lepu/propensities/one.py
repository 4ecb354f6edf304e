"""Every positive row is marked: ψ = 1, and the labels are the classes (the naive model)."""

from bayes_lepu.propensities.logistic import LINK
from bayes_lepu.propensities.propensity import Propensity

PROPENSITY = Propensity("one", "s(x) = 1: every positive row is labelled", LINK, free=("gamma",))
