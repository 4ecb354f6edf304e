"""Inference: from a log density to modes and draws, and the naming of their factors.

An *optimum* is where one climb ended. A *mode* is a distinct optimum of the fit's density: optima
whose t and s agree on the rows are one mode (`modes`). A *basin* is the surroundings of a mode that
chains do not leave; mirror images of one another count as one (`basins`). A *peak*, in the
diagnostics, is a mode of the likelihood under weak priors of their own, which tells what the data
say without the fit's priors. The *exchange* of the factors swaps (a, b) and (α, β).
"""
