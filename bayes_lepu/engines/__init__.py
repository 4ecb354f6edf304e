"""Inference: from a log density to modes and draws, and which factor is called t.

An *optimum* is where one climb ended. A *mode* is a distinct optimum: optima whose t and s agree on
the rows are one mode. A *basin* is the surroundings of a mode that chains do not leave; a mode and
its image with t and s swapped count as one basin.
"""
