"""Benchmarks: ratios measured within one run, never asserted.

``python -m benchmarks`` runs every ``bench_*.py`` of this package, ``python -m benchmarks kernel``
one of them. A benchmark module exposes ``run() -> dict`` of named ratios and figures; they are
printed and written to ``benchmarks/results/<module>.json`` beside the facts of the machine.
"""
