r"""What the checks of one fit share, each computed once.

Two log densities stand behind the checks. The fit's own, with its priors. And the *weak* one: the
likelihood with slopes N(0, 2.5²) on standardised columns, flat intercepts and uniform weights, the
same for both factors. The weak density asks what the data say when no prior takes sides; its ridge
is there only because the maximum of the bare likelihood need not exist.
"""

import warnings
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.diagnostics.climbing import logit_pi
from bayes_lepu.diagnostics.curvature import Local
from bayes_lepu.errors import LepuWarning
from bayes_lepu.factors import RATES, Factor
from bayes_lepu.inference.class_scale import scale_by_count
from bayes_lepu.inference.map import fit_map
from bayes_lepu.inference.modes import distance
from bayes_lepu.inference.optimizers import optimise
from bayes_lepu.inference.pooling import known_scales
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.parameters import Parameters, sigma_norm
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors.prior import INTERCEPTS, SELECTION_SCALE, SLOPES, Prior, weak_priors
from bayes_lepu.priors.term_priors import terms_of_factors, with_blocks

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

WEAK_SLOPE_SCALE = 2.5  # of the weak ridge, on standardised columns
WEAK_DEFAULTS = (*SLOPES, *INTERCEPTS)  # priors that a penalty leaves flat or too weak
MAX_DIM = 300  # coordinates up to which dense curvature is affordable
SEARCH_STARTS = 4
SEARCH_ROWS = 20_000  # so that the search does not grow with the rows
JUDGED_ROWS = 100_000  # the likelihood's own answer is sharp long before
JUDGED_LABELS = 5_000  # marked rows that are kept, where there are as many
SEARCHED = 3  # of the maxima that the search finds, the best
NOT_EXCLUDED = 6.0  # log-likelihood units below the best maximum within which others count
MATERIAL = 0.05  # RMS difference of t that makes another mode another answer
SMALLEST_WEIGHT = 1e-3  # at exactly 0 a weight's own coordinate carries no information


class Role(StrEnum):
    """Which answer a maximum stands for."""

    AS_LABELLED = "as labelled"
    EXCHANGED = "exchanged"
    OTHER = "other"


@dataclass(frozen=True, eq=False)
class Peak:
    """A local maximum of the weak density.

    Attributes
    ----------
    role : Role
    z : array
        Coordinates in the weak density.
    logp : float
    point : Parameters
        On standardised columns.
    """

    role: Role
    z: Array
    logp: float
    point: Parameters


