r"""Formulas for the two factors: ``"~ bs(amount, df=5) + country + (1 | merchant)"``.

.. math:: \tau = b + \sum_k a_k f_k(x)

The terms of both formulas are written side by side as columns :math:`f_k(x)`; each factor owns
those of its own formula. Formulas are read by formulaic. Measured against formulae (Bambi's
parser): what formulaic learns (knots, moments) is plain numbers, which can be saved and checked,
where formulae keeps live objects; it has `log` of its own; and it refuses to extend splines, which
formulae continues to values of a million. Group terms, which it does not read, and levels of new
rows, which it takes for the reference, are treated here.

Only the functions in `FUNCTIONS` may be called, because a formula also comes out of saved files.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.suggestions import did_you_mean, some

SPLINES = ("bs", "cr", "cc")
SIMPLE = ("log", "log2", "log10", "log1p", "exp", "sqrt", "abs")
MORE = {"log1p": np.log1p, "sqrt": np.sqrt}  # which formulaic does not know
FUNCTIONS = (*SPLINES, "poly", *SIMPLE, "center", "scale", "C", "I")
HIGHEST = 10  # power
MOST = 200  # columns of a spline or polynomial
GROUP = re.compile(r"\(\s*1\s*\|\s*(\w+|`[^`]+`)\s*\)")
SPLINE = re.compile(r"\b(bs|cr|cc)\(")
PLAIN_SPLINE = re.compile(r"(bs|cr|cc)\((\w+)(?:,[^()]*)?\)")
# Outside the range of the training rows a spline keeps its value at the end of the range.
CLIP = ", extrapolation='clip'"
NODES = (
    ast.Expression,
    ast.Call,
    ast.Name,
    ast.Load,
    ast.Constant,
    ast.keyword,
    ast.BinOp,
    ast.UnaryOp,
    ast.operator,
    ast.unaryop,
    ast.List,
    ast.Tuple,
)


@dataclass(frozen=True)
class Design:
    """What is needed to write the columns of two formulas for any rows.

    Attributes
    ----------
    formulas : tuple of str
        The right-hand sides for the class and for the propensity, without group terms.
    groups : tuple of tuple of str
        The columns whose levels have intercepts of their own, for each factor.
    state : tuple
        What the functions learned, by term: numbers and lists of numbers.
    terms : tuple of (str, tuple of str, tuple of str)
        Each term with its columns and the user's columns in it.
    means : tuple of float
        Means of the columns over the training rows, which stand in for levels nobody has seen.
    """

    formulas: tuple[str, str]
    groups: tuple[tuple[str, ...], tuple[str, ...]]
    state: tuple[Any, ...] = ()
    terms: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = ()
    means: tuple[float, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(name for _, names, _ in self.terms for name in names)

    @property
    def blocks(self) -> tuple[str, ...]:
        """Terms whose coefficients share a scale of their own: splines and group intercepts."""
        return tuple(term for term, _, _ in self.terms if is_group(term) or SPLINE.search(term))

    @property
    def variables(self) -> tuple[str, ...]:
        """The user's columns that the formulas need."""
        used = [v for text in self.formulas for _, variables in _read(text) for v in variables]
        return tuple(dict.fromkeys([*used, *self.groups[0], *self.groups[1]]))

    def curve(self, term: str, count: int) -> tuple[Array, Array] | None:
        """Values along the one column of a spline and its columns there; None for other terms."""
        found = PLAIN_SPLINE.fullmatch(term)
        state = _unpack(self.state)
        if found is None or (bounds := state.get(_clipped(term))) is None:
            return None
        x = np.linspace(bounds["lower_bound"], bounds["upper_bound"], count)
        columns = _columns(term, pd.DataFrame({found.group(2): x}), state)[0]
        names = next(names for known, names, _ in self.terms if known == term)
        return x, np.column_stack([columns[name] for name in names])

    def evaluate(self, frame: pd.DataFrame) -> Array:
        """The columns for rows without missing cells, categories with their training levels."""
        state = _unpack(self.state)
        columns: dict[str, Array] = {}
        for text, groups in zip(self.formulas, self.groups, strict=True):
            columns |= _columns(text, frame, state)[0] | _group_columns(groups, frame)
        return np.column_stack([columns[name] for name in self.names])


def is_group(term: str) -> bool:
    """Whether a term is that of group intercepts."""
    return term.startswith("1 | ")


