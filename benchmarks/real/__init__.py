"""Real tables, labelled by the mechanisms of the literature: who finds the true classes?

``python -m benchmarks.real`` runs what is missing of the benchmark and stores means. A trial is
a table, a mechanism and a repetition: the classes of a public table are known, the mechanism marks
some of the positives, and every method sees rows and marks alone. See ``__main__`` for the options.
"""
