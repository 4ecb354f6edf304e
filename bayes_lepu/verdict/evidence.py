r"""The quantities behind the verdict of one fit: computed once, shared by checks, plots and report.

The checks use two log densities: the fit's own, with its priors, and the *weak* one. The weak
density is the likelihood with slopes N(0, 2.5²) on standardised columns, flat intercepts and
uniform weights, the same for both factors. It shows what the data identify when no prior prefers
an orientation. It has a ridge only because the likelihood alone need not have a maximum.
"""

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.defaults import count_terms, scale_by_count, with_blocks
from bayes_lepu.engines.map import fit_map
from bayes_lepu.engines.modes import distance
from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.engines.pooling import known_scales
from bayes_lepu.errors import LepuWarning
from bayes_lepu.factors import RATES, Factor
from bayes_lepu.links import Array, sigmoid
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.priors.prior import INTERCEPTS, SELECTION_SCALE, SLOPES, weak_priors
from bayes_lepu.verdict.class_prior import (
    Local,
    Peak,
    Role,
    likelihood_range,
    logit_pi,
    power_scaling,
    sd_pi,
    trace_profile,
    weak_density,
    weigh_audit,
)
from bayes_lepu.verdict.forms import FormRange, form_range, given_range
from bayes_lepu.verdict.records import Offer
from bayes_lepu.verdict.rivals import (
    Bend,
    Rival,
    compare_rivals,
    measure_bend,
    refuted,
)

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

WEAK_DEFAULTS = (*SLOPES, *INTERCEPTS)  # priors that a penalty leaves flat or too weak
MAX_DIM = 300  # coordinates up to which dense curvature is affordable
SEARCH_ROWS = 5_000  # for the search of modes, which are then refined on all rows
JUDGED_ROWS = 100_000  # with so many rows the likelihood is sharp enough
JUDGED_LABELS = 5_000  # marked rows that are kept, where there are as many
MATERIAL = 0.05  # RMS difference of t from which a mode counts as a different answer


