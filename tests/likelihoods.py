"""Rows, points and coordinates for the tests of the likelihood."""

import numpy as np

from bayes_lepu.factors import Factor
from bayes_lepu.rows import (
    Links,
    Point,
    Rows,
    flat_order,
    formula,
    make_point,
    make_rows,
)

P, J = 3, 2


def make_data(
    *, n: int = 40, annotators: int = J, false_marks: bool = False, seed: int = 0
) -> Rows:
    """Labels with missing cells, audited classes and weights; possible without false marks."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(-1, 2, size=(n, annotators))
    known = rng.integers(-1, 2, size=n)
    if not false_marks:
        known[(known == 0) & (labels == 1).any(axis=1)] = 1
    return make_rows(
        rng.normal(size=(n, P)),
        labels,
        known=known,
        weight=rng.uniform(0, 2, n),
    )


def certain(rows: Rows) -> Rows:
    """The same rows with labels that are possible when every positive row is marked."""
    labels = rows.labels.copy()
    labels[:, (labels == 1).any(axis=0) | (rows.known == 1)] = 1
    return rows._replace(labels=labels)


def unpack(
    theta: np.ndarray, rows: Rows, propensity: Factor, *, false_marks: bool, of_class=None
) -> Point:
    """The point with these coordinates in the flat order."""
    at = flat_order(rows).entries(theta)
    return make_point(
        a=at.a,
        b=at.b,
        alpha=at.alpha,
        beta=at.beta,
        rates=propensity.log_rates(at.uv[:, list(propensity.coordinate_rates)]),
        epsilon=1 / (1 + np.exp(-at.e)) if false_marks else 0.0,
        **({} if of_class is None else {"class_rates": of_class.log_rates()}),
    )


def used(rows: Rows, propensity: Factor) -> np.ndarray:
    """Which entries of the flat order the likelihood depends on."""
    where = flat_order(rows)
    out = np.ones(where.size, dtype=bool)
    for j in range(where.J):
        for i in {0, 1} - set(propensity.coordinate_rates):
            out[where.own(j).start + i] = False
    return out


def links_of(propensity: Factor, of_class: Factor | None = None) -> Links:
    return Links(propensity.link, (of_class or propensity).link)


def differences(f, theta: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Central finite differences of f, one row per entry of theta."""
    return np.array([(f(theta + h) - f(theta - h)) / (2 * step) for h in step * np.eye(theta.size)])


def expected_by_labels(rows: Rows, links: Links, point: Point) -> np.ndarray:
    """One annotator: the mean of the observed information over what could have been seen.

    An unaudited row has two labels; an audited one two classes, and the labels given its own.
    """
    shown, unknown = rows.labels >= 0, np.full_like(rows.known, -1)

    def mean(cases, given):
        """Cases by their probabilities, those of given cases by their share of them."""
        p = np.exp([formula.row_terms(case, links, point)[0] for case in cases]) / given
        return sum(
            formula.observed_information(case._replace(weight=rows.weight * q), links, point)
            for case, q in zip(cases, p, strict=True)
        )

    def labelled(known, keep):
        return [
            rows._replace(labels=np.where(shown & keep, l, -1).astype(np.int8), known=known)
            for l in (0, 1)
        ]

    audited = rows.known >= 0
    out = mean(labelled(unknown, ~audited), np.where(shown[0] & ~audited, 1.0, 2.0))
    nothing = np.full_like(rows.labels, -1)
    classes = [
        rows._replace(labels=nothing, known=np.where(audited, y, -1).astype(np.int8))
        for y in (0, 1)
    ]
    out = out + mean(classes, np.where(audited, 1.0, 2.0))
    own = np.exp(formula.row_terms(rows._replace(labels=nothing), links, point)[0])
    given = mean(labelled(rows.known, audited), own * np.where(shown[0] & audited, 1.0, 2.0))
    alone = formula.observed_information(rows._replace(labels=nothing), links, point)
    return out + given - alone
