r"""The log posterior density as one compiled function of coordinates and `Constants`."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import carray, typeof, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from bayes_lepu.factors.curves import LOG_ROOT_2PI, log_normal_cdf
from bayes_lepu.links import Array
from bayes_lepu.rows import Point, Rows
from bayes_lepu.rows.arguments import OWN, Codes
from bayes_lepu.rows.evaluation import loglik_grad as row_loglik_grad
from bayes_lepu.rows.evaluation import loglik_grad_pair as row_loglik_grad_pair
from bayes_lepu.runtime.compilation import c_function, compiled

_jit = compiled()
_part = compiled(inline=True)


class Terms(NamedTuple):
    """The log prior density in numbers."""

    loc: Array  # of every coordinate, `priors.prior.Numbers`: the centre
    precision: Array
    rate: Array  # of Laplace priors, 0 where the prior is smooth
    nu: Array
    wall: Array  # steepness k of the wall Φ(k z) at zero, 0 where no sign is known
    is_log: NDArray[np.bool_]  # coordinates log σ with a half-normal prior on σ
    simplex: NDArray[np.intp]  # (groups, 2): first coordinate and number of coordinates
    exponents: Array  # (groups, components), of the components of each simplex


class LinearTerms(NamedTuple):
    """The terms of the full vector, each a coordinate times its scale; see `coordinates.Layout`."""

    shift: Array  # of every entry of the full vector
    place: NDArray[np.intp]  # of every term: the entry that it is added to
    at: NDArray[np.intp]  # its coordinate
    scale: NDArray[np.intp]  # the coordinate of its log σ, -1 for none
    size: Array  # σ where it is known, else 1


class Constants(NamedTuple):
    """The arguments of an evaluation besides the coordinates."""

    rows: Rows
    links: Codes
    class_rates: Array  # (3,) log rates of the class probability
    rates: Array  # (3,): 0 where a rate is free, its logarithm where it is fixed
    has_free_rates: bool
    false_marks: bool
    symmetric: bool  # whether t and s swapped have the same likelihood
    linear: LinearTerms
    log_sigma: NDArray[np.intp]  # see `coordinates.Layout.centred`
    mean: NDArray[np.intp]
    terms: Terms


@_part
def log_prior(z: Array, k: Terms, grad: Array) -> float:
    """Log prior density of the coordinates; adds its gradient to grad."""
    value = 0.0
    for j in range(z.size):
        if k.is_log[j]:  # half-normal σ, and the Jacobian of log σ
            ratio = k.precision[j] * math.exp(2.0 * z[j])
            value += z[j] - 0.5 * ratio
            grad[j] += 1.0 - ratio
            continue
        r, nu = z[j] - k.loc[j], k.nu[j]
        if nu > 0.0:
            square = k.precision[j] * r * r
            value -= 0.5 * (nu + 1.0) * math.log1p(square / nu)
            grad[j] -= (nu + 1.0) * k.precision[j] * r / (nu + square)
        else:
            value -= 0.5 * k.precision[j] * r * r + k.rate[j] * abs(r)
            grad[j] -= k.precision[j] * r + k.rate[j] * np.sign(r)
        if k.wall[j] != 0.0:
            u = k.wall[j] * z[j]
            log_side = log_normal_cdf(u)
            value += log_side
            grad[j] += k.wall[j] * math.exp(-0.5 * u * u - LOG_ROOT_2PI - log_side)
    for g in range(k.simplex.shape[0]):
        # Σ κ log w with w the softmax of the coordinates and 0.
        first, size = k.simplex[g, 0], k.simplex[g, 1]
        top, total, weight = 0.0, 0.0, 0.0
        for j in range(size):
            top = max(top, z[first + j])
        for j in range(size):
            total += math.exp(z[first + j] - top)
            weight += k.exponents[g, j]
        log_total = top + math.log(total + math.exp(-top))
        weight += k.exponents[g, size]
        value -= weight * log_total
        for j in range(size):
            value += k.exponents[g, j] * z[first + j]
            grad[first + j] += k.exponents[g, j] - weight * math.exp(z[first + j] - log_total)
    return value


@_part
def expand(z: Array, k: Constants) -> Array:
    """The full vector of the row formula."""
    terms = k.linear
    full = terms.shift.copy()
    for i in range(terms.place.size):
        scale, sigma = terms.scale[i], terms.size[i]
        sigma *= math.exp(z[scale]) if scale >= 0 else 1.0
        full[terms.place[i]] += sigma * z[terms.at[i]]
    return full


@_part
def collect(full_grad: Array, z: Array, k: Constants) -> Array:
    """The gradient in the coordinates, from the gradient in the full vector."""
    terms, grad = k.linear, np.zeros(z.size)
    for i in range(terms.place.size):
        scale, d = terms.scale[i], terms.size[i] * full_grad[terms.place[i]]
        if scale >= 0:
            d *= math.exp(z[scale])
            grad[scale] += d * z[terms.at[i]]
        grad[terms.at[i]] += d
    return grad


def python_point_of(full: Array, k: Constants) -> Point:
    """The point of the row formula with this full vector."""
    p, J = k.rows.X.shape[1], k.rows.labels.shape[0]
    own = full[p + 1 :].copy().reshape(J, p + 1 + OWN)
    rates, epsilon = np.empty((J, 3)), np.zeros(J)
    for j in range(J):
        rates[j] = k.rates
        if k.has_free_rates:  # softmax of (u, v, 0) over the rates that are free
            rates[j, 0] += own[j, p + 1]
            rates[j, 1] += own[j, p + 2]
            top = max(rates[j, 0], rates[j, 1], rates[j, 2])
            total = 0.0
            for i in range(3):
                total += math.exp(rates[j, i] - top)
            rates[j] -= top + math.log(total)
        if k.false_marks:
            epsilon[j] = 1.0 / (1.0 + math.exp(min(-own[j, p + OWN], 700.0)))
    alpha, beta = own[:, :p].copy(), own[:, p].copy()
    return Point(full[:p], full[p], k.class_rates, alpha, beta, rates, epsilon)  # type: ignore[arg-type]


point_of = _part(python_point_of)


@_part
def logp_grad(z: Array, k: Constants) -> tuple[float, Array]:
    """Log density and gradient."""
    point = point_of(expand(z, k), k)
    ll, full_grad = row_loglik_grad(k.rows, k.links, point)
    grad = collect(full_grad, z, k)
    return ll + log_prior(z, k.terms, grad), grad


@_jit
def in_order(z: Array, order: NDArray[np.intp]) -> Array:
    """The entries of z in this order."""
    out = np.empty(z.size)
    for i in range(z.size):
        out[i] = z[order[i]]
    return out


@_part
def fold(z: Array, order: NDArray[np.intp], k: Constants) -> tuple[float, Array, float, Array]:
    """Log density at θ and at S θ, each with its gradient with respect to z."""
    point, swapped = point_of(expand(z, k), k), in_order(z, order)
    if k.symmetric:  # one pass over the rows serves both
        ll, full_grad = row_loglik_grad(k.rows, k.links, point)
        grad = collect(full_grad, z, k)
        ll_s, grad_s = ll, in_order(grad, order)
    else:
        ll, full_grad, ll_s, full_grad_s = row_loglik_grad_pair(k.rows, k.links, point)
        grad, grad_s = collect(full_grad, z, k), collect(full_grad_s, swapped, k)
    here = ll + log_prior(z, k.terms, grad)
    there = ll_s + log_prior(swapped, k.terms, grad_s)
    return here, grad, there, in_order(grad_s, order)


@_part
def uncentre(v: Array, centring: Array, k: Constants) -> Array:
    """The coordinates z from those of sampling, v = c mean + σ^c z."""
    z = v.copy()
    for i in range(z.size):
        scale, mean, c = k.log_sigma[i], k.mean[i], centring[i]
        if mean >= 0:
            z[i] -= c * v[mean]
        if scale >= 0:
            z[i] *= math.exp(-c * v[scale])
    return z


@_part
def centred_grad(
    value: float, grad: Array, z: Array, centring: Array, k: Constants
) -> tuple[float, Array]:
    """Log density and gradient in the sampling coordinates, Jacobian included."""
    out = grad.copy()
    for i in range(z.size):  # what annotators share comes before what they deviate by
        scale, mean, c = k.log_sigma[i], k.mean[i], centring[i]
        if scale >= 0:
            out[i] *= math.exp(-c * z[scale])
            out[scale] -= c * (grad[i] * z[i] + 1.0)
            value -= c * z[scale]
        if mean >= 0:
            out[mean] -= c * out[i]
    return value, out


class Whitened(NamedTuple):
    """The density for a sampler, in the coordinates u of v = mean + root u.

    ``centring`` is empty if no scale is unknown, ``order`` if the density is not folded.
    """

    mean: Array
    root: Array
    centring: Array
    order: NDArray[np.intp]
    constants: Constants


@_part
def coordinates_of(u: Array, state: Whitened) -> Array:
    """The coordinates z."""
    v = state.mean.copy()
    for i in range(v.size):
        for j in range(i + 1):  # the root is lower-triangular
            v[i] += state.root[i, j] * u[j]
    return uncentre(v, state.centring, state.constants) if state.centring.size else v


@_part
def carried(value: float, grad: Array, z: Array, state: Whitened) -> tuple[float, Array]:
    """Log density and gradient in u, from those in z."""
    if state.centring.size:
        value, grad = centred_grad(value, grad, z, state.centring, state.constants)
    out = np.zeros(grad.size)
    for i in range(grad.size):
        for j in range(i + 1):
            out[j] += state.root[i, j] * grad[i]
    return value, out


@_part
def folded(here: float, grad: Array, there: float, grad_there: Array) -> tuple[float, Array]:
    """The log density p(θ) + p(Sθ) and its gradient."""
    top = max(here, there)
    total = top + math.log(math.exp(here - top) + math.exp(there - top))
    w, out = math.exp(here - total), np.empty(grad.size)
    for i in range(grad.size):
        out[i] = w * grad[i] + (1.0 - w) * grad_there[i]
    return total, out


@_part
def whitened(u: Array, state: Whitened) -> tuple[float, Array]:
    """Log density and gradient in the coordinates u."""
    z = coordinates_of(u, state)
    if state.order.size:
        here, grad, there, grad_there = fold(z, state.order, state.constants)
        value, grad = folded(here, grad, there, grad_there)
    else:
        value, grad = logp_grad(z, state.constants)
    return carried(value, grad, z, state)


# For a sampler that calls a C function ------------------------------------------------------------

NUMBERS = types.CPointer(types.float64)
C_DENSITY = types.int64(types.uint64, NUMBERS, NUMBERS, NUMBERS, types.voidptr)
C_COPY = types.int64(types.uint64, types.uint64, NUMBERS, NUMBERS, types.voidptr)


def _borrowed(context: Any, build: Any, kind: Any, value: Any) -> Any:
    """The same value with arrays that do not own their memory, so without reference counts."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, build, value)
        array.meminfo = array.meminfo.type(None)
        array.parent = array.parent.type(None)
        return array._getvalue()
    for i, part in enumerate(kind if isinstance(kind, types.BaseTuple) else ()):
        own = _borrowed(context, build, part, build.extract_value(value, i))
        value = build.insert_value(value, own, i)
    return value


