r"""What the verdict of one fit rests on: computed once, shared by checks, plots and report.

Two log densities stand behind the checks. The fit's own, with its priors. And the *weak* one: the
likelihood with slopes N(0, 2.5²) on standardised columns, flat intercepts and uniform weights, the
same for both factors. The weak density asks what the data say when no prior takes sides; its ridge
is there only because the maximum of the bare likelihood need not exist.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayes_lepu.choosing import Choice
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines.class_scale import scale_by_count
from bayes_lepu.engines.map import fit_map
from bayes_lepu.engines.modes import distance
from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.engines.pooling import known_scales
from bayes_lepu.errors import LepuWarning
from bayes_lepu.factors import RATES, Factor
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters, sigma_norm
from bayes_lepu.priors.prior import INTERCEPTS, SELECTION_SCALE, SLOPES, Prior, weak_priors
from bayes_lepu.priors.term_priors import terms_of_factors, with_blocks
from bayes_lepu.rows.factoring import solve
from bayes_lepu.verdict.bend import Bend, measure_bend
from bayes_lepu.verdict.climbing import Local, Peak, Role, logit_pi, weak_density
from bayes_lepu.verdict.columns import ColumnScores, score_columns
from bayes_lepu.verdict.forms import FormRange, form_range
from bayes_lepu.verdict.label_checks import (
    LabelCalibration,
    calibrate_labels,
    form_scores,
    label_rates,
    scores,
)
from bayes_lepu.verdict.profile import Profile, trace_profile
from bayes_lepu.verdict.records import Remedy
from bayes_lepu.verdict.remedies import weigh_remedies
from bayes_lepu.verdict.rivals import Rival, compare_rivals, ranked
from bayes_lepu.verdict.several_annotators import Agreement, agreement_of, panel_range

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

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


@dataclass(frozen=True, eq=False)
class Evidence:
    """A fit and what its verdict rests on, each part computed when it is asked for, and kept."""

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

    # What the checks judge, each computed once ----------------------------------------------------

    @cached_property
    def _scores(self) -> tuple[Array, Array]:
        return scores(self.fit)

    @cached_property
    def label_rates(self) -> pd.DataFrame:
        """Observed and expected label rate by bin of the score h."""
        return label_rates(*self._scores)

    @cached_property
    def calibration(self) -> LabelCalibration:
        """Calibrated label rate over the score h, with the band of labels simulated from h."""
        return calibrate_labels(*self._scores, self.fit.options.random_seed)

    @cached_property
    def _form_scores(self) -> tuple[Array, Array] | None:
        """Scores that the model's form can reach: a point estimate freed of its penalties."""
        freed = self.fit.is_point and not self.several
        return form_scores(self) if freed else None

    @cached_property
    def form_rates(self) -> pd.DataFrame:
        """Label rates by the h that the model's form can reach; of draws, their own h."""
        reached = self._form_scores
        return self.label_rates if reached is None else label_rates(*reached)

    @cached_property
    def form_calibration(self) -> LabelCalibration:
        """Calibration of the h that the model's form can reach; of draws, their own h."""
        reached = self._form_scores
        if reached is None:
            return self.calibration
        return calibrate_labels(*reached, self.fit.options.random_seed)

    @cached_property
    def bend(self) -> Bend | None:
        """A straight against a learned class."""
        return None if self.data.is_sparse else measure_bend(self)

    @property
    def _one_and_small(self) -> bool:
        return self.small and not self.several

    @cached_property
    def profile(self) -> Profile | None:
        """Log likelihood of the class prior, everything else at its best."""
        return trace_profile(self) if self._one_and_small else None

    @cached_property
    def rivals(self) -> tuple[Rival, ...]:
        """How well this model (first) and others predict the labels."""
        return compare_rivals(self) if self._one_and_small else ()

    @cached_property
    def columns(self) -> ColumnScores | None:
        """Whether the columns act in straight lines."""
        return score_columns(self) if self._one_and_small else None

    @cached_property
    def forms(self) -> FormRange | None:
        """The class prior over other forms that predict the labels as well."""
        if self.data.is_sparse:
            return None
        if self.several:
            return panel_range(self)
        if not self.small:
            return None
        named = () if self.columns is None else self.columns.named
        return _with_rivals(form_range(self, self.profile, named), self.fit.choice, self.bend)

    @cached_property
    def agreement(self) -> Agreement | None:
        """How often several annotators agree, observed and expected."""
        return agreement_of(self.fit) if self.several and not self.data.is_sparse else None

    @cached_property
    def remedies(self) -> tuple[Remedy, ...]:
        """What more information would change."""
        return weigh_remedies(self) if self._one_and_small else ()

    @cached_property
    def figures(self) -> pd.DataFrame | None:
        """Figures that decide nothing: value and meaning of each."""
        return None if self.data.is_sparse else table_of_figures(self, self.label_rates)


