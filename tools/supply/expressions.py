"""Licence expressions of SPDX: names, joined by AND and OR, with parentheses and exceptions (WITH).

AND binds closer than OR. A name with its exception counts as one name.
"""

import re
from collections import deque
from collections.abc import Container
from typing import TypeAlias

_TOKEN = re.compile(r"[()]|[^\s()]+")
_WORDS = frozenset({"AND", "OR", "WITH", "(", ")"})
# A name, or AND or OR with what it joins.
Tree: TypeAlias = "str | tuple[str, tuple[Tree, ...]]"


def parsed(expression: str) -> Tree:
    """ValueError for what is no expression."""
    tokens = deque(_TOKEN.findall(expression))
    tree = _joined(tokens, "OR")
    if tokens:
        raise ValueError(f"{expression!r} does not end where a licence ends")
    return tree


def holds(expression: str, allowed: Container[str]) -> bool:
    """Of alternatives one must be allowed, of those that hold together all."""
    return _holds(parsed(expression), allowed)


def names_in(expression: str) -> frozenset[str]:
    return _names(parsed(expression))


def all_of(expressions: list[str]) -> str:
    """One expression that asks for each of them; empty for none."""
    if len(expressions) == 1:
        return expressions[0]
    return " AND ".join(f"({one})" if parsed(one)[0] == "OR" else one for one in expressions)


def _joined(tokens: deque[str], word: str) -> Tree:
    parts = [_part(tokens, word)]
    while tokens and tokens[0] == word:
        tokens.popleft()
        parts.append(_part(tokens, word))
    return parts[0] if len(parts) == 1 else (word, tuple(parts))


def _part(tokens: deque[str], word: str) -> Tree:
    return _joined(tokens, "AND") if word == "OR" else _one(tokens)


def _one(tokens: deque[str]) -> Tree:
    if tokens and tokens[0] == "(":
        tokens.popleft()
        inner = _joined(tokens, "OR")
        if not tokens or tokens.popleft() != ")":
            raise ValueError("a parenthesis is not closed")
        return inner
    name = _name(tokens)
    if tokens and tokens[0] == "WITH":
        tokens.popleft()
        name = f"{name} WITH {_name(tokens)}"
    return name


def _name(tokens: deque[str]) -> str:
    if not tokens or tokens[0] in _WORDS:
        raise ValueError("a licence is missing in the expression")
    return tokens.popleft()


def _holds(tree: Tree, allowed: Container[str]) -> bool:
    if isinstance(tree, str):
        return tree in allowed
    word, parts = tree
    each = [_holds(part, allowed) for part in parts]
    return all(each) if word == "AND" else any(each)


def _names(tree: Tree) -> frozenset[str]:
    if isinstance(tree, str):
        return frozenset({tree})
    return frozenset().union(*(_names(part) for part in tree[1]))
