r"""Docstrings are numpydoc, the pages are Markdown: what has to be said differently.

* ``.. math:: x`` becomes ``$$x$$`` and ``:math:`x``` becomes ``$x$``.
* ``model : {"naive", "scar"}`` loses its braces: Griffe would print the first choice as the
  default, where the signature knows the real one.
* A function that `takes_options` decorates is shown with the signature that it has when it runs.
"""

import inspect
import re
import textwrap
from typing import Any

from griffe import Extension, Parameter, ParameterKind, Parameters

import bayes_lepu

INLINE = re.compile(r":math:`([^`]+)`", re.DOTALL)
BLOCK = re.compile(r"^( *)\.\. math::[ ]?(.*\n(?:(?:\1 +.*)?\n)*)", re.MULTILINE)
CHOICES = re.compile(r"^( *[\w, ]+ : )\{([^}\n]+)\}", re.MULTILINE)


def to_markdown(text: str) -> str:
    """The text with its formulas between dollar signs and its choices without braces."""

    def block(match: re.Match[str]) -> str:
        formulas = textwrap.dedent(match[2].lstrip("\n")).strip()
        parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n", formulas)]
        return "".join(f"{match[1]}\n{match[1]}$${part}$$\n" for part in parts) + "\n"

    text = BLOCK.sub(block, text + "\n").rstrip("\n")
    text = INLINE.sub(lambda m: f"${' '.join(m[1].split())}$", text)
    return CHOICES.sub(r"\1one of \2", text)


class Docstrings(Extension):
    """Applies `to_markdown` to every docstring."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called by Griffe for every object it has read."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)

    def on_function_instance(self, *, func: Any, **_: Any) -> None:
        """Called for every function: those that share the options of `fit` get their names."""
        if any("takes_options" in str(one.value) for one in func.decorators):
            given = inspect.signature(getattr(bayes_lepu, func.name)).parameters.values()
            func.parameters = Parameters(*map(_parameter, given))


def _parameter(given: inspect.Parameter) -> Parameter:
    default = None if given.default is given.empty else repr(given.default)
    kind = ParameterKind[given.kind.name.lower()]
    return Parameter(given.name, annotation=None, kind=kind, default=default)
