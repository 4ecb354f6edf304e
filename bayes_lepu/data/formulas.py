r"""Formulas for the two factors: ``"~ bs(amount, df=5) + country + (1 | merchant)"``.

.. math:: \tau = b + \sum_k a_k f_k(x)

The terms of both formulas become columns :math:`f_k(x)` of one matrix; each factor uses the columns
of its own formula. formulaic evaluates the formulas; the state that it learns (knots, moments)
consists of plain numbers and can be saved. Group terms and unseen levels are handled here. Formulas
are also read from saved files, so only the functions in `FUNCTIONS` may be called, on columns and
numbers.
"""

import ast
import json
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, update_wrapper
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.suggestions import did_you_mean, some

SPLINES = ("bs", "cr")
SIMPLE = ("log", "log2", "log10", "log1p", "exp", "sqrt", "abs")
FUNCTIONS = (*SPLINES, "poly", *SIMPLE, "center", "scale", "C", "I")
MOST = 200  # columns of a spline or polynomial, entries of a list: more than labels can support
# As many terms as formulaic reads in a second; it expands all products first.
MOST_TERMS, MOST_TEXT, MOST_NODES = 3000, 50_000, 1000
MOST_NUMBER = 1e100  # which no unit of measurement needs, and whose digits cost nothing
GROUP = re.compile(r"\(\s*1\s*\|\s*(\w+|`[^`]+`)\s*\)")
SPLINE = re.compile(r"\b(bs|cr)\(")
ARGUMENT = "value"  # of a spline whose own argument is left out
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.UAdd, ast.USub)
PARTS = (ast.Expression, ast.Call, ast.keyword, ast.BinOp, ast.UnaryOp, ast.List, ast.Tuple)
NODES = (*PARTS, *OPERATORS, ast.Name, ast.Load, ast.Constant)
Terms = dict[str, tuple[tuple[str, ...], tuple[str, ...]]]  # columns and variables by term


