"""Every positive row is marked: ψ = 1, and the labels are the classes (the naive model)."""

from bayes_lepu.propensities.base import Propensity
from bayes_lepu.propensities.logistic import LINK

PROPENSITY = Propensity("one", "s(x) = 1: every positive row is labelled", LINK, free=("gamma",))
