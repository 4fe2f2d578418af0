"""Makes wrong input of right examples: most of it stays right, so that it gets far.

Values that break programs are put where a value was: numbers too large for any type, NaN, halves
of surrogate pairs, digits that are not ASCII, nesting deeper than the stack, a key twice, bombs of
YAML aliases. Bytes are cut, doubled and flipped.
"""

import copy
import json
from typing import Any

from hypothesis import strategies as st

from kit.fuzz.parser import Form, Parser

_DEEP = 20_000
JSON_TEXTS = (
    "null",
    "true",
    "false",
    "0",
    "-1",
    "-0.0",
    "0.5",
    "1e999",
    "-1e999",
    "NaN",
    "Infinity",
    "9223372036854775808",
    "1" + "0" * 400,
    "1" + "0" * 5_000,
    '""',
    '"x"',
    '"0"',
    '"-1"',
    '"1e999"',
    '"nan"',
    '"\\u0000"',
    '"\\ud800"',
    '"\\u2028"',
    '"\u00b2"',
    '"\u0663"',
    '"../x"',
    f'"{"y" * 3_000}"',
    "[]",
    "{}",
    "[null]",
    "[[]]",
    '["x", 1]',
    '[["x", 1]]',
    '{"": null}',
    '{"x": {}}',
    '{"x": 1, "x": 2}',
    "[" * _DEEP + "]" * _DEEP,
    '{"x":' * _DEEP + "1" + "}" * _DEEP,
)
BOMB = "&a [x,x,x,x,x,x,x,x,x]\n" + "\n".join(
    f"x{n}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]" for n in range(12)
)
_BOMB_VALUE = "*m"
YAML_TEXTS = (
    *(text for text in JSON_TEXTS if len(text) < 10_000),
    "",
    "~",
    "2001-99-99",
    "2001-01-01",
    "0x",
    "0b2",
    "0o9",
    "1:99:99",
    ".inf",
    ".nan",
    "=",
    "!!int x",
    "!!bool x",
    "!!float x",
    "!!timestamp x",
    "!!binary x",
    "!!set {x}",
    "!!omap [x]",
    "!!python/object/apply:os.getpid []",
    "*x",
    "&x [*x]",
    "&x {x: *x}",
    "{? [x] : y}",
    "{<<: x}",
    "{<<: [x]}",
    "[" * 3_000,
    "'\\ud800'",
    '"\\ud800"',
    "\t",
    "|\n",
    "%YAML 9",
    "--- ---",
    "\ufeff",
    "\x07",
)
_BYTES = (
    b"\x00",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\n",
    b"\r",
    b"\r\n",
    b'"',
    b"\\",
    b"{",
    b"[",
)


def inputs_of(parser: Parser) -> st.SearchStrategy[bytes]:
    ways = [mutated_bytes(parser.examples), st.binary(max_size=600)]
    if parser.form is Form.JSON_LINES:
        ways += [mutated_json(parser.examples)] * 4
    if parser.form is Form.YAML:
        ways += [mutated_yaml(parser.examples)] * 4
    return st.one_of(ways)


@st.composite
def mutated_bytes(draw: st.DrawFn, examples: tuple[bytes, ...]) -> bytes:
    data = draw(st.sampled_from(examples))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        until = draw(st.integers(at, min(len(data), at + 200)))
        way = draw(st.sampled_from(["cut", "end", "double", "insert", "flip", "joined"]))
        if way == "cut":
            data = data[:at] + data[until:]
        elif way == "end":
            data = data[:at]
        elif way == "double":
            data = data[:until] + data[at:until] * draw(st.sampled_from([1, 2, 50])) + data[until:]
        elif way == "insert":
            data = data[:at] + draw(st.sampled_from(_BYTES)) + data[at:]
        elif way == "joined":
            data = data[:at] + draw(st.sampled_from(examples))[at:]
        elif at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
    return data


@st.composite
def mutated_json(draw: st.DrawFn, examples: tuple[bytes, ...]) -> bytes:
    """Of one line that is JSON, up to three values are exchanged, removed or renamed."""
    lines = draw(st.sampled_from(examples)).split(b"\n")
    numbers = [number for number, line in enumerate(lines) if line.startswith((b"{", b"["))]
    if not numbers:
        return b"\n".join(lines)
    number = draw(st.sampled_from(numbers))
    document, raw = json.loads(lines[number]), list[str]()
    for _ in range(draw(st.integers(1, 3))):
        text = draw(st.sampled_from(JSON_TEXTS))
        way = draw(st.sampled_from(["exchange", "exchange", "exchange", "remove", "add"]))
        document = _changed(draw, document, way, f"@@{len(raw)}@@")
        raw.append(text)
    written = json.dumps(document)
    for position, text in enumerate(raw):
        written = written.replace(f'"@@{position}@@"', text)
    lines[number] = written.encode("utf-8", errors="surrogatepass")
    return b"\n".join(lines)


def _changed(draw: st.DrawFn, document: Any, way: str, mark: str) -> Any:
    paths = _paths(document)
    path = draw(st.sampled_from(paths))
    if not path:
        return mark
    document = copy.deepcopy(document)
    parent = document
    for step in path[:-1]:
        parent = parent[step]
    if way == "remove":
        del parent[path[-1]]
    elif way == "add" and isinstance(parent, dict):
        parent[draw(st.sampled_from(["", "x", "\u0000", "__class__", "0"]))] = mark
    else:
        parent[path[-1]] = mark
    return document


def _paths(document: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [above]
    if isinstance(document, dict):
        for name, below in document.items():
            found += _paths(below, (*above, name))
    if isinstance(document, list):
        for number, below in enumerate(document[:5]):
            found += _paths(below, (*above, number))
    return found


@st.composite
def mutated_yaml(draw: st.DrawFn, examples: tuple[bytes, ...]) -> bytes:
    """The value of one line is exchanged, or the line is put further in or out."""
    text = draw(st.sampled_from(examples)).decode(errors="replace")
    lines = text.split("\n")
    for _ in range(draw(st.integers(1, 2))):
        number = draw(st.integers(0, len(lines) - 1))
        name, separator, _ = lines[number].partition("=" if "=" in lines[number] else ":")
        way = draw(st.sampled_from(["value", "value", "value", "bomb", "indent", "line"]))
        value = draw(st.sampled_from(YAML_TEXTS))
        if way == "value":
            lines[number] = f"{name}{separator} {value}"
        elif way == "bomb":
            lines[number] = f"{name}{separator} {_BOMB_VALUE}"
            lines.insert(0, f"x: {BOMB}")
        elif way == "indent":
            lines[number] = f"  {lines[number]}"
        else:
            lines.insert(number, value)
    return "\n".join(lines).encode("utf-8", errors="surrogatepass")
