r"""What one more piece of information would change, computed rather than guessed.

Three offers are weighed, each by the sd of π it would leave and by the log likelihood with which
the data would then tell the two namings of the factors apart:

* 50 audited rows. An audited unlabelled row adds y | l = 0 ~ Bernoulli(m), with
  :math:`\operatorname{logit} m = \tau + \log(1-\Psi)`. For a point estimate its information
  :math:`m(1-m) D D'` is added to that at hand; draws are reweighted by simulated audits.
* A column that does not enter s: the sd is that given α_j = 0, the gap comes from refits. Whether
  a column can be left out only the user knows, so up to three are offered.
* π known from elsewhere to ±0.02, or to a tenth of itself where the class is rare.
"""

from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.engines.optimizers import Optimum, optimise
from bayes_lepu.links import Array, RowKind
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.result.numbers_in_words import as_likely, share
from bayes_lepu.verdict.climbing import Peak, climb, held, logit_pi
from bayes_lepu.verdict.levels import sd_pi
from bayes_lepu.verdict.naming import exchange_gap, exchanged_peak
from bayes_lepu.verdict.records import Remedy
from bayes_lepu.verdict.thresholds import MODE_GAP

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

AUDITED = 50
KNOWN_SD = 0.02
YOURS = "YOUR_FIGURE"
REPEATS = 40
DRAWS = 1000
COLUMNS = 3
UNSURE = 0.01  # no single audit is taken to refute an answer by more than log 100
ENOUGH_ROWS = 40_000  # of which the average information of an audit is taken


def weigh_remedies(evidence: "Evidence") -> tuple[Remedy, ...]:
    """The offers, the most helpful first: for the naming where that is open, else for π."""
    if not evidence.small or evidence.fit.spec.certain:
        return ()
    before, gap = sd_pi(evidence), exchange_gap(evidence)
    open_rows = np.any(evidence.data.kind == RowKind.UNLABELLED)
    offers = [_audit(evidence, before, gap)] if open_rows else []
    if (
        evidence.fit.spec.has_selection
        and evidence.foldable
        and evidence.data.selection_mask.sum() > 1
    ):
        offers.append(_mask(evidence, before, gap))
    if np.isnan(evidence.data.outside[0, 0]):  # a figure that was brought already is not asked for
        offers.append(_known_pi(evidence, before, gap))
    if gap < MODE_GAP[0]:
        return tuple(sorted(offers, key=lambda r: -r.gap_after))
    return tuple(sorted(offers, key=lambda r: r.sd_after))


# Audited rows ---------------------------------------------------------------------------------


def _audit(evidence: "Evidence", before: float, gap: float) -> Remedy:
    after = audited_sd(evidence)
    other = exchanged_peak(evidence)
    gap_after = gap if other is None else gap + audited_gap(evidence, other)
    text = f"{AUDITED} audited unlabelled rows: {_change(before, after, gap, gap_after)}."
    return Remedy(
        f"{AUDITED} audited rows",
        before,
        after,
        gap,
        gap_after,
        text,
        advice=f"Find out the true class of {AUDITED} rows that the library picks",
        call=f"plan = fit.suggest_audit({AUDITED})",
    )


def audited_sd(evidence: "Evidence") -> float:
    """Expected sd of π after auditing `AUDITED` unlabelled rows chosen at random."""
    if evidence.fit.is_point:
        extra = audit_information(evidence)
        return evidence.local.sd(evidence.local.pi_gradient, extra)
    flat = evidence.pivoted.take_flat()
    some = np.linspace(0, flat.b.size - 1, min(DRAWS, flat.b.size)).astype(int)
    draws, pi = flat.take(some), evidence.pi_draws.ravel()[some]
    rng = np.random.default_rng(0)
    open_rows = np.flatnonzero(evidence.data.kind == RowKind.UNLABELLED)
    variances = []
    for _ in range(REPEATS):
        rows = evidence.data.X[rng.choice(open_rows, min(AUDITED, open_rows.size), replace=False)]
        m = np.clip(draws.missed(rows), 1e-12, 1 - 1e-12)
        y = rng.random(len(rows)) < m[rng.integers(len(m))]
        log_w = np.where(y, np.log(m), np.log1p(-m)).sum(axis=1)
        w = np.exp(log_w - log_w.max())
        w /= w.sum()
        mean = w @ pi
        variances.append(w @ (pi - mean) ** 2)
    return float(np.sqrt(np.mean(variances)))


