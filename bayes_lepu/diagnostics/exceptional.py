r"""Distance to the sets on which the parameters are not determined by h.

Geometry alone misleads (a = α to three digits is harmless in a large sample), so the distance is a
difference of log likelihood: how much of it is lost by putting the fit on the set. Where that is
little, the second solution of `twins` is named with its class prior.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.diagnostics import thresholds, twins
from bayes_lepu.diagnostics.climbing import climb, linear
from bayes_lepu.diagnostics.records import Aspect, Check, not_computed
from bayes_lepu.diagnostics.subject import MATERIAL, Subject, share_positive, weak_density
from bayes_lepu.diagnostics.thresholds import grade, graded
from bayes_lepu.diagnostics.twins import Twin
from bayes_lepu.inference.optimizers import optimise
from bayes_lepu.inference.search import constant_starts
from bayes_lepu.links import Array
from bayes_lepu.models import get_model
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.result.numbers_in_words import UNITS, worse

if TYPE_CHECKING:
    from bayes_lepu.diagnostics.evidence import Evidence

NEARLY = 2.0  # a point with a second solution is preferred to the best within this much
NEVER = -30.0  # log(γ/ρ) that stands for γ = 0


@dataclass(frozen=True)
class ExceptionalSet:
    """A set on which the parameters are not determined by h.

    Attributes
    ----------
    name : str
    held : str
        What a fit on the set is held to, in words.
    remedy : str
    no_twin : str
        What is said near it where no second solution is at hand.
    bears_on, needs, consequence
        Of its check.
    """

    name: str
    held: str
    remedy: str
    no_twin: str = "There is no second solution there, but the estimates are unstable."
    bears_on: tuple[Aspect, ...] = (Aspect.LEVEL,)
    needs: Literal["weak", "passed"] | None = "passed"
    consequence: str = ""


NAME_A_COLUMN = "Name a column that enters only one factor, audit rows (y=), or fit model='spm'."
A_ZERO = ExceptionalSet(
    "a = 0",
    "a t that is the same for all rows (a = 0)",
    "t does not vary detectably: fit model='scar' or 'spm', or bring columns that separate the "
    "classes.",
    consequence="these data do not show that t varies with x at all",
)
A_ALPHA = ExceptionalSet("a = alpha", "equal slopes of t and s (a = α)", NAME_A_COLUMN)
A_MINUS_ALPHA = ExceptionalSet("a = -alpha", "opposite slopes of t and s (a = -α)", NAME_A_COLUMN)
S_CONSTANT = ExceptionalSet(
    "s constant",
    "an s that is the same for all rows",
    "Fit model='scar' (or 'spm', which identifies a constant s): inside PsychM the level of t is "
    "then free.",
)
GAMMA_ZERO = ExceptionalSet(
    "gamma = 0",
    "an annotator who never guesses (γ = 0)",
    "Without visible guesses the factors exchange freely: name a column that enters only one of "
    "them, or audit rows (y=).",
    "Without guesses, what sets the factors apart are their columns alone.",
    bears_on=(),
    needs=None,
)
ONE_FACTOR = ExceptionalSet(
    "one factor = 1",
    "one factor equal to 1",
    "The slopes of a factor this close to 1 are not estimable and its level is open: fit "
    "model='naive' or 'scar', or audit unlabelled rows (y=).",
    "The data cannot tell one of the factors from 1.",
)
BOTH_ZERO = ExceptionalSet(
    "a = alpha = 0",
    "a t and an s that are the same for all rows",
    "h does not vary detectably with x: nothing but E h can be learned.",
    bears_on=(Aspect.RANKING,),
    needs=None,
    consequence="these data do not show that h varies with x at all",
)
FIXED_POINT = ExceptionalSet(
    "(a, b) = (alpha, beta)",
    "equal factors t = s",
    "The two factors coincide: name a column that enters only one.",
    needs=None,
)
SCAR_REMEDY = "c may be 1: compare with model='naive', or audit unlabelled rows (y=)."


@dataclass(frozen=True, eq=False)
class Nearest:
    """The best point of one exceptional set.

    Attributes
    ----------
    of : ExceptionalSet
    distance : float
        How far the weak log likelihood lies below its maximum.
    freed : int
        How many parameters the model has beyond the set.
    point : Parameters
        On standardised columns.
    twins : list of Twin
        Second solutions with the same h as ``point``.
    """

    of: ExceptionalSet
    distance: float
    freed: int
    point: Parameters
    twins: list[Twin]

    @property
    def name(self) -> str:
        """The name of the set."""
        return self.of.name


def nearest_points(subject: Subject) -> list[Nearest]:
    """The best point of every exceptional set of the model, with its second solutions."""
    spec = subject.fit.spec
    if spec.exchangeable and spec.n_rates == 2:
        finders: list[Callable[[Subject], Nearest]] = [
            _a_zero,
            _a_alpha,
            _a_minus_alpha,
            _s_constant,
            _one_factor,
        ]
        if subject.data.swap_symmetric:  # else columns or audited rows tell the factors apart
            finders.insert(4, _gamma_zero)
    elif spec.symmetric:
        finders = [_both_zero, _fixed_point, _one_factor]
    elif spec.constant:
        finders = [_one_factor]
    else:
        finders = []
    return [find(subject) for find in finders]


NOT_COMPUTED = not_computed("exceptional sets", bears_on=(Aspect.LEVEL,), needs="passed")


def check_exceptional(subject: Subject, evidence: "Evidence") -> list[Check]:
    """One record for every exceptional set."""
    checks = {found.of: _check(subject, found) for found in nearest_points(subject)}
    # Where s may be constant as well, the data are those of SCAR: one factor varies, and which of
    # the two it is stays a question of naming. Where s does vary, t may not vary at all.
    if S_CONSTANT in checks and checks[S_CONSTANT].status == "passed" and A_ZERO in checks:
        both = (Aspect.RANKING, Aspect.LEVEL)
        checks[A_ZERO] = replace(checks[A_ZERO], bears_on=both)
    return list(checks.values())


def _check(subject: Subject, found: Nearest) -> Check:
    data, kind = subject.weak.data, found.of
    bounds = thresholds.nested_gap(found.freed)
    own = share_positive(found.point, data)
    text = f"Held to {kind.held}, the fit is {worse(found.distance)}."
    if grade(found.distance, bounds) != "passed":
        if found.twins:
            twin = max(found.twins, key=lambda w: abs(share_positive(w.point, data) - own))
            text += (
                " On it a second solution has the same h "
                f"(to {twin.difference(found.point, data.X):.0e}): {twin.name}, "
                f"π {share_positive(twin.point, data):.2f} instead of {own:.2f}."
            )
        else:
            text += f" {kind.no_twin}"
    return graded(
        f"set {kind.name}",
        found.distance,
        bounds,
        text,
        SCAR_REMEDY if subject.fit.spec.constant else kind.remedy,
        threshold=f"{UNITS}, {{}}",
        bears_on=kind.bears_on,
        needs=kind.needs,
        consequence=kind.consequence,
    )


# The sets ------------------------------------------------------------------------------------


def _distance(subject: Subject, logp: float) -> float:
    return max(max(p.logp for p in subject.peaks) - logp, 0.0)


def _find(
    subject: Subject,
    of: ExceptionalSet,
    E: Array,
    offset: Array,
    starts: list[Array],
    formula: Callable[[Parameters], list[Twin]],
) -> Nearest:
    """The best maximum on z = E w + offset, or one nearly as good that has a second solution."""
    objective = linear(subject.weak, E, offset)
    found = []
    for start in starts:
        w, value = climb(objective, start)
        point = subject.weak.unpack(E @ w + offset)
        value = -np.inf if np.isnan(value) else value
        found.append((value, point, formula(point)))
    best = max(value for value, _, _ in found)
    close = [f for f in found if f[0] >= best - NEARLY]
    data = subject.weak.data

    def preference(candidate: tuple[float, Parameters, list[Twin]]) -> tuple[bool, bool, float]:
        value, point, solutions = candidate
        own = share_positive(point, data)
        shifts = [abs(share_positive(s.point, data) - own) for s in solutions]
        return bool(solutions), max(shifts, default=0.0) > MATERIAL, value

    value, point, solutions = max(close, key=preference)
    freed = subject.weak.dim - E.shape[1]
    return Nearest(of, _distance(subject, value), freed, point, solutions)


def _start(subject: Subject) -> Array:
    return subject.weak.pack(subject.inside(subject.peaks[0].point))


def _a_zero(subject: Subject) -> Nearest:
    blocks, dim, z = subject.weak.blocks, subject.weak.dim, _start(subject)
    E = np.delete(np.eye(dim), np.r_[blocks.a], axis=1)
    keep = np.delete(np.arange(dim), np.r_[blocks.a])
    starts = [z[keep]]
    if subject.foldable:
        starts.append(subject.weak.swap(z)[keep])
    return _find(subject, A_ZERO, E, np.zeros(dim), starts, twins.class_zero)


def _rest(density: LogDensity) -> NDArray[np.intp]:
    """Coordinates other than slopes and intercepts: of rates, false marks and log C."""
    b = density.blocks
    return np.setdiff1d(np.arange(density.dim), np.r_[b.a, b.b, b.alpha, b.beta])


def _tied(subject: Subject, sign: float) -> tuple[Array, list[Array]]:
    """Map from slopes, b, β and all that is no factor's own, with α = ± a, and starts."""
    density, data, z = subject.weak, subject.data, _start(subject)
    blocks, common = density.blocks, data.class_mask & data.selection_mask
    k = int(common.sum())
    rest = _rest(density)
    E = np.zeros((density.dim, k + 2 + rest.size))
    E[np.r_[blocks.a][common[data.class_mask]], np.arange(k)] = 1.0
    E[np.r_[blocks.alpha][common[data.selection_mask]], np.arange(k)] = sign
    E[blocks.b, k], E[blocks.beta, k + 1] = 1.0, 1.0
    E[rest, k + 2 + np.arange(rest.size)] = 1.0
    point = subject.peaks[0].point
    levels = np.concatenate([z[blocks.b], z[blocks.beta], z[rest]])
    slopes = [point.a, sign * point.alpha, 0.5 * (point.a + sign * point.alpha)]
    starts = [np.concatenate([s[common], levels]) for s in slopes]
    # With equal slopes and equal intercepts the gradient cannot tell the factors apart, and the
    # branches of the set differ in b - β (a = α) or b + β (a = -α).
    apart = np.zeros(k + 2 + rest.size)
    apart[k : k + 2] = 1.0, -sign
    return E, [s + step * apart for s in starts for step in (0.0, 1.0, -1.0)]