@dataclass(frozen=True, eq=False)
class Subject:
    """A fit and the computations that several checks need."""

    fit: "Fit"

    @property
    def data(self) -> PUData:
        """The fit's data."""
        return self.fit.data

    @property
    def foldable(self) -> bool:
        """Whether exchanging the factors stays inside the model."""
        return self.fit.density.can_exchange

    @property
    def symmetric(self) -> bool:
        """Whether the likelihood is exactly unchanged by the exchange."""
        return self.fit.density.is_symmetric

    @property
    def propensity(self) -> Factor:
        """The propensity of the fitted model."""
        return self.fit.spec.propensity

    @property
    def several(self) -> bool:
        """Whether the labels are those of several annotators."""
        return self.data.n_annotators > 1

    @property
    def has_peaks(self) -> bool:
        """Whether the likelihood can be climbed under the weak ridge: not by products with X."""
        return not self.several and not self.data.is_sparse

    @property
    def small(self) -> bool:
        """Whether dense curvature is affordable."""
        return self.fit.density.dim <= MAX_DIM and not self.data.is_sparse

    @property
    def size(self) -> str:
        """How large the table is, in words."""
        if self.data.is_sparse:
            return f"a sparse matrix of {self.data.n} x {self.data.p}"
        return f"{self.fit.density.dim} coordinates"

    @property
    def too_large(self) -> str:
        """Why what needs dense curvature is not computed; empty where it is."""
        if self.small or self.several:
            return ""
        why = "dense rows are needed" if self.data.is_sparse else f"{MAX_DIM} are affordable"
        return f"Too large a table: {self.size}, and {why}."

    # Draws ------------------------------------------------------------------------------------

    @cached_property
    def pivoted(self) -> Parameters:
        """Draws ``(chain, draw)`` all on one side of the exchange."""
        draws = self.fit.parameters
        exchanged = np.asarray(self.fit.stats.get("exchanged", 0.0)) > 0.5
        return draws.choose(~exchanged, draws.swap()) if exchanged.any() else draws

    @cached_property
    def pi_and_c(self) -> tuple[Array, Array]:
        """π and c of the pivoted draws."""
        if self.pivoted is self.fit.parameters:
            return self.fit.pi_draws, self.fit.c_draws
        return self.fit.class_prior_draws(self.pivoted)

    @property
    def pi_draws(self) -> Array:
        """π of the pivoted draws, ``(chain, draw)``."""
        return self.pi_and_c[0].reshape(self.pivoted.b.shape)

    @cached_property
    def pi_given_naming(self) -> Array:
        """π of the draws that bear the fit's naming of the factors by themselves.

        Exchanging the others back is exact only where the density is symmetric, and there no draw
        is marked as exchanged.
        """
        pi = self.pi_draws.ravel()
        if "exchanged" not in self.fit.stats:
            return pi
        kept = pi[np.asarray(self.fit.stats["exchanged"]).ravel() < 0.5]
        return kept if kept.size else pi

    @cached_property
    def prior_draws(self) -> Parameters:
        """Draws of the prior."""
        return self.fit.prior_draws

    @cached_property
    def prior_pi_and_c(self) -> tuple[Array, Array]:
        """π and c of the draws of the prior."""
        return self.fit.prior_pi_and_c

    @cached_property
    def coordinates(self) -> Array:
        """Pivoted draws in the coordinates of the density, ``(draws, dim)``."""
        return self.fit.density.pack(self.pivoted.take_flat())

    # The fit's own density --------------------------------------------------------------------

    @cached_property
    def unconstrained(self) -> LogDensity:
        """The fit's density on unconstrained coordinates, Jacobian included."""
        return LogDensity(self.fit.spec, self.data, self.fit.priors, jacobian=True)

    @cached_property
    def point(self) -> Parameters:
        """The estimate of a MAP fit; the mode among the draws of any other."""
        if self.fit.is_point:
            return self.fit.draws.take(0)
        density = self.unconstrained
        return density.unpack(optimise(density, self.coordinates.mean(axis=0)).z)

    @cached_property
    def local(self) -> Local:
        """Expected information and prior precision at the point."""
        density = LogDensity(
            self.fit.spec, self.data, self.proper_priors(), jacobian=not self.fit.is_point
        )
        z = density.pack(self.inside(self.point))
        prior = density.prior_precision(z)
        _, _, total = density.logp_grad_info(z)
        q, slope = logit_pi(density, z)
        pi = 1 / (1 + np.exp(-q))
        # A Dirichlet(1, 1, 1) has no curvature of its own: one pseudo-observation stands in.
        weights = density.blocks.rates
        floor = np.zeros(density.dim)
        floor[weights] = 0.1
        return Local(z, density.names, total - prior, prior + np.diag(floor), slope * pi * (1 - pi))

    def proper_priors(self) -> dict[str, Prior]:
        """The fit's priors; for a point estimate weak ones on slopes and levels."""
        data = self.data
        scale = scale_by_count(data)
        smooth = max(SELECTION_SCALE, scale / 4)
        weak = weak_priors(*terms_of_factors(data), class_scale=scale, selection_scale=smooth)
        base = known_scales(with_blocks(weak, data))
        own = self.fit.priors
        return {n: base[n] if self.fit.is_point and n in WEAK_DEFAULTS else own[n] for n in own}

    def inside(self, point: Parameters) -> Parameters:
        """The point with its weights off the boundary."""
        if self.fit.spec.n_rates == 0:
            return point
        free = [RATES.index(name) for name in self.fit.spec.propensity.free]
        w = np.exp(point.log_w)
        w[free] = np.maximum(w[free], SMALLEST_WEIGHT)
        with np.errstate(divide="ignore"):
            return replace(point, log_w=np.log(w / w.sum()))

    @cached_property
    def order_probability(self) -> float:
        """P(|a| > |α|), of the draws or of the Gaussian at a point estimate."""
        X, data = self.data.X, self.data
        if not self.fit.is_point:
            draws = self.pivoted.take_flat()
            return float(np.mean(sigma_norm(draws.a, X) > sigma_norm(draws.alpha, X)))
        blocks = self.fit.density.blocks
        z = self.local.sample(np.random.default_rng(0), 2000)
        a, alpha = np.zeros((2000, data.p)), np.zeros((2000, data.p))
        a[:, data.class_mask], alpha[:, data.selection_mask] = z[:, blocks.a], z[:, blocks.alpha]
        return float(np.mean(sigma_norm(a, X) > sigma_norm(alpha, X)))

    # The weak density -------------------------------------------------------------------------

    @cached_property
    def _spread(self) -> tuple[Array, Array]:
        mean, sd = self.data.column_moments
        return mean, np.maximum(sd, 1e-300)

    @cached_property
    def weak(self) -> LogDensity:
        """Likelihood with a weak, even-handed ridge on standardised columns.

        Of very many rows an evenly spaced part is judged: what it leaves open is wider, not other.
        """
        mean, sd = self._spread
        return weak_density(self.fit.spec, self.data.evenly(self.judged).rescaled(mean, sd))

    @cached_property
    def judged(self) -> int:
        """How many rows the weak density has: enough of all and of the marked ones."""
        n, marked = self.data.n, int(np.sum(self.data.l))
        return min(n, max(JUDGED_ROWS, n * JUDGED_LABELS // max(marked, 1)))

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
        """The maximum of the weak density next to a point on standardised columns."""
        data = self.data
        masked = replace(
            point, a=point.a * data.class_mask, alpha=point.alpha * data.selection_mask
        )
        optimum = optimise(self.weak, self.weak.pack(self.inside(masked)))
        return Peak(Role.OTHER, optimum.z, optimum.logp, self.weak.unpack(optimum.z))

    @cached_property
    def peaks(self) -> tuple[Peak, ...]:
        """Maxima of the weak density: as labelled, exchanged, and others.

        The first is the one nearest to the fit among those that the likelihood does not exclude, so
        that it depends on the fit by its naming of the factors alone, and not by its penalty. Only
        what differs from it by more than `MATERIAL` in t is listed after it.
        """
        start = self.standardised(self.point)
        climbed = self.climb_weak(start)
        if not self.fit.spec.has_selection:
            return (replace(climbed, role=Role.AS_LABELLED),)
        # Where the exchange changes nothing, the mirror image of a maximum is one too.
        swapped = [] if self.symmetric else [climbed.point.swap(), start.swap()]
        points = [*swapped, *self._searched]
        for mode in self.fit.modes:
            if mode.gap <= 15 and mode.role != "divergent":
                points.append(self.standardised(mode.point))
        found = [climbed, *(self.climb_weak(point) for point in points)]
        if self.symmetric:
            found += [self._mirrored(peak) for peak in found]
        best, X = max(p.logp for p in found), self._sampled
        near = [p for p in found if p.logp > best - NOT_EXCLUDED]
        first = min(near, key=lambda p: distance(p.point, start, X))
        # Of maxima with the same answer the highest stands for it.
        same = [p for p in near if not self.differ(p.point, first.point)]
        peaks = [replace(max(same, key=lambda p: p.logp), role=Role.AS_LABELLED)]
        for peak in sorted(found, key=lambda p: -p.logp):
            if all(self.differ(peak.point, p.point) for p in peaks):
                peaks.append(replace(peak, role=self._role(peak.point, peaks[0].point)))
        return tuple(peaks)

    @cached_property
    def contradicted(self) -> bool:
        """Whether the likelihood excludes the fit's naming of the factors and allows the other."""
        if not self.fit.spec.has_selection or self.symmetric:
            return False
        start, first = self.standardised(self.point), self.peaks[0].point
        return self.differ(start, first) and self._role(start, first) is Role.EXCHANGED

    @cached_property
    def _searched(self) -> list[Parameters]:
        """Maxima of the weak density from starts that know nothing of the fit."""
        with warnings.catch_warnings():  # about naming, which the fit has settled for itself
            warnings.simplefilter("ignore", LepuWarning)
            found = fit_map(
                self.weak.spec,
                self.weak.data.evenly(SEARCH_ROWS),  # the maxima are climbed again on all
                self.weak.priors,
                n_starts=SEARCH_STARTS,
                rng=np.random.default_rng(0),
            )
        points = [m.point for m in found.modes if m.role != "divergent"][:SEARCHED]
        return points if self.symmetric else points + [p.swap() for p in points[:1]]

    def _mirrored(self, peak: Peak) -> Peak:
        """The same maximum with the factors exchanged, where that leaves the weak density as is."""
        return Peak(Role.OTHER, self.weak.swap(peak.z), peak.logp, peak.point.swap())

    @cached_property
    def _sampled(self) -> Array:
        """Rows enough to see how far two answers are apart."""
        return self.weak.data.evenly(SEARCH_ROWS).X

    def differ(self, one: Parameters, other: Parameters) -> bool:
        """Whether two points say materially different things about t."""
        X = self._sampled
        return bool(np.sqrt(np.mean((one.t(X) - other.t(X)) ** 2)) > MATERIAL)

    def _role(self, point: Parameters, first: Parameters) -> Role:
        """Exchanged where the logistic factors change places, other elsewhere."""
        X = self._sampled
        here, there = _factors(point), _factors(first)
        swapped = distance(here.swap(), there, X) < distance(here, there, X)
        return Role.EXCHANGED if swapped else Role.OTHER


def subject_of(fit: "Fit") -> Subject:
    """The one subject of a fit, kept with it: what the checks find, others need not find again."""
    kept = vars(fit).setdefault("_subject", Subject(fit))
    assert isinstance(kept, Subject)
    return kept


def share_positive(point: Parameters, data: PUData) -> float:
    """π at a point: the mean of t over the population."""
    return float(np.average(point.t(data.X), weights=data.row_weights))


def weak_density(spec: ModelSpec, data: PUData) -> LogDensity:
    """A model's likelihood with slopes N(0, 2.5²), the rest flat or uniform."""
    priors = dict.fromkeys(SLOPES, Prior("normal", scale=WEAK_SLOPE_SCALE))
    priors |= dict.fromkeys(INTERCEPTS, Prior("flat"))
    return LogDensity(spec, data, spec.complete_priors(priors, None))


def _factors(point: Parameters) -> Parameters:
    """The two logistic factors without guesses and lapses."""
    return replace(point, log_w=np.array([-np.inf, -np.inf, 0.0]))
