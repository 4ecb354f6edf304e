"""The options of `fit` as options of the command line: same names, defaults and descriptions."""

import argparse
import csv
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, get_args

from bayes_lepu._fit import fit
from bayes_lepu.data.formulas import is_formula
from bayes_lepu.errors import ModelError
from bayes_lepu.priors.prior import Prior

# Arguments of `fit` without an option: the table, --label, tables of visits, and the progress bar.
NOT_OFFERED = ("X", "l", "visits", "progressbar")
HEADINGS = {  # where a group of options begins
    "model": "model",
    "y": "rows, and what is known of them",
    "class_features": "columns (names separated by commas)",
    "penalty": "priors",
    "draws": "sampler",
}
CALL = re.compile(r"(\w+)\s*(?:\((.*)\))?$", re.DOTALL)
ENTRY = re.compile(r"^(\w[\w, ]*) : (.*)\n((?:    .*\n|\n)*)", re.MULTILINE)


def split_names(text: str | None) -> list[str]:
    """Names from ``a,b,"c, d"``."""
    names = next(csv.reader([text or ""], skipinitialspace=True), [])
    return [name.strip() for name in names if name.strip()]


def _columns_or_formula(text: str) -> str | list[str]:
    return text if is_formula(text) else split_names(text)


def _learners(text: str) -> str | list[str] | None:
    return {"auto": "auto", "none": None}.get(text, split_names(text))


def _value(text: str) -> Any:
    """The text as a number if possible (``12%`` is .12); otherwise as text, which `fit` checks."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return text.strip()


def _several(text: str) -> Any:
    """One value, several (``0.12,0.02``), or one for each name (``a=l2,alpha=l1``)."""
    parts = text.split(",")
    if "=" in text:
        return {name.strip(): _value(value) for name, _, value in (p.partition("=") for p in parts)}
    return tuple(map(_value, parts)) if parts[1:] else _value(text)


def read_priors(texts: Sequence[str]) -> dict[str, Prior]:
    """Priors by name from ``a=normal(0, 2)``, ``c=beta(1, 9)``, ``alpha=normal(halfnormal(1))``."""
    parts = {name.strip(): prior for name, _, prior in (text.partition("=") for text in texts)}
    return {name: _prior(text.strip()) for name, text in parts.items()}


def _prior(text: str) -> Prior:
    """A prior from its family and numbers: scale, or centre and scale, or concentrations."""
    found = CALL.match(text)
    family, inside = (found[1], (found[2] or "").strip()) if found else ("", "")
    if inside.startswith("halfnormal"):
        return Prior(family, scale=_prior(inside))
    numbers = [_value(part) for part in inside.split(",")] if inside else []
    concentrations = family in ("beta", "dirichlet")
    if not family or str in map(type, numbers) or (len(numbers) > 2 and not concentrations):
        raise ModelError(
            f"{text!r} is no prior; NAME=FAMILY(scale) or NAME=FAMILY(centre, scale) is expected, "
            "such as a=normal(0, 2)."
        )
    if concentrations:
        return Prior(family, concentration=tuple(numbers))
    scale = numbers[-1] if numbers else None
    return Prior(family, scale=scale, loc=numbers[0] if len(numbers) == 2 else 0.0)


class Written(NamedTuple):
    """The syntax of an option that takes more than a word or a number."""

    form: str
    read: Callable[[Any], Any] = str
    example: str = ""


WRITTEN = {
    "class_learner": Written("NAMES", _learners, "for example kernel,trees; or none"),
    "y": Written("NAME"),
    "sample_weight": Written("NAME"),
    "class_prior": Written("VALUE,ERROR", _several, "for example 0.12,0.02"),
    "label_frequency": Written("VALUE,ERROR", _several),
    "class_features": Written(
        "NAMES", _columns_or_formula, 'or a formula, for example "~ bs(age, df=5) + sex"'
    ),
    "selection_features": Written("NAMES", _columns_or_formula),
    "exclude": Written("NAMES", split_names),
    "penalty": Written("KIND", _several, "for example l2, or a=l2,alpha=l1"),
    "C": Written("NUMBER", _several, "for example 0.01, or a=0.01,alpha=0.1"),
    "priors": Written(
        "NAME=FAMILY(...)", read_priors, 'for example "a=normal(0, 2)"; may be repeated'
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for every option of `fit`; for those not given, `fit` has the defaults."""
    described = descriptions()
    group: Any = parser
    for name, parameter in inspect.signature(fit).parameters.items():
        if name in NOT_OFFERED:
            continue
        if name in HEADINGS:
            group = parser.add_argument_group(HEADINGS[name])
        kind, text = described.get(name, ("", ""))
        written = WRITTEN.get(name, Written(words_of(kind) or "NUMBER"))
        more = [text, written.example]
        if isinstance(parameter.default, str | int | float) and parameter.default is not False:
            more.append(f"default {parameter.default}")
        how: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS}
        how["help"] = "; ".join(part for part in more if part).replace("%", "%%")
        if isinstance(parameter.default, bool):
            how["action"] = argparse.BooleanOptionalAction
        else:
            how["metavar"] = written.form
            types = {parameter.annotation, *get_args(parameter.annotation)}
            if name not in WRITTEN and types & {int, float}:
                how["type"] = int if int in types else float
        if name == "priors":
            how["action"] = "append"
        group.add_argument("--" + name.replace("_", "-"), **how)


def given_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options that a command gives, as arguments of `fit`."""
    given = {name: vars(args)[name] for name in inspect.signature(fit).parameters if name in args}
    return {name: WRITTEN[name].read(v) if name in WRITTEN else v for name, v in given.items()}


def descriptions() -> dict[str, tuple[str, str]]:
    """Type and first sentence of every parameter in the docstring of `fit`, without markup."""
    found: dict[str, tuple[str, str]] = {}
    for names, kind, text in ENTRY.findall(inspect.cleandoc(fit.__doc__ or "") + "\n"):
        whole = " ".join(text.split()).replace("`", "")
        sentence = re.split(r"(?<=[\w)])\. ", whole)[0].rstrip(".")
        found |= dict.fromkeys(names.split(", "), (kind, sentence))
    return found


def words_of(kind: str) -> str:
    """The values that an option accepts, ``{a,b}``, from its type in the docstring."""
    words = re.search(r"\{(.*?)\}", kind)
    return f"{{{','.join(re.findall(r'"([^"]+)"', words[1]))}}}" if words else ""