def evidence_of(fit: "Fit") -> Evidence:
    """The evidence of a fit, kept with it: what one check finds, no other finds again."""
    kept = vars(fit).setdefault("_evidence", Evidence(fit))
    assert isinstance(kept, Evidence)
    return kept


def compare_fits(fits: "Mapping[str, Fit]") -> tuple[Rival, ...]:
    """Several fits of the same labels against each other, in the order given."""
    each = {name: evidence_of(fit) for name, fit in fits.items()}
    return ranked({n: (e.weak, max(e.peaks, key=lambda p: p.logp).z) for n, e in each.items()})


def _factors(point: Parameters) -> Parameters:
    """The two logistic factors without guesses and lapses."""
    return replace(point, log_w=np.array([-np.inf, -np.inf, 0.0]))


def _with_rivals(
    found: FormRange | None, choice: Choice | None, bend: Bend | None
) -> FormRange | None:
    """The range with what other models say that predict the labels as well, or better."""
    if found is None:
        return None
    pi = [] if choice is None else [other.pi for other in choice.as_good]
    pi += [bend.pi] if bend is not None and bend.curved else []
    return replace(found, low=min([found.low, *pi]), high=max([found.high, *pi]))


# Figures --------------------------------------------------------------------------------

WIDTH_ROWS, WIDTH_DRAWS = 1000, 2000  # a mean width over more of them is the same to two digits


def table_of_figures(evidence: "Evidence", label_rates: pd.DataFrame) -> pd.DataFrame:
    """Every figure that this fit has: index figure, columns value and meaning."""
    rows: list[tuple[str, float, str]] = []
    if not evidence.several:
        sd_t, sd_s, cosine = norms_and_cosine(evidence)
        rows.append(("sd of t's predictor", sd_t, "below 3, the level of t is hard to identify"))
        if evidence.fit.spec.has_selection:
            rows.append(("sd of s's predictor", sd_s, "the same of the propensity"))
            meaning = "near 1 or -1, t and s react to the same columns"
            rows.append(("correlation of the predictors", cosine, meaning))
    rows.append(
        (
            "largest z of the label rates",
            float(label_rates["z"].abs().max()),
            "bins of h: standard errors between the observed and the fitted label rate",
        )
    )
    if not evidence.fit.is_point:
        t, h = mean_width(evidence, Parameters.t), mean_width(evidence, Parameters.h)
        meaning = "mean width of the 95 % intervals of {} over the rows"
        rows += [(f"width of {name}", width, meaning.format(name)) for name, width in
                 (("t", t), ("h", h))]  # fmt: skip
    if evidence.small and not evidence.several:
        meaning = "share of the precision of π that comes from the prior, not from the data"
        rows.append(("prior share of pi", prior_share(evidence), meaning))
    return pd.DataFrame(rows, columns=["figure", "value", "meaning"]).set_index("figure")


def norms_and_cosine(evidence: "Evidence") -> tuple[float, float, float]:
    """The sd of both linear predictors over the data, and their correlation."""
    X, point = evidence.data.X, evidence.point
    both = np.cov(point.tau(X), point.omega(X), ddof=0, aweights=evidence.data.row_weights)
    sd_t, sd_s = np.sqrt(np.diag(both)).tolist()
    if min(sd_t, sd_s) < 1e-12:
        return sd_t, sd_s, 0.0
    return sd_t, sd_s, float(both[0, 1]) / (sd_t * sd_s)


def mean_width(evidence: "Evidence", function: Callable[[Parameters, Array], Array]) -> float:
    """Mean width of the 95 % intervals of a function of x over some rows."""
    some = evidence.pivoted.take_flat().thin(WIDTH_DRAWS)
    values = function(some, evidence.data.evenly(WIDTH_ROWS).X)
    low, high = np.quantile(values, [0.025, 0.975], axis=0)
    return float(np.mean(high - low))


def prior_share(evidence: "Evidence") -> float:
    """Share of π's precision that comes from the prior, by the delta method."""
    local = evidence.local
    v = solve(local.data + local.prior, local.pi_gradient)
    return float(v @ local.prior @ v) / max(float(local.pi_gradient @ v), 1e-300)
