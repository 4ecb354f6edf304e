"""Public tables, marked by known mechanisms: who finds the true classes?

``python -m benchmarks.real`` runs the trials that are missing and prints a summary. A trial is a
table, a mechanism, a number of training rows and a repetition: the classes of the table are known,
the mechanism marks some of the positives, and every method sees rows and marks alone.

For tuning work, a part of it::

    python -m benchmarks.real --only phoneme,ring --methods scar,elkan-noto-boosting \
        --trials 1 --sizes 1500 --out /tmp/x.csv
"""
