"""Find what a JavaScript module imports, and write other names in their place."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from belem.runtime.project.tokens import Kind, Token, tokenize

__all__ = ["Import", "find_imports", "rename_imports"]


@dataclass(frozen=True, slots=True)
class Import:
    """An import, or a re-export, whose specifier is written out.

    `start` and `end` are where the specifier is, with its quotes; `attributes_end` is where the
    import's `with {…}` ends, or `end` if it has none.
    """

    specifier: str
    start: int
    end: int
    attributes_end: int


_CANDIDATE = re.compile(r"\b(?:import|from)\b")
_CLAUSE = frozenset("{},*")
# A candidate may be followed by a parenthesis, the specifier and its attributes; a few hundred
# characters hold that, and what is beyond the last candidate need not be read.
_BEYOND = 4096


def find_imports(source: str) -> tuple[Import, ...]:
    """Return the imports of a module in the order in which they are written."""
    candidates = [match.end() for match in _CANDIDATE.finditer(source)]
    if not candidates:
        return ()
    tokens: list[Token] = []
    for token in tokenize(source):
        if token.start > candidates[-1] + _BEYOND:
            break
        tokens.append(token)
    found: list[Import] = []
    for index, token in enumerate(tokens):
        if (
            token.kind is Kind.NAME
            and token.text in ("import", "export")
            and not _is_member(tokens, index)
        ):
            at = _specifier(tokens, index)
            if at is not None:
                found.append(_import(tokens, at))
    return tuple(found)


def rename_imports(source: str, imports: Iterable[Import], names: Mapping[str, str]) -> str:
    """Write new specifiers, by the old ones, and drop the attributes of what is renamed."""
    parts: list[str] = []
    position = 0
    for found in imports:
        name = names.get(found.specifier)
        if name is not None:
            quoted = name.replace("\\", "\\\\").replace('"', '\\"')
            parts += [source[position : found.start], f'"{quoted}"']
            position = found.attributes_end
    return "".join([*parts, source[position:]]) if parts else source


def _is_member(tokens: list[Token], index: int) -> bool:
    """Say whether the word is a property (`a.import`), where it means nothing."""
    return index > 0 and tokens[index - 1].text in (".", "?")


def _specifier(tokens: list[Token], index: int) -> int | None:
    """Return the index of the string that the import or export at `index` names, if any."""
    word, place = tokens[index].text, index + 1
    if place >= len(tokens):
        return None
    if word == "import":
        if tokens[place].kind is Kind.STRING:
            return place
        if tokens[place].text == "(":
            return _argument(tokens, place + 1)
    elif tokens[place].text not in ("*", "{"):
        return None
    while place + 1 < len(tokens):
        token, after = tokens[place], tokens[place + 1]
        if token.text == "from" and after.kind is Kind.STRING and tokens[place - 1].text != "{":
            return place + 1
        if token.kind not in (Kind.NAME, Kind.STRING) and token.text not in _CLAUSE:
            return None
        if word == "export" and token.text == "}" and after.text != "from":
            return None
        place += 1
    return None


def _argument(tokens: list[Token], place: int) -> int | None:
    """Return the index of a dynamic import's specifier, if it is a plain string."""
    if place + 1 < len(tokens) and tokens[place].kind is Kind.STRING:
        return place if tokens[place + 1].text in (")", ",") else None
    return None


def _import(tokens: list[Token], at: int) -> Import:
    token = tokens[at]
    end = token.end
    if (
        at + 2 < len(tokens)
        and tokens[at + 1].text in ("with", "assert", ",")
        and tokens[at + 2].text == "{"
    ):
        depth = 0
        for after in tokens[at + 2 :]:
            depth += (after.text == "{") - (after.text == "}")
            if depth == 0:
                end = after.end
                break
    return Import(token.text[1:-1], token.start, token.end, end)