def read_design(class_formula: str | None, selection_formula: str | None) -> Design:
    """The two formulas, checked; the one that is not given is the other one."""
    texts, groups = [], []
    for option, text in (
        ("class_formula", class_formula or selection_formula),
        ("selection_formula", selection_formula or class_formula),
    ):
        if not isinstance(text, str):
            raise DataError(f"{option} is {text!r}; text such as '~ log(amount)' is expected.")
        cut = _without_names(text).rfind("~")
        left, right = text[: max(cut, 0)], text[cut + 1 :]
        if left.strip():
            raise DataError(
                f"{option}={text!r} has a left-hand side; the label is given to fit itself: "
                f"fit(df, {left.strip()!r}, {option}='~{right}')."
            )
        found = [name.strip("`") for name in GROUP.findall(right)]
        fixed = GROUP.sub("", right).strip()
        if found:  # what joined the group terms to the others goes with them
            fixed = re.sub(r"\+\s*(?=\+|$)|^\s*\+", "", fixed).strip() or "1"
        _read(fixed, option=option)
        texts.append(fixed)
        groups.append(tuple(found))
    design = Design((texts[0], texts[1]), (groups[0], groups[1]))
    if not design.variables:
        raise DataError("The formulas name no column; one is expected, such as '~ log(amount)'.")
    return design


def _without_names(text: str) -> str:
    """A text of the same length in which names in backticks have no operators."""
    return re.sub("`[^`]*`", lambda name: "x" * len(name[0]), text)


def learn_design(design: Design, frame: pd.DataFrame) -> tuple[Design, list[list[bool]]]:
    """What the functions learn from these rows, and which columns belong to which factor."""
    state: dict[str, Any] = {}
    columns: dict[str, Array] = {}
    terms: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    owned = []
    for text, groups in zip(design.formulas, design.groups, strict=True):
        found, of_terms, learned = _columns(text, frame, state)
        state |= learned
        of_groups = _group_columns(groups, frame)
        of_terms |= {f"1 | {g}": (tuple(_group_columns((g,), frame)), (g,)) for g in groups}
        owned.append({*found, *of_groups})
        columns |= found | of_groups
        terms |= of_terms
    if not all(owned):
        raise DataError("A formula has no column; name at least one, such as '~ log(amount)'.")
    kept = tuple((term, *rest) for term, rest in terms.items())
    names = [name for _, of_term, _ in kept for name in of_term]
    means = tuple(float(columns[name].mean()) for name in names)
    made = Design(design.formulas, design.groups, _pack(state), kept, means)
    return made, [[name in one for name in names] for one in owned]


def _read(text: str, *, option: str = "formula") -> list[tuple[str, tuple[str, ...]]]:
    """The terms of a formula and the user's columns in each; anything but arithmetic is refused."""
    formulaic = _formulaic()
    _refuse_powers(text, option)
    try:
        terms = list(formulaic.Formula(text))
        if not all(hasattr(term, "factors") for term in terms):
            raise SyntaxError("it has several parts")
    except (formulaic.errors.FormulaicError, SyntaxError, RecursionError) as error:
        raise DataError(
            f"{option}={text!r} is not a formula: {_plain(error)}. Write "
            "terms joined by +, such as '~ bs(amount, df=5) + country + (1 | merchant)'."
        ) from None
    found = []
    for term in terms:
        variables: dict[str, None] = {}
        for factor in term.factors:
            kind = factor.eval_method.value
            if kind == "lookup":
                variables[factor.expr] = None
            elif kind == "python":
                variables |= dict.fromkeys(_names(factor.expr, option))
        found.append((str(term), tuple(variables)))
    return found


def _refuse_powers(text: str, option: str) -> None:
    """Refuse what could take for ever: powers of powers, and powers beyond any use."""
    powers = re.findall(r"(?:\*\*|\^)(-?[\w.]*)(\*\*|\^)?", re.sub(r"\s", "", text))
    for exponent, another in powers:
        number = re.fullmatch(r"-?\d*\.?\d+", exponent) and float(exponent)
        if another or number is None or number > HIGHEST:
            raise DataError(
                f"{option}: the power {exponent!r} in {text!r}; a number up to {HIGHEST} is "
                "expected."
            )


