"""Inference: from a log density to modes and draws, and the orientation of the factors.

An *optimum* is the end of one local search. Optima whose t and s agree on the rows are one *mode*.
A *basin* is the region around a mode that chains do not leave; a mode and its image with t and s
swapped count as one basin.
"""