@intrinsic
def store(_context, room, value):  # type: ignore[no-untyped-def]
    """Write a value to the start of an array of bytes; arrays as addresses, without contents."""

    def generate(context, build, signature, args):  # type: ignore[no-untyped-def]
        start = context.make_array(signature.args[0])(context, build, args[0]).data
        kind = signature.args[1]
        place = build.bitcast(start, context.get_value_type(kind).as_pointer())
        build.store(_borrowed(context, build, kind, args[1]), place)
        return context.get_dummy_value()

    return types.void(room, value), generate


@intrinsic
def size_of(_context, value):  # type: ignore[no-untyped-def]
    """Bytes that `store` writes."""

    def generate(context, build, signature, args):  # type: ignore[no-untyped-def]
        made = context.get_value_type(signature.args[0])
        return context.get_constant(types.int64, context.get_abi_sizeof(made))

    return types.int64(value), generate


@intrinsic
def stored(_context, address, kind):  # type: ignore[no-untyped-def]
    """The value of this type that `store` wrote there."""

    def generate(context, build, signature, args):  # type: ignore[no-untyped-def]
        made = context.get_value_type(signature.return_type)
        return build.load(build.bitcast(args[0], made.as_pointer()))

    return kind.instance_type(address, kind), generate


@_jit
def written(state: Whitened) -> NDArray[np.uint8]:
    """A state as bytes for a C function; they contain addresses of its arrays."""
    room = np.zeros(size_of(state), dtype=np.uint8)
    store(room, state)
    return room


def c_density(like: Whitened) -> Any:
    """`whitened` as a C function of (size, u, gradient, value, address of a state like this one).

    It returns 0, or another number where the density or its gradient is not finite.
    """
    kind = typeof(like)

    def density(size, u, gradient, value, state):  # type: ignore[no-untyped-def]
        out = carray(gradient, (size,))
        found, grad = whitened(carray(u, (size,)), stored(state, KIND))  # type: ignore[name-defined] # noqa: F821
        carray(value, (1,))[0] = found
        wrong = 0 if math.isfinite(found) else 1
        for i in range(size):
            out[i] = grad[i]
            wrong |= 0 if math.isfinite(grad[i]) else 1
        return wrong

    return c_function(C_DENSITY, density, str(kind), KIND=kind)


def c_copy() -> Any:
    """C function that copies its second array to its third one."""

    def copy(size, _, numbers, out, state):  # type: ignore[no-untyped-def]
        for i in range(size):
            out[i] = numbers[i]
        return 0

    return c_function(C_COPY, copy, "copy")