def _names(code: str, option: str) -> list[str]:
    """The columns in an expression, or an error that names what may not be there."""
    try:
        tree = ast.parse(code, mode="eval")
    except SyntaxError:
        raise DataError(f"{option}: {code!r} is no expression of columns.") from None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {node.func for node in calls}
    for node in ast.walk(tree):
        if not isinstance(node, NODES):
            raise DataError(
                f"{option}: {code!r} uses {type(node).__name__.lower()}; columns, numbers, "
                f"arithmetic and the functions {', '.join(FUNCTIONS)} are expected (log, not "
                "np.log)."
            )
    for function in called:
        name = getattr(function, "id", "")
        if name not in FUNCTIONS:
            raise DataError(
                f"{option}: {name!r} in {code!r} is not a function of formulas."
                f"{did_you_mean(name, FUNCTIONS)} Known: {', '.join(FUNCTIONS)}."
            )
    for call in (c for c in calls if getattr(c.func, "id", "") in (*SPLINES, "poly")):
        sizes = [*call.args[1:], *(k.value for k in call.keywords if k.arg in ("df", "degree"))]
        for size in sizes:
            if isinstance(size, ast.Constant) and not _is_size(size.value):
                raise DataError(
                    f"{option}: {size.value!r} in {code!r}; a whole number from 1 to {MOST} is "
                    "expected."
                )
    return [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n not in called]


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST


def _columns(
    text: str, frame: pd.DataFrame, state: Mapping[str, Any]
) -> tuple[dict[str, Array], dict[str, tuple[tuple[str, ...], tuple[str, ...]]], dict[str, Any]]:
    """The columns of a formula, those of each term, and what was learned."""
    formulaic = _formulaic()
    variables = dict(_read(text))
    spec = formulaic.ModelSpec(
        formula=formulaic.Formula(_clipped(text)), transform_state=dict(state), na_action="raise"
    )
    try:
        with np.errstate(all="ignore"):
            matrix = spec.get_model_matrix(frame, context=MORE)
            values = np.asarray(matrix, dtype=float)
    except (formulaic.errors.FormulaicError, ValueError) as error:
        raise DataError(f"The formula {text!r} cannot be evaluated: {_plain(error)}") from None
    learned = matrix.model_spec
    columns: dict[str, Array] = {}
    terms: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    names = [name.replace(CLIP, "") for name in matrix.columns]
    for term, places in learned.term_slices.items():
        name = str(term).replace(CLIP, "")
        if name == "1":
            continue
        of_term = names[places]
        terms[name] = (tuple(of_term), variables[name])
        columns |= {
            n: values[:, j] for n, j in zip(of_term, range(len(names))[places], strict=True)
        }
    bad = [name for name, column in columns.items() if not np.isfinite(column).all()]
    if bad:
        raise DataError(
            f"The formula gives no finite number in some rows of {some(bad)}; the logarithm of 0 "
            "or of a negative number is none. Use log1p(x), or correct the values."
        )
    return columns, terms, dict(learned.transform_state)


def _plain(error: Exception) -> str:
    """What formulaic says, in one line and without its colours."""
    return " ".join(re.sub("\x1b\\[[0-9;]*m|[⧛⧚]", "", str(error)).split())[:300]


def _group_columns(groups: tuple[str, ...], frame: pd.DataFrame) -> dict[str, Array]:
    """One column per level, without a reference: a level nobody has seen is an average group."""
    return {
        f"{group}={level}": (frame[group] == level).to_numpy(dtype=float)
        for group in groups
        for level in frame[group].cat.categories
    }


def _clipped(text: str) -> str:
    """The same formula with splines that keep their value outside the range."""
    return re.sub(r"\b(bs|cr|cc)\(([^()]*)\)", _with_clip, text)


def _with_clip(found: re.Match[str]) -> str:
    inside = found.group(2)
    return found.group(0) if "extrapolation" in inside else f"{found.group(1)}({inside}{CLIP})"


def _pack(value: Any) -> Any:
    """Nested tuples from what was learned: hashable, and what JSON gives back."""
    if isinstance(value, Mapping):
        return ("dict", *((key, _pack(v)) for key, v in value.items()))
    if isinstance(value, list | tuple | np.ndarray):
        return ("list", *(_pack(v) for v in value))
    return value.item() if hasattr(value, "item") else value


def _unpack(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    kind, *parts = value or ("dict",)
    return {k: _unpack(v) for k, v in parts} if kind == "dict" else [_unpack(v) for v in parts]


def _formulaic() -> Any:
    try:
        import formulaic
        import formulaic.errors
    except ImportError:
        raise DataError(
            "Formulas need formulaic. Install it: pip install 'bayes-lepu[formulas]'."
        ) from None
    return formulaic