def audit_information(evidence: "Evidence") -> Array:
    """Expected information of `AUDITED` random audits of unlabelled rows, in the coordinates."""
    data, density = evidence.data, evidence.fit.density
    X = data.X[data.kind == RowKind.UNLABELLED]
    X = X[evenly_spaced(len(X), ENOUGH_ROWS)]  # an average over rows
    point = evidence.inside(evidence.point)
    m, psi = point.missed(X), point.s(X)
    ones = np.column_stack([X, np.ones(len(X))])
    rise = np.exp(evidence.fit.spec.propensity.logs(point.omega(X), point.log_w)[2])
    slope = -rise / np.maximum(1 - psi, 1e-12)
    gamma, lam = float(point.gamma), float(point.lam)
    of_class = point.of_class
    log_t, log_not_t, log_slope = of_class.logs(point.tau(X), of_class.log_rates())
    D = np.column_stack(
        [
            np.exp(log_slope - log_t - log_not_t)[:, None] * ones,
            slope[:, None] * ones,
            np.full(len(X), -gamma),
            lam * psi / np.maximum(1 - psi, 1e-12),
            np.zeros(len(X)),  # of false marks: an audit of an unlabelled row says little
        ]
    )[:, density.free]
    out = np.zeros((density.dim, density.dim))
    k = len(density.free)
    out[:k, :k] = (AUDITED / len(X)) * (D * (m * (1 - m))[:, None]).T @ D
    return out


def audited_gap(evidence: "Evidence", other: Peak) -> float:
    """Expected log likelihood ratio of `AUDITED` audits against the exchanged answer."""
    data = evidence.weak.data
    among = (data.kind == RowKind.UNLABELLED) & (data.each_weight > 0)
    X, weights = data.X[among], data.each_weight[among]
    m, q = (
        np.clip(p.missed(X), UNSURE, 1 - UNSURE) for p in (evidence.peaks[0].point, other.point)
    )
    divergence = m * np.log(m / q) + (1 - m) * np.log((1 - m) / (1 - q))
    return AUDITED * float(weights @ divergence) / max(float(weights.sum()), 1e-300)


# A column that does not enter s ---------------------------------------------------------------


def _mask(evidence: "Evidence", before: float, gap: float) -> Remedy:
    """The best of up to three columns, with the others in the text."""
    offers = []
    for column in likely_columns(evidence):
        correlation = _correlation(evidence, column)
        after = before * float(np.sqrt(max(1 - correlation**2, 0.0)))
        offers.append((evidence.fit.feature_names[column], after, masked_gap(evidence, column)))
    offers.sort(key=lambda o: -o[2] if gap < MODE_GAP[0] else o[1])
    (name, after, gap_after), *others = offers
    by_formulas = evidence.data.encoding.design is not None
    text = (
        f"If you know that {name} cannot influence the labelling, leave it out of "
        f"selection_features=: {_change(before, after, gap, gap_after)}."
    )
    if others:
        said = _naming if np.isfinite(gap) else lambda _: ""
        more = (f"{other} (sd of π {share(sd, 3)}{said(g)})" for other, sd, g in others)
        text += f" Or, if you know it of them: {' or '.join(more)}."
    mask = evidence.data.selection_mask
    inside = np.array(evidence.fit.feature_names)[mask].tolist()
    rest = [c for c in inside if c != name]
    listed = f"[c for c in fit.feature_names if c != {name!r}]" if mask.all() else repr(rest)
    known = set(rest) <= set(evidence.data.user_columns) and "," not in "".join(rest)
    return Remedy(
        f"{name} not in s",
        before,
        after,
        gap,
        gap_after,
        text,
        advice=f"If you know that {name} cannot influence who gets a label, say so",
        call="" if by_formulas else f"fit.update(selection_features={listed})",
        flags=f"--selection-features {quote(','.join(rest))}" if known and not by_formulas else "",
    )