def _a_alpha(subject: Subject) -> Nearest:
    E, starts = _tied(subject, 1.0)
    return _find(subject, A_ALPHA, E, np.zeros(len(E)), starts, twins.parallel)


def _a_minus_alpha(subject: Subject) -> Nearest:
    E, starts = _tied(subject, -1.0)
    return _find(subject, A_MINUS_ALPHA, E, np.zeros(len(E)), starts, twins.opposite)


def _gamma_zero(subject: Subject) -> Nearest:
    density, z = subject.weak, _start(subject)
    u = density.blocks.rates.start
    E = np.delete(np.eye(density.dim), u, axis=1)
    offset = np.zeros(density.dim)
    offset[u] = NEVER
    formula = twins.exchanged if subject.foldable else _none
    return _find(subject, GAMMA_ZERO, E, offset, [np.delete(z, u)], formula)


def _s_constant(subject: Subject) -> Nearest:
    """α = 0 and γ + λ = 1 give the same h: the SCAR model."""
    point, logp = scar_peak(subject)
    allowed = np.array_equal(subject.data.class_mask, subject.data.selection_mask)
    found = twins.constant_propensity(point.a, float(point.b), float(point.gamma))
    freed = subject.weak.dim - (int(subject.data.class_mask.sum()) + 2)
    return Nearest(S_CONSTANT, _distance(subject, logp), freed, point, found if allowed else [])


