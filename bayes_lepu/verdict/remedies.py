r"""What one more piece of information would change, computed rather than guessed.

Three offers are weighed, each by the sd of π it would leave and by the log likelihood with which
the data would then tell the two orientations apart:

* 50 audited rows. An audited unlabelled row adds y | l = 0 ~ Bernoulli(m), with
  :math:`\operatorname{logit} m = \tau + \log(1-\Psi)`: information :math:`m(1-m) D D'` at the mode.
* The column that is most of t and least of s kept out of s: the sd is that given α_j = 0, the gap
  comes from refits. Whether it can be left out only the user knows.
* π known from elsewhere to ±0.02, or to a tenth of itself where the class is rare.
"""

from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.links import Array, RowKind, sigmoid
from bayes_lepu.result.numbers_in_words import as_likely, share
from bayes_lepu.verdict.levels import climb, sd_pi, with_known_pi
from bayes_lepu.verdict.naming import exchange_gap, exchanged_peak
from bayes_lepu.verdict.peaks import Peak, logit_pi
from bayes_lepu.verdict.records import MODE_GAP, Remedy

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

AUDITED = 50  # rows that a person checks in an afternoon
AUDITS = f"{AUDITED} audited rows"
YOURS = "YOUR_FIGURE"
UNSURE = 0.01  # no single audit is taken to refute an answer by more than log 100


def weigh_remedies(evidence: "Evidence") -> tuple[Remedy, ...]:
    """The offers, the most helpful first: for the orientation where that is open, else for π."""
    fit, data = evidence.fit, evidence.data
    if fit.spec.certain:
        return ()
    before, gap, other = sd_pi(evidence), exchange_gap(evidence), exchanged_peak(evidence)

    def offer(
        name: str, after: float, gap_after: float, text: str, advice: str, call: str, flags: str
    ) -> Remedy:
        text = f"{text}: {_change(before, after, gap, gap_after)}."
        return Remedy(name, before, after, gap, gap_after, text, advice, call, flags)

    offers = []
    if np.any(data.kind == RowKind.UNLABELLED):
        offers.append(
            offer(
                AUDITS,
                before * sd_ratio(evidence, audit_information(evidence)),
                gap if other is None else gap + audited_gap(evidence, other),
                f"{AUDITED} audited unlabelled rows",
                f"Find out the true class of {AUDITED} rows that the library picks",
                f"plan = fit.suggest_audit({AUDITED})",
                "",
            )
        )
    if fit.spec.has_selection and fit.density.can_exchange and data.selection_mask.sum() > 1:
        j = likeliest_column(evidence)
        name, after = fit.feature_names[j], before * sd_ratio(evidence, known_slope(evidence, j))
        mask, by_formulas = data.selection_mask, data.encoding.design is not None
        left = [c for c in np.array(fit.feature_names)[mask].tolist() if c != name]
        listed = f"[c for c in fit.feature_names if c != {name!r}]" if mask.all() else repr(left)
        known = set(left) <= set(data.user_columns) and "," not in "".join(left)
        flags = f"--selection-features {quote(','.join(left))}"
        found = offer(
            f"{name} not in s",
            after,
            masked_gap(evidence, j),
            f"If you know that {name} cannot influence the labelling, leave it out of "
            "selection_features=",
            f"Can {name} influence who gets a label? If you know that it cannot, say so",
            ""
            if by_formulas
            else f"lepu.fit(X, l, model={fit.spec.name!r}, selection_features={listed})",
            flags if known and not by_formulas else "",
        )
        offers.append(found)
    if np.isnan(data.outside[0, 0]):  # a figure that was brought already is not asked for
        error = known_sd(evidence.pi)
        offers.append(
            offer(
                "class prior known",
                before * error / float(np.hypot(before, error)),
                gap if other is None else gap + known_gap(evidence, other, error),
                f"The class prior known from elsewhere to ±{error:g}",
                f"Bring the share of positives from elsewhere, good to ±{error:g} (a figure of "
                f"your own, not this fit's {evidence.pi:.3g})",
                # No number there: the fit's own, pasted, would count as evidence from outside.
                f"fit.update(class_prior=({YOURS}, {error:g}))",
                f"--class-prior {YOURS},{error:g}",
            )
        )
    open_naming = gap < MODE_GAP[0]
    offers.sort(key=lambda r: -r.gap_after if open_naming else r.sd_after)
    # Audits rest on nothing that somebody has to assert, so they come first where they help.
    return tuple(sorted(offers, key=lambda r: not (r.helps and r.name == AUDITS)))


# Audited rows ---------------------------------------------------------------------------------