def likely_columns(evidence: "Evidence") -> list[int]:
    """Columns of s that are most of t and least of s, at most three."""
    point, inside = evidence.peaks[0].point, np.flatnonzero(evidence.data.selection_mask)
    share = np.abs(point.a[inside]) - np.abs(point.alpha[inside])
    return [int(j) for j in inside[np.argsort(-share, kind="stable")][:COLUMNS]]


def _correlation(evidence: "Evidence", column: int) -> float:
    """Correlation of π with α_j, from the draws or from the local covariance."""
    if not evidence.fit.is_point:
        alpha = evidence.pivoted.take_flat().alpha[:, column]
        return float(np.corrcoef(alpha, evidence.pi_draws.ravel())[0, 1])
    local, blocks = evidence.local, evidence.fit.density.blocks
    j = blocks.alpha.start + int(evidence.data.selection_mask[:column].sum())
    covariance = local.covariance @ local.pi_gradient
    total = float(local.pi_gradient @ covariance) * float(local.covariance[j, j])
    return float(covariance[j] / np.sqrt(total)) if total > 0 else 0.0


def masked_gap(evidence: "Evidence", column: int) -> float:
    """Log likelihood ratio of this naming to the other when the column is left out of s."""
    first, other = evidence.peaks[0], exchanged_peak(evidence)
    if other is None:
        return np.inf
    mask = evidence.data.selection_mask.copy()
    mask[column] = False
    density = evidence.weak.with_masks(evidence.weak.data.class_mask, mask)

    def best(point: Parameters) -> Optimum:
        start = replace(evidence.inside(point), alpha=point.alpha * mask)
        return optimise(density, density.pack(start))

    here, there = best(first.point), best(other.point)
    if not evidence.differ(density.unpack(here.z), density.unpack(there.z)):
        return np.inf  # without the column the other naming has no maximum of its own
    return here.logp - there.logp


# π known --------------------------------------------------------------------------------------


def _known_pi(evidence: "Evidence", before: float, gap: float) -> Remedy:
    pi = float(np.mean(evidence.pi_draws))
    error = known_sd(pi)
    after = before * error / float(np.hypot(before, error))
    other = exchanged_peak(evidence)
    gap_after = gap if other is None else gap + held_gap(evidence, other, error)
    text = (
        f"The class prior known from elsewhere to ±{error:g}: "
        f"{_change(before, after, gap, gap_after)}."
    )
    return Remedy(
        "class prior known",
        before,
        after,
        gap,
        gap_after,
        text,
        advice=(
            f"Bring the share of positives from elsewhere, good to ±{error:g} (a figure of your "
            f"own, not this fit's {pi:.3g})"
        ),
        # No number there: the fit's own, pasted, would count as evidence from outside.
        call=f"fit.update(class_prior=({YOURS}, {error:g}))",
        flags=f"--class-prior {YOURS},{error:g}",
    )


def known_sd(pi: float) -> float:
    """The error of a figure from elsewhere: 0.02, or about a tenth of a rare class, one digit."""
    return min(KNOWN_SD, float(f"{max(pi, 1e-9) / 10:.0e}"))


def held_gap(evidence: "Evidence", other: Peak, error: float) -> float:
    """Log likelihood the exchanged answer loses when π is held near this answer's value."""
    density = evidence.weak
    target, _ = logit_pi(density, evidence.peaks[0].z)
    pi = 1 / (1 + np.exp(-target))
    strength = (pi * (1 - pi) / error) ** 2
    _, value = climb(held(density, target, strength), other.z)
    return other.logp - value


def _change(before: float, after: float, gap: float, gap_after: float) -> str:
    words = f"sd of π {share(before, 3)} → {share(after, 3)}"
    if not np.isfinite(gap):
        return words
    if np.isfinite(gap_after) and as_likely(gap) == as_likely(gap_after):
        return words + ", nothing new about which factor is which"
    return words + f"{_naming(gap_after)} (now {as_likely(gap)})"


def _naming(gap: float) -> str:
    if not np.isfinite(gap):
        return ", no answer with exchanged factors left"
    return f", this naming of the factors {as_likely(gap)}"