def _one_factor(subject: Subject) -> Nearest:
    """One factor equal to 1: logistic regression of l on the columns of the other."""
    data = subject.weak.data
    masks = [data.class_mask]
    if subject.foldable or subject.fit.spec.has_selection:
        masks.append(data.selection_mask)
    found = []
    for mask in masks:
        density = weak_density(get_model("naive"), data.with_masks(mask, data.selection_mask))
        optimum = optimise(density, np.zeros(density.dim))
        found.append((optimum.logp, density.unpack(optimum.z)))
    logp, point = max(found, key=lambda pair: pair[0])
    freed = subject.weak.dim - int(np.count_nonzero(point.a)) - 1
    return Nearest(ONE_FACTOR, _distance(subject, logp), freed, point, [])


def scar_peak(subject: Subject, data: PUData | None = None) -> tuple[Parameters, float]:
    """Best point and value of SCAR under the weak density's ridge, here or on other labels."""
    data = subject.weak.data if data is None else data
    density = weak_density(get_model("scar"), data)
    starts = [density.pack(p) for p in constant_starts(data)]
    best = max((optimise(density, z) for z in starts), key=lambda o: o.logp)
    return density.unpack(best.z), best.logp


def _both_zero(subject: Subject) -> Nearest:
    density, z = subject.weak, _start(subject)
    levels = np.r_[density.blocks.b, density.blocks.beta, _rest(density)]
    E = np.eye(density.dim)[:, levels]
    return _find(subject, BOTH_ZERO, E, np.zeros(density.dim), [z[levels]], twins.both_zero)


def _fixed_point(subject: Subject) -> Nearest:
    """The swap's fixed point (a, b) = (α, β): identified, but only at the rate N^(-1/4)."""
    E, starts = _tied(subject, 1.0)
    k = int((subject.data.class_mask & subject.data.selection_mask).sum())
    E = np.column_stack([E[:, :k], E[:, k] + E[:, k + 1], E[:, k + 2 :]])
    joined = [np.r_[s[:k], 0.5 * (s[k] + s[k + 1]), s[k + 2 :]] for s in starts[::3]]
    found = _find(subject, FIXED_POINT, E, np.zeros(len(E)), joined, _none)
    return replace(found, twins=[])


def _none(_: Parameters) -> list[Twin]:
    return []
