"""The options of `fit` as options of the command line: same names, defaults and descriptions."""

import argparse
import csv
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, get_args

from bayes_lepu._fit import fit
from bayes_lepu.data.formulas import is_formula
from bayes_lepu.errors import ModelError
from bayes_lepu.priors.prior import Prior

# The file, --label, tables beside the rows, and what the terminal shows by itself.
NOT_OFFERED = ("X", "l", "visits", "progressbar")
HEADINGS = {  # where a group of options begins
    "model": "model",
    "y": "rows, and what is known of them",
    "class_features": "columns (names separated by commas)",
    "penalty": "priors",
    "draws": "sampler",
}
FORMS = {  # how values are written that are no words or numbers
    "class_learner": "NAMES",
    "y": "NAME",
    "sample_weight": "NAME",
    "class_prior": "VALUE,ERROR",
    "label_frequency": "VALUE,ERROR",
    "class_features": "NAMES",
    "selection_features": "NAMES",
    "exclude": "NAMES",
    "penalty": "KIND",
    "priors": "NAME=FAMILY(...)",
}
EXAMPLES = {
    "class_learner": "for example kernel,trees; or none",
    "class_prior": "for example 0.12,0.02",
    "class_features": 'or a formula, for example "~ bs(age, df=5) + sex"',
    "penalty": "for example l2, or a=l2,alpha=l1",
    "C": "for example 0.01, or a=0.01,alpha=0.1",
    "priors": 'for example "a=normal(0, 2)"; may be repeated',
}
CALL = re.compile(r"(\w+)\s*(?:\((.*)\))?$", re.DOTALL)
ENTRY = re.compile(r"^(\w[\w, ]*) : (.*)\n((?:    .*\n|\n)*)", re.MULTILINE)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for every option of `fit`; those not given are left to `fit`."""
    described = descriptions()
    group: Any = parser
    for name, parameter in inspect.signature(fit).parameters.items():
        if name in NOT_OFFERED:
            continue
        if name in HEADINGS:
            group = parser.add_argument_group(HEADINGS[name])
        kind, text = described.get(name, ("", ""))
        more = [text, EXAMPLES.get(name, "")]
        if isinstance(parameter.default, str | int | float) and parameter.default is not False:
            more.append(f"default {parameter.default}")
        how: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS}
        how["help"] = "; ".join(part for part in more if part).replace("%", "%%")
        if isinstance(parameter.default, bool):
            how["action"] = argparse.BooleanOptionalAction
        else:
            how["metavar"] = FORMS.get(name) or words_of(kind) or "NUMBER"
            types = {parameter.annotation, *get_args(parameter.annotation)}
            if name not in READERS and types & {int, float}:
                how["type"] = int if int in types else float
        if name == "priors":
            how["action"] = "append"
        group.add_argument("--" + name.replace("_", "-"), **how)


def given_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of `fit` that a command names, as `fit` takes them."""
    given = {name: vars(args)[name] for name in inspect.signature(fit).parameters if name in args}
    return {
        name: READERS[name](value) if name in READERS else value for name, value in given.items()
    }


def descriptions() -> dict[str, tuple[str, str]]:
    """Type and first sentence of every parameter in the docstring of `fit`, without markup."""
    found: dict[str, tuple[str, str]] = {}
    for names, kind, text in ENTRY.findall(inspect.cleandoc(fit.__doc__ or "") + "\n"):
        whole = " ".join(text.split()).replace("`", "")
        sentence = re.split(r"(?<=[\w)])\. ", whole)[0].rstrip(".")
        found |= dict.fromkeys(names.split(", "), (kind, sentence))
    return found


def words_of(kind: str) -> str:
    """The words that an option takes, ``{a,b}``, from its type in the docstring."""
    words = re.search(r"\{(.*?)\}", kind)
    return f"{{{','.join(re.findall(r'"([^"]+)"', words[1]))}}}" if words else ""


def split_names(text: str | None) -> list[str]:
    """Names from ``a,b,"c, d"``."""
    if text is None:
        return []
    names = next(csv.reader([text], skipinitialspace=True), [])
    return [name.strip() for name in names if name.strip()]


def columns_or_formula(text: str) -> str | list[str]:
    """Names of columns, or the formula as it is."""
    return text if is_formula(text) else split_names(text)


def _learners(text: str) -> str | list[str] | None:
    return {"auto": "auto", "none": None}.get(text, split_names(text))


def _value(text: str) -> Any:
    """A number where it is one; otherwise text, which `fit` refuses or knows."""
    try:
        return float(text)
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
    priors = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ModelError(
                f"--priors {text!r} names no parameter; NAME=FAMILY(...) is expected, such as "
                "'a=normal(0, 2)'."
            )
        priors[name.strip()] = _prior(value.strip())
    return priors


def _prior(text: str) -> Prior:
    """A family with its numbers: the scale, or the centre and the scale; or concentrations."""
    found = CALL.match(text)
    if found is None:
        raise ModelError(f"{text!r} is no prior; FAMILY(...) is expected, such as normal(0, 2).")
    family, inside = found.group(1), (found.group(2) or "").strip()
    if inside.startswith("halfnormal"):
        return Prior(family, scale=_prior(inside))
    numbers = [_number(part) for part in inside.split(",")] if inside else []
    if family in ("beta", "dirichlet"):
        return Prior(family, concentration=tuple(numbers))
    if len(numbers) > 2:
        raise ModelError(f"{text!r} has {len(numbers)} numbers; a centre and a scale are expected.")
    scale = numbers[-1] if numbers else None
    return Prior(family, scale=scale, loc=numbers[0] if len(numbers) == 2 else 0.0)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ModelError(f"{text.strip()!r} is not a number; one is expected here.") from None


READERS: dict[str, Callable[[Any], Any]] = {
    "class_learner": _learners,
    "class_prior": _several,
    "label_frequency": _several,
    "class_features": columns_or_formula,
    "selection_features": columns_or_formula,
    "exclude": split_names,
    "penalty": _several,
    "C": _several,
    "priors": read_priors,
}
