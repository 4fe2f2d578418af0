"""The page as one HTML file that needs no server: data, scripts and styles are in it.

Modules are joined into one script: each becomes a function that returns what it exports. Only the
simple forms of `import` and `export` are understood, each on lines of its own, and a module that
uses another form is refused. The file carries a policy that allows exactly its own scripts and
styles, by their sums, and no request at all.

A small run is JSON that anybody can read in the file; a large one is compressed, to a tenth.
"""

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Mapping

from penstock.errors import PenstockError
from penstock.page.core.view import Json

RUN_ID = "penstock-run"
PACKED_FROM_BYTES = 1_000_000
_STYLE = re.compile(r'<link\b[^>]*\brel="stylesheet"[^>]*\bhref="(?P<name>[^"]+)"[^>]*>')
_ICON = re.compile(r'<link\b[^>]*\brel="icon"[^>]*>\n?')
_SCRIPT = re.compile(
    r'<script\b(?P<before>[^>]*)\bsrc="(?P<name>[^"]+)"(?P<after>[^>]*)></script>\n?'
)
_IMPORT = re.compile(
    r"^import\s+(?:(?:\{(?P<names>[^}]*)\}|\*\s+as\s+(?P<whole>[\w$]+))\s+from\s+)?"
    r'["\'](?P<file>[^"\']+)["\'];?[ \t]*$',
    re.MULTILINE,
)
_EXPORTED = re.compile(
    r"^export\s+(?P<what>(?:async\s+)?function\*?|class|const)\s+(?P<name>[\w$]+)", re.MULTILINE
)
_EXPORT_LIST = re.compile(r"^export\s*\{(?P<names>[^}]*)\};?[ \t]*$", re.MULTILINE)
_LEFT_OVER = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)


class NotOneFileError(PenstockError):
    """The page's files have a form that cannot be put into one file."""


def one_file(files: Mapping[str, str], run: Json) -> str:
    """`index.html` with everything it names inside, and the run as data."""
    page = _file(files, "index.html", is_html=True)
    styles = [_file(files, found["name"]) for found in _STYLE.finditer(page)]
    names = [found["name"] for found in _SCRIPT.finditer(page)]
    script = joined(files, [_clean(name) for name in names])
    page = _ICON.sub("", _SCRIPT.sub("", _STYLE.sub("", page)))
    style = "\n".join(styles)
    policy = (
        f"default-src 'none'; script-src '{_sum(script)}'; style-src '{_sum(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n'
        f"<style>{style}</style>\n"
    )
    tail = f"{_data(embedded(run))}\n<script>{script}</script>\n"
    begin, found, rest = page.partition("<head>")
    body, end_found, end = rest.rpartition("</body>")
    if not found or not end_found:
        raise NotOneFileError("index.html has no <head> or no </body>.")
    # The policy comes first: it holds for what follows it.
    return f"{begin}{found}\n{head}{body}{tail}{end_found}{end}"


def embedded(run: Json) -> str:
    """JSON in which no text can end the element that it is in."""
    text = json.dumps(run, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _data(text: str) -> str:
    """The run as an element that is no script: it is only read."""
    kind = "application/json"
    if len(text) >= PACKED_FROM_BYTES:
        kind, text = "application/zlib", base64.b64encode(zlib.compress(text.encode())).decode()
    return f'<script type="{kind}" id="{RUN_ID}">{text}</script>'


def _sum(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _clean(name: str) -> str:
    return name.removeprefix("./").removeprefix("/")


def _file(files: Mapping[str, str], name: str, *, is_html: bool = False) -> str:
    text = files.get(_clean(name))
    if text is None:
        raise NotOneFileError(f"{name} is not among the page's files.")
    if is_html:
        return text
    if "</script" in text.lower() or "</style" in text.lower():
        raise NotOneFileError(f"{name} has the end of an element in it.")
    return text


def joined(files: Mapping[str, str], begins: list[str]) -> str:
    """All modules that these import, each after those it needs."""
    done: dict[str, str] = {}
    for name in begins:
        _join(files, name, done, ())
    return '"use strict";\nconst modules = {};\n' + "".join(done.values())


def _join(
    files: Mapping[str, str], name: str, done: dict[str, str], above: tuple[str, ...]
) -> None:
    if name in done:
        return
    if name in above:
        circle = " -> ".join((*above[above.index(name) :], name))
        raise NotOneFileError(f"Scripts import each other in a circle: {circle}.")
    text = _file(files, name)
    for found in _IMPORT.finditer(text):
        _join(files, _beside(name, found["file"]), done, (*above, name))
    done[name] = _as_function(name, text)


def _beside(name: str, file: str) -> str:
    """The file that a module means by `./other.js`."""
    folder = name.rpartition("/")[0]
    return f"{folder}/{_clean(file)}" if folder else _clean(file)


def _as_function(name: str, text: str) -> str:
    exports = {found["name"]: found["name"] for found in _EXPORTED.finditer(text)}
    for found in _EXPORT_LIST.finditer(text):
        exports |= {new: old for old, new in _renamed(found["names"])}
    text = _IMPORT.sub(lambda found: _imported(name, found), text)
    text = _EXPORTED.sub(lambda found: f"{found['what']} {found['name']}", text)
    text = _EXPORT_LIST.sub("", text)
    if left := _LEFT_OVER.search(text):
        raise NotOneFileError(f"{name}: this form is not understood: {left.group()}")
    returned = ", ".join(new if new == old else f"{new}: {old}" for new, old in exports.items())
    return f"modules[{json.dumps(name)}] = (() => {{\n{text}\nreturn {{{returned}}};\n}})();\n"


def _renamed(names: str) -> list[tuple[str, str]]:
    """`a, b as c` as pairs: the name here, the name there."""
    pairs = [re.split(r"\s+as\s+", one.strip()) for one in names.split(",") if one.strip()]
    return [(pair[0], pair[-1]) for pair in pairs]


def _imported(name: str, found: re.Match[str]) -> str:
    source = f"modules[{json.dumps(_beside(name, found['file']))}]"
    if found["whole"]:
        return f"const {found['whole']} = {source};"
    if found["names"] is None:
        return ""
    taken = ", ".join(
        there if there == here else f"{there}: {here}" for there, here in _renamed(found["names"])
    )
    return f"const {{{taken}}} = {source};"