@dataclass(frozen=True, eq=False)
class Evidence:
    """A fit and the quantities behind its verdict, each computed on first access and cached."""

    fit: "Fit"

    @property
    def data(self) -> PUData:
        """The fit's data."""
        return self.fit.data

    @property
    def symmetric(self) -> bool:
        """Whether the likelihood is exactly unchanged by swapping t and s."""
        return self.fit.density.is_symmetric

    @property
    def propensity(self) -> Factor:
        """The propensity of the fitted model."""
        return self.fit.spec.propensity

    @property
    def several(self) -> bool:
        """Whether there are several annotators."""
        return self.data.n_annotators > 1

    @property
    def small(self) -> bool:
        """Whether dense curvature is affordable."""
        return self.fit.density.dim <= MAX_DIM and not self.data.is_sparse

    @property
    def one_and_small(self) -> bool:
        """One annotator, and dense curvature is affordable."""
        return self.small and not self.several

    @property
    def too_large(self) -> str:
        """Why checks that need dense curvature are not computed; empty where they are."""
        if self.small or self.several:
            return ""
        size, why = f"{self.fit.density.dim} coordinates", f"{MAX_DIM} are affordable"
        if self.data.is_sparse:
            size, why = f"a sparse matrix of {self.data.n} x {self.data.p}", "dense rows are needed"
        return f"Too large a table: {size}, and {why}."

    # Draws ------------------------------------------------------------------------------------

    @cached_property
    def pivoted(self) -> Parameters:
        """Draws ``(chain, draw)`` all in one orientation."""
        draws = self.fit.parameters
        exchanged = np.asarray(self.fit.stats.get("exchanged", 0.0)) > 0.5
        return draws.choose(~exchanged, draws.swap()) if exchanged.any() else draws

    @cached_property
    def pi_draws(self) -> Array:
        """π of these draws, ``(chain, draw)``."""
        same = self.pivoted is self.fit.parameters
        pi = self.fit.pi_draws if same else self.fit.class_prior_draws(self.pivoted)[0]
        return pi.reshape(self.pivoted.b.shape)

    @property
    def pi(self) -> float:
        """Their mean."""
        return float(np.mean(self.pi_draws))

    @cached_property
    def pi_given_orientation(self) -> Array:
        """π of the draws that were sampled in the fit's orientation.

        Draws with t and s swapped are left out. Swapping them back would be exact only for a
        symmetric density, for which no draw is marked as swapped.
        """
        pi = self.pi_draws.ravel()
        if "exchanged" not in self.fit.stats:
            return pi
        kept = pi[np.asarray(self.fit.stats["exchanged"]).ravel() < 0.5]
        return kept if kept.size else pi

    @cached_property
    def contraction(self) -> float:
        """1 - Var(posterior) / Var(prior) of π, given the orientation."""
        before = float(np.var(self.fit.prior_pi_and_c[0]))
        return 1 - float(np.var(self.pi_draws)) / max(before, 1e-300)

    # The fit's own density --------------------------------------------------------------------

    @cached_property
    def point(self) -> Parameters:
        """The estimate of a MAP fit; the mode among the draws of any other."""
        fit = self.fit
        if fit.is_point:
            return fit.draws.take(0)
        density = LogDensity(fit.spec, self.data, fit.priors, jacobian=True)
        start = fit.density.pack(self.pivoted.take_flat()).mean(axis=0)
        return density.unpack(optimise(density, start).z)

    @cached_property
    def local(self) -> Local:
        """Expected information at the point; weak priors where it has none."""
        fit, data, scale = self.fit, self.data, scale_by_count(self.data)
        smooth = max(SELECTION_SCALE, scale / 4)
        terms = (count_terms(data, mask) for mask in (data.class_mask, data.selection_mask))
        weak = weak_priors(*terms, class_scale=scale, selection_scale=smooth)
        base = known_scales(with_blocks(weak, data)) if fit.is_point else {}
        priors = {n: base[n] if n in base and n in WEAK_DEFAULTS else v
                  for n, v in fit.priors.items()}  # fmt: skip
        density = LogDensity(fit.spec, data, priors, jacobian=not fit.is_point)
        z = density.pack(self.inside(self.point))
        total = density.logp_grad_info(z)[2]
        q, slope = logit_pi(density, z)
        pi = float(sigmoid(q))
        # A Dirichlet(1, 1, 1) has no curvature; one pseudo-observation replaces it.
        floor = np.zeros(density.dim)
        floor[density.blocks.rates] = 0.1
        return Local(z, total + np.diag(floor), slope * pi * (1 - pi))

    def inside(self, point: Parameters) -> Parameters:
        """The point with its weights off the boundary."""
        if self.fit.spec.n_rates == 0:
            return point
        free = [RATES.index(name) for name in self.propensity.free]
        w = np.exp(point.log_w)
        # At exactly 0 a weight's coordinate carries no information.
        w[free] = np.maximum(w[free], 1e-3)
        with np.errstate(divide="ignore"):
            return replace(point, log_w=np.log(w / w.sum()))

    # The weak density -------------------------------------------------------------------------

    @cached_property
    def _spread(self) -> tuple[Array, Array]:
        mean, sd = self.data.column_moments
        return mean, np.maximum(sd, 1e-300)

    @cached_property
    def weak(self) -> LogDensity:
        """Likelihood with the same weak ridge for both factors, on standardised columns.

        With very many rows an evenly spaced part is used that has enough marked rows. It gives
        wider ranges, not different ones.
        """
        n, marked = self.data.n, max(int(np.sum(self.data.l)), 1)
        part = self.data.evenly(min(n, max(JUDGED_ROWS, n * JUDGED_LABELS // marked)))
        return weak_density(self.fit.spec, part.rescaled(*self._spread))

    def standardised(self, point: Parameters) -> Parameters:
        """A point on standardised columns."""
        mean, sd = self._spread
        return replace(
            point,
            a=point.a * sd,
            alpha=point.alpha * sd,
            b=point.b + point.a @ mean,
            beta=point.beta + point.alpha @ mean,
        )

    def climb_weak(self, point: Parameters) -> Peak:
        """The mode of the weak density next to a point on standardised columns."""
        data = self.data
        masked = replace(
            point, a=point.a * data.class_mask, alpha=point.alpha * data.selection_mask
        )
        optimum = optimise(self.weak, self.weak.pack(self.inside(masked)))
        return Peak(Role.OTHER, optimum.z, optimum.logp, self.weak.unpack(optimum.z))

    @cached_property
    def peaks(self) -> tuple[Peak, ...]:
        """Modes of the weak density: as labelled, with t and s swapped, and others.

        The first is the mode nearest to the fit among those that the likelihood does not exclude.
        It therefore depends on the orientation of the fit, but not on its penalty. Further modes
        differ from it by more than `MATERIAL` in t.
        """
        start = self.standardised(self.point)
        climbed = self.climb_weak(start)
        if not self.fit.spec.has_selection:
            return (replace(climbed, role=Role.AS_LABELLED),)
        # If the likelihood is symmetric, a mode with t and s swapped is a mode too.
        points = [] if self.symmetric else [climbed.point.swap(), start.swap()]
        points += self._searched
        for mode in self.fit.modes:
            if mode.gap <= 15 and mode.role != "divergent":
                points.append(self.standardised(mode.point))
        found = [climbed, *(self.climb_weak(point) for point in points)]
        if self.symmetric:
            found += [self.mirrored(peak) for peak in found]
        best, X = max(p.logp for p in found), self._sampled
        # A mode that the likelihood does not exclude: odds above 1 in 400.
        near = [p for p in found if p.logp > best - 6.0]
        first = min(near, key=lambda p: distance(p.point, start, X))
        # Among modes with the same answer the highest represents it.
        same = [p for p in near if not self.differ(p.point, first.point)]
        peaks = [replace(max(same, key=lambda p: p.logp), role=Role.AS_LABELLED)]
        for peak in sorted(found, key=lambda p: -p.logp):
            if all(self.differ(peak.point, p.point) for p in peaks):
                peaks.append(replace(peak, role=self._role(peak.point, peaks[0].point)))
        return tuple(peaks)

    @cached_property
    def contradicted(self) -> bool:
        """Whether the likelihood excludes the fit's orientation and allows the other."""
        if not self.fit.spec.has_selection or self.symmetric:
            return False
        start, first = self.standardised(self.point), self.peaks[0].point
        return self.differ(start, first) and self._role(start, first) is Role.EXCHANGED

    @property
    def _searched(self) -> list[Parameters]:
        """Modes of the weak density from starts that do not depend on the fit."""
        with warnings.catch_warnings():  # warnings of the orientation, which the fit decides
            warnings.simplefilter("ignore", LepuWarning)
            found = fit_map(
                self.weak.spec,
                self.weak.data.evenly(SEARCH_ROWS),  # the modes are then refined on all rows
                self.weak.priors,
                n_starts=4,  # the fit's own modes are further starts
                rng=np.random.default_rng(0),
            )
        points = [m.point for m in found.modes if m.role != "divergent"][:3]
        return points if self.symmetric else points + [p.swap() for p in points[:1]]

    def mirrored(self, peak: Peak, role: Role = Role.OTHER) -> Peak:
        """The mode with t and s swapped, for a symmetric weak density."""
        z = self.weak.swap(peak.z)
        return Peak(role, z, peak.logp, self.weak.unpack(z))

    @cached_property
    def _sampled(self) -> Array:
        """Some of the rows, enough to compare two answers."""
        return self.weak.data.evenly(SEARCH_ROWS).X

    def differ(self, one: Parameters, other: Parameters) -> bool:
        """Whether t differs materially between two points."""
        X = self._sampled
        return bool(np.sqrt(np.mean((one.t(X) - other.t(X)) ** 2)) > MATERIAL)

    def _role(self, point: Parameters, first: Parameters) -> Role:
        """Swapped if the factors, without guesses and lapses, are nearer to ``first`` swapped."""
        X, plain = self._sampled, np.array([-np.inf, -np.inf, 0.0])
        here, there = (replace(p, log_w=plain) for p in (point, first))
        swapped = distance(here.swap(), there, X) < distance(here, there, X)
        return Role.EXCHANGED if swapped else Role.OTHER

    # Quantities of the checks, each computed once -------------------------------------------------

    @cached_property
    def bend(self) -> Bend | None:
        """The comparison of a straight with a learned class."""
        return None if self.data.is_sparse else measure_bend(self)

    @cached_property
    def profile(self) -> pd.DataFrame | None:
        """Profile log likelihood of the class prior."""
        return trace_profile(self) if self.one_and_small else None

    @cached_property
    def likelihood_range(self) -> tuple[float, float] | None:
        """The likelihood's own range of π, given the orientation."""
        return None if self.profile is None else likelihood_range(self.profile)

    @cached_property
    def rivals(self) -> tuple[Rival, ...]:
        """How well this model (first) and others predict the labels."""
        return compare_rivals(self) if self.one_and_small else ()

    @cached_property
    def forms(self) -> FormRange | None:
        """The class prior over other models that predict the labels as well or better."""
        if self.data.is_sparse or not (self.several or self.small):
            return None
        choice, bend = self.fit.choice, self.bend
        more = [] if choice is None else [other.pi for other in choice.as_good]
        more += [bend.pi] if bend is not None and bend.curved else []
        found = form_range(self, more)
        if found is None:
            return None
        low, high = found.low, found.high
        if refuted(self):  # then π of the better rival counts too
            best = self.rivals[1]
            low = min(low, best.pi - 2 * best.pi_sd)
            high = max(high, best.pi + 2 * best.pi_sd)
        given = given_range(self.data)
        inside = max(low, given[0]), min(high, given[1])
        low, high = inside if inside[0] < inside[1] else (low, high)  # else the labels contradict
        return replace(found, low=max(low, 0.0), high=min(high, 1.0))

    @cached_property
    def offer(self) -> Offer | None:
        """The expected effect of auditing some rows."""
        return weigh_audit(self) if self.one_and_small else None

    @cached_property
    def figures(self) -> pd.DataFrame | None:
        """Figures without a threshold: index figure, columns value and meaning."""
        if self.data.is_sparse:
            return None
        rows: dict[str, tuple[float, str]] = {}
        if not self.several:
            predictors = self.point.tau(self.data.X), self.point.omega(self.data.X)
            both = np.cov(*predictors, ddof=0, aweights=self.data.weight)
            sd_t, sd_s = np.sqrt(np.diag(both)).tolist()
            rows["sd of t's predictor"] = sd_t, "below 3, π is hard to identify"
            if self.fit.spec.has_selection:
                alike = both[0, 1] / (sd_t * sd_s) if min(sd_t, sd_s) > 1e-12 else 0.0
                meaning = "near 1 or -1, t and s react to the same columns"
                rows["sd of s's predictor"] = sd_s, "the same of the propensity"
                rows["correlation of the predictors"] = alike, meaning
        if not self.fit.is_point:
            meaning = "share of the prior variance of π that the data removed"
            rows["contraction of pi"] = self.contraction, meaning
            for name, found in power_scaling(self).iterrows():
                if name == "pi" or found["prior"] >= 0.05:  # the threshold of ArviZ
                    meaning = "above .05, it moves with the weight of its prior"
                    if found.min() >= 0.05:
                        meaning += ", and the labels pull it away from the prior"
                    rows[f"prior sensitivity of {name}"] = found["prior"], meaning
        if self.one_and_small:
            rows["sd of pi"] = sd_pi(self), "given the orientation of the factors"
        table = pd.DataFrame.from_dict(rows, orient="index", columns=["value", "meaning"])
        return table.rename_axis("figure").astype({"value": float})


def evidence_of(fit: "Fit") -> Evidence:
    """The evidence of a fit, cached with it, so that the checks share their computations."""
    kept = vars(fit).setdefault("_evidence", Evidence(fit))
    assert isinstance(kept, Evidence)
    return kept