def sd_ratio(evidence: "Evidence", extra: Array) -> float:
    """Sd of π with more information, in the coordinates, against that at hand."""
    local, slope = evidence.local, evidence.local.pi_gradient
    return local.sd(slope, extra) / max(local.sd(slope), 1e-300)


def audit_information(evidence: "Evidence") -> Array:
    """Expected information of `AUDITED` random audits of unlabelled rows, in the coordinates."""
    data, density, spec = evidence.data, evidence.fit.density, evidence.fit.spec
    X = data.X[data.kind == RowKind.UNLABELLED]
    X = X[evenly_spaced(len(X), 40_000)]  # enough for a mean
    point = evidence.inside(evidence.point)
    m, psi, ones = point.missed(X), point.s(X), np.column_stack([X, np.ones(len(X))])
    not_psi = np.maximum(1 - psi, 1e-12)
    rise = np.exp(spec.propensity.logs(point.omega(X), point.log_w)[2])
    log_t, log_not_t, log_slope = spec.of_class.logs(point.tau(X), spec.of_class.log_rates())
    D = np.column_stack(
        [
            np.exp(log_slope - log_t - log_not_t)[:, None] * ones,
            (-rise / not_psi)[:, None] * ones,
            np.full(len(X), -float(point.gamma)),
            float(point.lam) * psi / not_psi,
            np.zeros(len(X)),  # of false marks: an audit of an unlabelled row says little
        ]
    )[:, density.free]
    out, k = np.zeros((density.dim, density.dim)), len(density.free)
    out[:k, :k] = (AUDITED / len(X)) * (D * (m * (1 - m))[:, None]).T @ D
    return out


def audited_gap(evidence: "Evidence", other: Peak) -> float:
    """Expected log likelihood ratio of `AUDITED` audits against the swapped answer."""
    data, points = evidence.weak.data, (evidence.peaks[0].point, other.point)
    among = (data.kind == RowKind.UNLABELLED) & (data.weight > 0)
    X, weights = data.X[among], data.weight[among]
    m, q = (np.clip(point.missed(X), UNSURE, 1 - UNSURE) for point in points)
    divergence = m * np.log(m / q) + (1 - m) * np.log((1 - m) / (1 - q))
    return AUDITED * float(weights @ divergence) / max(float(weights.sum()), 1e-300)


# A column that does not enter s ---------------------------------------------------------------


def likeliest_column(evidence: "Evidence") -> int:
    """The column of s that is most of t and least of s."""
    point, inside = evidence.peaks[0].point, np.flatnonzero(evidence.data.selection_mask)
    return int(inside[np.argmax(np.abs(point.a[inside]) - np.abs(point.alpha[inside]))])


def known_slope(evidence: "Evidence", column: int) -> Array:
    """The information of α_j known to be 0: without bound."""
    blocks, mask = evidence.fit.density.blocks, evidence.data.selection_mask
    extra = np.zeros_like(evidence.local.data)
    j = blocks.alpha.start + int(mask[:column].sum())
    extra[j, j] = 1e6 * max(float((evidence.local.data + evidence.local.prior)[j, j]), 1.0)
    return extra


def masked_gap(evidence: "Evidence", column: int) -> float:
    """Log likelihood ratio of this orientation to the other with the column left out of s."""
    first, other = evidence.peaks[0], exchanged_peak(evidence)
    if other is None:
        return np.inf
    mask = evidence.data.selection_mask.copy()
    mask[column] = False
    density = evidence.weak.with_masks(evidence.weak.data.class_mask, mask)
    starts = (replace(evidence.inside(p.point), alpha=p.point.alpha * mask) for p in (first, other))
    here, there = (optimise(density, density.pack(start)) for start in starts)
    if not evidence.differ(density.unpack(here.z), density.unpack(there.z)):
        return np.inf  # without the column the other orientation has no maximum of its own
    return here.logp - there.logp


# π known --------------------------------------------------------------------------------------


def known_sd(pi: float) -> float:
    """The error of a figure from elsewhere: 0.02, or about a tenth of a rare class, one digit."""
    return min(0.02, float(f"{max(pi, 1e-9) / 10:.0e}"))  # .02: a survey's


def known_gap(evidence: "Evidence", other: Peak, error: float) -> float:
    """Log likelihood the swapped answer loses when π is known to be near this answer's value."""
    pi = float(sigmoid(logit_pi(evidence.weak, evidence.peaks[0].z)[0]))
    known = with_known_pi(evidence.weak, pi, error)
    return other.logp - known.logp(climb(known, other.z))


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
