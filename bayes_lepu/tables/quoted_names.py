"""Names in backticks inside the functions of a formula: ``log(`Cl.thickness`)``.

Python cannot read such names. formulaic makes identifiers of them, but the same of `a b` and `a.b`,
whose splines would then share their knots. Here every name has an identifier of its own, from
which the name follows.
"""

import re

QUOTED = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"")
CALL = re.compile(r"\w\(|\{")
IDENTIFIER = re.compile(r"\bcolumn_((?:[0-9a-f]{2})+)_\b")


def as_identifiers(text: str) -> str:
    """The same formula with identifiers for the names in backticks inside its functions."""
    bare = without_quotes(text)
    inside = [range(call.end(), closing(text, call.end())) for call in CALL.finditer(bare)]

    def rename(found: re.Match[str]) -> str:
        quoted = found[0]
        if quoted[0] != "`" or not any(found.start() in span for span in inside):
            return quoted
        return f"column_{quoted[1:-1].encode().hex()}_"

    return QUOTED.sub(rename, text)


def as_quoted(text: str) -> str:
    """The same text with the names in backticks again."""
    return IDENTIFIER.sub(lambda found: f"`{_name(found)}`", text)


def names_of_identifiers(text: str) -> dict[str, str]:
    """The names behind the identifiers in a text."""
    return {found[0]: _name(found) for found in IDENTIFIER.finditer(text)}


def closing(text: str, begin: int) -> int:
    """Where the bracket that is open at ``begin`` is closed."""
    bare, depth = without_quotes(text), 1
    for place in range(begin, len(bare)):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(bare[place], 0)
        if depth == 0:
            return place
    return len(text)


def _name(found: re.Match[str]) -> str:
    return bytes.fromhex(found[1]).decode(errors="replace")


def without_quotes(text: str) -> str:
    """A text of the same length in which nothing in quotes is an operator or a bracket."""
    return QUOTED.sub(lambda found: "_" * len(found[0]), text)
