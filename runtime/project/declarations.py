"""Read from a handler's TypeScript which bindings it expects in `env`.

A handler file without a config still says what it needs: `interface Env { AI: Ai; CACHE:
KVNamespace }`. The declarations are read as tokens, so comments and strings cannot be mistaken for
them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from belem.runtime.project.tokens import Kind, Token, tokenize

__all__ = ["Member", "read_env"]

_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_OPENERS, _CLOSERS = frozenset(_CLOSING), frozenset(_CLOSING.values())


@dataclass(frozen=True, slots=True)
class Member:
    """A member of `Env`: its name, and what its type is called (`KVNamespace`, `any`)."""

    name: str
    type: str


def read_env(source: str) -> tuple[Member, ...]:
    """Return the members of the type that the handler's `env` has, in the order they are declared.

    That type is called `Env` or `Cloudflare.Env`, or whatever `ExportedHandler<…>` or a parameter
    `env: …` of the file is given; interfaces that it extends and types that it joins with `&` count
    too.
    """
    tokens = list(tokenize(source))
    declared = _declarations(tokens)
    members: dict[str, Member] = {}
    for name in _env_names(tokens):
        for member in _members_of(name, declared, set()):
            members.setdefault(member.name, member)
    for body in _inline(tokens):
        for member in _read_members(body):
            members.setdefault(member.name, member)
    return tuple(members.values())


@dataclass(slots=True)
class _Declaration:
    parents: list[str]
    members: list[Member]


def _declarations(tokens: list[Token]) -> dict[str, _Declaration]:
    """Return every interface and object type by name; interfaces of one name merge."""
    found: dict[str, _Declaration] = {}
    for index, token in enumerate(tokens[:-2]):
        name = tokens[index + 1]
        if token.kind is not Kind.NAME or name.kind is not Kind.NAME or _follows_dot(tokens, index):
            continue
        if token.text == "interface":
            header = _header(tokens, index + 2, "{")
        elif token.text == "type":
            header = _header(tokens, index + 2, "=")
        else:
            continue
        if header is None:
            continue
        declaration = found.setdefault(name.text, _Declaration([], []))
        if token.text == "interface":
            declaration.parents += [part.text for part in header.skipped if part.kind is Kind.NAME]
            declaration.members += _read_members(_body(tokens, header.end))
        else:
            _read_type(tokens, header.end + 1, declaration)
    return found


@dataclass(frozen=True, slots=True)
class _Header:
    skipped: list[Token]
    end: int


def _header(tokens: list[Token], start: int, until: str) -> _Header | None:
    """Return what is between a declared name and its body, without type parameters."""
    skipped: list[Token] = []
    depth = 0
    for index in range(start, min(start + 400, len(tokens))):
        token = tokens[index]
        if depth == 0 and token.text == until:
            return _Header(skipped, index)
        depth += (token.text == "<") - (token.text == ">")
        if depth == 0:
            if token.kind is not Kind.NAME and token.text not in (",", ".", ">"):
                return None
            skipped.append(token)
    return None


def _read_type(tokens: list[Token], start: int, declaration: _Declaration) -> None:
    """Read `A & { … } & B`: the parts that are objects, and the names of the others."""
    index = start
    while index < len(tokens):
        token = tokens[index]
        if token.text == "{":
            body = _body(tokens, index)
            declaration.members += _read_members(body)
            index += len(body) + 2
        elif token.kind is Kind.NAME:
            declaration.parents.append(token.text)
            index += 1
            while index + 1 < len(tokens) and tokens[index].text == ".":
                declaration.parents.append(tokens[index + 1].text)
                index += 2
        elif token.text in ("&", "("):
            index += 1
            continue
        else:
            return
        if index >= len(tokens) or tokens[index].text != "&":
            return


def _body(tokens: list[Token], start: int) -> list[Token]:
    """Return the tokens inside the brackets that open at `start`."""
    depth = 0
    for index in range(start, len(tokens)):
        text = tokens[index].text
        depth += (text in _OPENERS) - (text in _CLOSERS)
        if depth == 0:
            return tokens[start + 1 : index]
    return []


def _read_members(body: list[Token]) -> list[Member]:
    """Read `name?: Type;` and its like from the tokens of an object type."""
    members: list[Member] = []
    for part in _split(body):
        words = (
            part[1:]
            if len(part) > 2 and part[0].text == "readonly" and part[1].text != ":"
            else part
        )
        if len(words) < 3 or words[0].kind not in (Kind.NAME, Kind.STRING):
            continue
        name = words[0].text.strip("\"'")
        rest = words[2:] if words[1].text == "?" else words[1:]
        if rest and rest[0].text == ":":
            members.append(Member(name, _type_name(rest[1:])))
    return members


def _split(body: list[Token]) -> Iterator[list[Token]]:
    """Split members at `;` and `,`, and where a new line starts with a name and a colon."""
    part: list[Token] = []
    depth = 0
    for index, token in enumerate(body):
        if depth == 0 and token.text in (";", ","):
            yield part
            part = []
            continue
        if depth == 0 and len(part) > 2 and _starts_member(body, index):
            yield part
            part = []
        depth += (token.text in _OPENERS) - (token.text in _CLOSERS)
        part.append(token)
    yield part


def _starts_member(body: list[Token], index: int) -> bool:
    token, before = body[index], body[index - 1]
    if token.kind not in (Kind.NAME, Kind.STRING) or before.text in (
        ":",
        "|",
        "&",
        ".",
        "=>",
        "readonly",
    ):
        return False
    if token.text == "readonly" and index + 2 < len(body) and body[index + 1].kind is Kind.NAME:
        return True
    after = [follower.text for follower in body[index + 1 : index + 3]]
    return after[:1] == [":"] or after == ["?", ":"]


def _type_name(tokens: list[Token]) -> str:
    """Return what a type is called: `Cloudflare.KVNamespace<K> | undefined` is a `KVNamespace`."""
    index = 0
    while index < len(tokens) and tokens[index].text in ("|", "&", "("):
        index += 1
    if index < len(tokens) and tokens[index].text == "import":
        while index < len(tokens) and tokens[index].text != ")":
            index += 1
        index += 2
    while index + 2 < len(tokens) and tokens[index + 1].text == ".":
        index += 2
    if (
        index < len(tokens)
        and tokens[index].text in ("undefined", "null")
        and index + 2 < len(tokens)
    ):
        return _type_name(tokens[index + 1 :])
    return tokens[index].text if index < len(tokens) else ""


def _env_names(tokens: list[Token]) -> list[str]:
    """Return what the type of `env` may be called in this file, `Env` first."""
    names = ["Env"]
    for index, token in enumerate(tokens[:-2]):
        after = [follower.text for follower in tokens[index + 1 : index + 3]]
        handler = token.text == "ExportedHandler" and after[0] == "<"
        parameter = token.text in ("env", "_env", "Bindings") and after[0] == ":"
        if (handler or parameter) and tokens[index + 2].kind is Kind.NAME:
            names.append(after[1])
    return names


def _inline(tokens: list[Token]) -> Iterator[list[Token]]:
    """Yield types written in place: `env: { … }` of a parameter, `Hono<{ Bindings: { … } }>`."""
    for index, token in enumerate(tokens[:-2]):
        if index == 0 or tokens[index + 1].text != ":" or tokens[index + 2].text != "{":
            continue
        body = _body(tokens, index + 2)
        after = tokens[index + 4 + len(body) :][:1]
        before = tokens[index - 1].text
        # Elsewhere the same words are a property and its value.
        parameter = token.text == "env" and before == "," and after and after[0].text in (",", ")")
        argument = token.text == "Bindings" and before == "{" and tokens[index - 2].text == "<"
        if parameter or argument:
            yield body


def _members_of(name: str, declared: dict[str, _Declaration], seen: set[str]) -> Iterator[Member]:
    declaration = declared.get(name)
    if declaration is None or name in seen:
        return
    seen.add(name)
    yield from declaration.members
    for parent in declaration.parents:
        yield from _members_of(parent, declared, seen)


def _follows_dot(tokens: list[Token], index: int) -> bool:
    return index > 0 and tokens[index - 1].text == "."