@dataclass(frozen=True)
class Design:
    """The columns of two formulas, for the class and for the propensity, of any rows."""

    formulas: tuple[str, str]  # the right-hand sides without group terms
    groups: tuple[tuple[str, ...], tuple[str, ...]]  # whose levels have intercepts of their own
    state: str = "{}"  # what the functions learned, by term: numbers as JSON
    # Each term with its columns and the user's columns in it.
    terms: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = ()
    owned: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())  # the columns of each factor

    @property
    def blocks(self) -> tuple[str, ...]:
        """Terms whose coefficients share a scale of their own: splines and group intercepts."""
        return tuple(term for term, _, _ in self.terms if is_group(term) or SPLINE.search(term))

    @property
    def variables(self) -> tuple[str, ...]:
        """The user's columns that the formulas need."""
        used = [v for text in self.formulas for _, variables in _read(text) for v in variables]
        return tuple(dict.fromkeys([*used, *self.groups[0], *self.groups[1]]))

    @property
    def by_level(self) -> frozenset[str]:
        """The user's columns that are used by their levels: groups, and columns inside C()."""
        inside = [n for text in self.formulas for n in IN_LEVELS.findall(as_identifiers(text))]
        return frozenset({*self.groups[0], *self.groups[1], *map(column_name, inside)})

    @property
    def _learned(self) -> dict[str, Any]:
        def with_numbers(learned: dict[str, Any]) -> dict[Any, Any]:
            """Powers of polynomials are keys."""
            return {int(key) if key.isdecimal() else key: v for key, v in learned.items()}

        return dict(json.loads(self.state, object_hook=with_numbers))

    def curve(self, term: str, count: int) -> tuple[Array, Array] | None:
        """A grid over the argument of a spline and the columns there; None for other terms."""
        found = spline_argument(term)
        state = self._learned.get(as_identifiers(term))
        if found is None or state is None:
            return None
        x = np.linspace(state["lower_bound"], state["upper_bound"], count)
        same = found[1]  # with a plain argument
        columns = _columns(same, pd.DataFrame({ARGUMENT: x}), {same: state})[0]
        return x, np.column_stack(list(columns.values()))

    def argument(self, term: str, columns: Array) -> Array | None:
        """The argument of a spline in rows with these columns; None for other terms.

        A straight line is a spline, so the argument is a linear combination of the columns.
        """
        curve = self.curve(term, 1000)
        if curve is None:
            return None
        x, along = curve
        weights = np.linalg.lstsq(np.column_stack([np.ones(x.size), along]), x, rcond=None)[0]
        return weights[0] + columns @ weights[1:]

    def evaluate(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns for rows without missing cells, categories with their training levels."""
        state = self._learned
        columns: dict[str, Array] = {}
        for text, groups in zip(self.formulas, self.groups, strict=True):
            columns |= _columns(text, frame, state, groups)[0]
        return pd.DataFrame(columns, index=frame.index)


def is_group(term: str) -> bool:
    """Whether a term is that of group intercepts."""
    return term.startswith("1 | ")


def is_interaction(term: str) -> bool:
    """Whether a term is a product of several, such as ``night:log(amount)``."""
    return ":" in re.sub("`[^`]*`", "", term)


INVERSES: dict[str, Callable[[Array], Array]] = {
    "log": np.exp,
    "log2": np.exp2,
    "log10": lambda values: 10.0**values,
    "log1p": np.expm1,
    "sqrt": np.square,
}


def inverse_of(term: str) -> tuple[str, Callable[[Array], Array]]:
    """The argument of a term and the inverse function; the term itself if it has no inverse.

    >>> inverse_of("log(amount)")[0], inverse_of("amount")[0]
    ('amount', 'amount')
    """
    found = re.fullmatch(rf"({'|'.join(INVERSES)})\((\w+|`[^`]+`)\)", term)
    return (found[2].strip("`"), INVERSES[found[1]]) if found else (term, np.asarray)


def spline_argument(term: str) -> tuple[str, str] | None:
    """The argument of a spline, and the same spline of a plain column; None for other terms.

    >>> spline_argument("bs(log(amount), df=4)")
    ('log(amount)', 'bs(value, df=4)')
    """
    try:
        call = ast.parse(as_identifiers(term), mode="eval").body
    except SyntaxError:
        return None  # an interaction, or a group
    if not isinstance(call, ast.Call) or getattr(call.func, "id", "") not in SPLINES:
        return None
    of = as_quoted(ast.unparse(call.args[0]))
    call.args[0] = ast.Name(ARGUMENT)
    return of, ast.unparse(call)


def is_formula(features: Any) -> bool:
    """Whether ``class_features`` or ``selection_features`` is a formula, not a list of columns."""
    return isinstance(features, str) and "~" in QUOTED.sub("", features)


def read_design(class_features: Any, selection_features: Any) -> Design | None:
    """The two formulas, checked; None where neither factor has one.

    A list of columns becomes the sum of them. A factor without a formula gets that of the other.
    """
    if not (is_formula(class_features) or is_formula(selection_features)):
        return None
    of_class = "class_features", class_features
    of_selection = "selection_features", selection_features
    both = (
        of_selection if class_features is None else of_class,
        of_class if selection_features is None else of_selection,
    )
    (one, its), (other, others) = (_fixed_and_groups(*given) for given in both)
    design = Design((one, other), (its, others))
    if not design.variables:
        raise DataError("The formulas name no column; one is expected, such as '~ log(amount)'.")
    return design


def _fixed_and_groups(option: str, given: Any) -> tuple[str, tuple[str, ...]]:
    """A formula without its group terms, and the columns of these."""
    text = given if is_formula(given) else _sum_of(option, given)
    cut = QUOTED.sub(lambda found: "_" * len(found[0]), text).rfind("~")
    left, right = text[:cut].strip(), text[cut + 1 :]
    if left:
        raise DataError(
            f"{option}={text!r} has a left-hand side; the label is given to fit itself, "
            f"fit(df, {left!r}, ...), and {option}='~{right}'."
        )
    groups = tuple(name.strip("`") for name in GROUP.findall(right))
    fixed = GROUP.sub("", right).strip()
    if groups:  # what joined the group terms to the others goes with them
        fixed = re.sub(r"\+\s*(?=\+|$)|^\s*\+", "", fixed).strip() or "1"
    if "1" not in dict(_read(fixed, option=option)):
        raise DataError(
            f"{option}={text!r} leaves out the intercept (by 0 or -1), which belongs to the "
            "model and not to the formula. Leave that term out."
        )
    return fixed, groups


def _sum_of(option: str, columns: Any) -> str:
    """The formula of a list of columns."""
    if isinstance(columns, str):
        raise DataError(f"{option}={columns!r} is a single value; pass a list: [{columns!r}].")
    columns = list(columns)
    if not all(isinstance(name, str) for name in columns):
        raise DataError(
            f"{option} is {columns!r}; names of columns are expected where the other factor has a "
            "formula."
        )
    return "~ " + " + ".join(["1", *(f"`{name}`" for name in columns)])


def learn_design(design: Design, frame: pd.DataFrame) -> Design:
    """The design with the knots, moments and levels learned from these rows."""
    state: dict[str, Any] = {}
    terms: Terms = {}
    owned = []
    for text, groups in zip(design.formulas, design.groups, strict=True):
        found, of_terms, learned = _columns(text, frame, state, groups)
        state |= learned
        owned.append(tuple(found))
        for term, (own, variables) in of_terms.items():  # the coding of two formulas may differ
            before = terms[term][0] if term in terms else ()
            terms[term] = (tuple(dict.fromkeys((*before, *own))), variables)
    return replace(
        design,
        state=json.dumps(state, default=lambda values: values.tolist()),
        terms=tuple((term, *rest) for term, rest in terms.items()),
        owned=(owned[0], owned[1]),
    )


def _read(text: str, *, option: str = "formula") -> list[tuple[str, tuple[str, ...]]]:
    """The terms of a formula with the user's columns in each; only arithmetic is accepted."""
    from formulaic import Formula
    from formulaic.errors import FormulaicError
    from formulaic.parser import DefaultFormulaParser

    if len(text) > MOST_TEXT:
        raise DataError(
            f"{option} is a formula of {len(text)} characters; up to {MOST_TEXT} are expected."
        )
    plain = as_identifiers(text)
    try:
        if _most_terms(DefaultFormulaParser().get_ast(plain)) > MOST_TERMS:
            raise DataError(
                f"{option}={text[:300]!r} expands into more than {MOST_TERMS} terms by its powers "
                "and products. Write fewer of them, or a list of columns."
            )
        terms = list(Formula(plain))
        if not all(hasattr(term, "factors") for term in terms):
            raise SyntaxError("it has several parts")
        return [(as_quoted(str(term)), _variables(term, option)) for term in terms]
    except (FormulaicError, SyntaxError, RecursionError) as error:
        raise DataError(
            f"{option}={text[:300]!r} is not a formula: {_plain(error)}. Write "
            "terms joined by +, such as '~ bs(amount, df=5) + country + (1 | merchant)'."
        ) from None


def _variables(term: Any, option: str) -> tuple[str, ...]:
    """The user's columns in a term of formulaic's."""
    found: list[str] = []
    for factor in term.factors:
        kind = factor.eval_method.value
        if kind != "literal":
            found += [factor.expr] if kind == "lookup" else _names(factor.expr, option)
    return tuple(dict.fromkeys(map(column_name, found)))


def _most_terms(tree: Any) -> float:
    """Upper bound of the number of terms that a formula is expanded into."""
    nodes = [tree]
    for node in nodes:  # from the whole to its parts; a long sum is deeper than a stack
        nodes += [part for part in getattr(node, "args", ()) if hasattr(part, "args")]
    most: dict[int, float] = {}
    for node in reversed(nodes):
        parts = [most.get(id(part), 1.0) for part in getattr(node, "args", ())]
        symbol = node.operator.symbol if parts else ""
        if symbol in ("**", "^"):
            power = str(node.args[1])
            fits = power.isdigit() and len(power) < 3  # "99" and less
            most[id(node)] = parts[0] ** int(power) if fits else np.inf
        elif symbol in ("+", "-", "~"):
            most[id(node)] = sum(parts)
        else:
            most[id(node)] = min(float(np.prod([1 + part for part in parts])), 1e99)
    return most[id(tree)]


def _names(code: str, option: str) -> list[str]:
    """The columns in an expression, or an error that names what may not be there."""
    try:
        tree = ast.parse(code, mode="eval")
    except SyntaxError:
        raise DataError(f"{option}: {as_quoted(code)!r} is no expression of columns.") from None
    code, nodes = as_quoted(code)[:300], list(ast.walk(tree))
    if len(nodes) > MOST_NODES:
        raise SyntaxError(f"a term has more than {MOST_NODES} parts")
    called = {node.func for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if not isinstance(node, NODES):
            raise DataError(
                f"{option}: {code!r} uses {type(node).__name__.lower()}; columns, numbers, "
                f"arithmetic and the functions {', '.join(FUNCTIONS)} are expected (log, not "
                "np.log)."
            )
    for node in nodes:
        if isinstance(node, ast.Call):
            _check_call(node, code, option)
        if isinstance(node, ast.BinOp | ast.UnaryOp) and not _computes(node):
            raise DataError(
                f"{option}: {ast.unparse(node)[:100]} in {code!r}; columns and numbers below "
                f"{MOST_NUMBER:g} are expected there, and powers of columns."
            )
        if isinstance(node, ast.List | ast.Tuple) and len(node.elts) > MOST:
            raise DataError(f"{option}: a list of {len(node.elts)} in {code!r}; up to {MOST} fit.")
    return [n.id for n in nodes if isinstance(n, ast.Name) and n not in called]


def _check_call(call: ast.Call, code: str, option: str) -> None:
    """Refuse unknown functions, and splines of too many columns."""
    name = getattr(call.func, "id", "")
    if name not in FUNCTIONS:
        raise DataError(
            f"{option}: {name!r} in {code!r} is not a function of formulas."
            f"{did_you_mean(name, FUNCTIONS)} Known: {', '.join(FUNCTIONS)}."
        )
    if name in (*SPLINES, "poly"):
        sizes = [*call.args[1:], *(k.value for k in call.keywords if k.arg in ("df", "degree"))]
        for size in sizes:
            if getattr(size, "value", None) not in range(1, MOST + 1):
                raise DataError(
                    f"{option}: {ast.unparse(size)} in {code!r}; a whole number from 1 to {MOST} "
                    "is expected."
                )


def _computes(node: ast.BinOp | ast.UnaryOp) -> bool:
    """Whether an expression is arithmetic of columns and numbers, and cheap.

    Python computes expressions of integers exactly. Sums and products of short numbers are short,
    but powers can have any number of digits and are refused.
    """
    sides = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
    values = [side.value for side in sides if isinstance(side, ast.Constant)]
    plain = all(isinstance(v, int | float) and abs(v) < MOST_NUMBER for v in values)
    if not plain or any(isinstance(side, ast.List | ast.Tuple) for side in sides):
        return False
    power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
    return not power or any(isinstance(part, ast.Name) for part in ast.walk(node))


def _columns(
    text: str,
    frame: pd.DataFrame,
    state: Mapping[str, Any],
    groups: Sequence[str] = (),
) -> tuple[dict[str, Array], Terms, dict[str, Any]]:
    """The columns of a factor, the columns and variables of each term, and what was learned.

    A group has one column per level and no reference level; for an unseen level all are 0, which is
    the average group.
    """
    from formulaic import Formula, ModelSpec
    from formulaic.errors import FormulaicError

    variables, plain = dict(_read(text)), as_identifiers(text)
    spec = ModelSpec(formula=Formula(plain), transform_state=dict(state), na_action="raise")
    try:
        with np.errstate(all="ignore"):
            renamed = frame.rename(columns=_identifier)
            matrix = spec.get_model_matrix(renamed, context=_functions())
            values = np.asarray(matrix, dtype=float)
    except (FormulaicError, ValueError) as error:
        raise DataError(f"The formula {text!r} cannot be evaluated: {_plain(error)}") from None
    learned, names = matrix.model_spec, [as_quoted(name) for name in matrix.columns]
    columns = {name: values[:, j] for j, name in enumerate(names) if name != "Intercept"}
    of_terms = {as_quoted(str(term)): places for term, places in learned.term_slices.items()}
    terms: Terms = {
        term: (tuple(names[places]), variables[term])
        for term, places in of_terms.items()
        if term != "1"
    }
    if bad := [name for name, column in columns.items() if not np.isfinite(column).all()]:
        raise DataError(
            f"The formula gives no finite number in some rows of {some(bad)}; the logarithm of 0 "
            "or of a negative number is none. Use log1p(x), or correct the values."
        )
    for group in groups:
        names = [f"{group}={level}" for level in frame[group].cat.categories]
        columns |= dict(
            zip(names, pd.get_dummies(frame[group], dtype=float).to_numpy().T, strict=True)
        )
        terms[f"1 | {group}"] = tuple(names), (group,)
    return columns, terms, dict(learned.transform_state)


@cache
def _functions() -> dict[str, Callable[..., Any]]:
    """Functions that formulaic does not know, and its splines, constant beyond their range."""
    from formulaic.transforms import TRANSFORMS

    def clipped(spline: Callable[..., Any]) -> Callable[..., Any]:
        def spline_within(x: Any, *sizes: Any, **how: Any) -> Any:
            return spline(x, *sizes, **{"extrapolation": "clip", **how})

        return update_wrapper(spline_within, spline)

    splines = {name: clipped(TRANSFORMS[name]) for name in SPLINES}
    return {"log1p": np.log1p, "sqrt": np.sqrt, **splines}


def _plain(error: Exception) -> str:
    """An error message of formulaic in one line, without its colours."""
    return as_quoted(" ".join(re.sub("\x1b\\[[0-9;]*m|[⧛⧚]", "", str(error)).split()))[:300]


# formulaic takes `a b` and `a.b` for the same column where its functions learn; identifiers differ.
QUOTED = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"")
IDENTIFIER = re.compile(r"\bcolumn_((?:[0-9a-f]{2})+)_\b")
IN_LEVELS = re.compile(r"\bC\(\s*(\w+)\s*[,)]")


def as_identifiers(text: str) -> str:
    """The formula with the names in backticks replaced by identifiers."""
    return QUOTED.sub(lambda f: _identifier(f[0][1:-1]) if f[0][0] == "`" else f[0], text)


def _identifier(name: str) -> str:
    """A name that Python can read, the same where it can read this one."""
    if name.isidentifier() and not keyword.iskeyword(name) and name not in FUNCTIONS:
        return name
    return f"column_{name.encode().hex()}_"


def as_quoted(text: str) -> str:
    """Inverse of `as_identifiers` for any text; a text that is a single name gets no backticks."""
    if IDENTIFIER.fullmatch(text):
        return column_name(text)
    return IDENTIFIER.sub(lambda found: f"`{column_name(found[0])}`", text)


def column_name(identifier: str) -> str:
    """The name behind an identifier."""
    found = IDENTIFIER.fullmatch(identifier)
    return bytes.fromhex(found[1]).decode(errors="replace") if found else identifier
