"""What a jar says about itself: its manifest, its own POM, and the licence texts that lie in it.

Nothing is judged here; each licence is kept in the words of the jar.
"""

import re
import zipfile
from dataclasses import dataclass

_MANIFEST = "META-INF/MANIFEST.MF"
_TEXT = re.compile(r"(META-INF/)?(LICEN[CS]E|COPYING)(\.\w+)?|about(_[\w.]+)?\.html", re.IGNORECASE)
_LICENCE_OF_POM = re.compile(r"<license>(.*?)</license>", re.DOTALL)
_NAME_OR_ADDRESS = re.compile(r"<(?:name|url)>(.*?)</(?:name|url)>", re.DOTALL)
_HEADER = re.compile(r"SPDX-License-Identifier:[ \t]*([^\r\n]*)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# Of a header in the manner of OSGi: what is quoted, or up to the next sign.
_CLAUSE = re.compile(r'(?:"[^"]*"|[^",])+')
_PIECE = re.compile(r'(?:"[^"]*"|[^";])+')
_SCALA = re.compile(r"_2\.\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class SaidByJar:
    # Each licence by all that it is called in one place: name, address, description.
    licences: tuple[tuple[str, ...], ...] = ()
    # The texts of licences that lie in it.
    texts: tuple[str, ...] = ()
    # The SPDX expression at the head of its POM; empty without one.
    expression: str = ""
    # The group under which its build tool published it; empty where that is not sure.
    group: str = ""


def said_by_jar(jar: zipfile.ZipFile, artifact: str, pom: str) -> SaidByJar:
    """`pom` is the path of its own POM in it; empty for none."""
    names = jar.namelist()
    manifest = _attributes(_read(jar, _MANIFEST)) if _MANIFEST in names else {}
    description = _read(jar, pom) if pom in names else ""
    header = _HEADER.search(description)
    return SaidByJar(
        licences=(
            *_clauses(manifest.get("Bundle-License", "")),
            *((one,) for one in [manifest.get("Licenses", "")] if one),
            *_licences_of_pom(description),
        ),
        texts=tuple(_read(jar, name) for name in names if _TEXT.fullmatch(name)),
        expression=header[1].removesuffix("-->").strip() if header else "",
        group=_group(manifest, artifact),
    )


def _read(jar: zipfile.ZipFile, name: str) -> str:
    return jar.read(name).decode(errors="replace")


def _attributes(manifest: str) -> dict[str, str]:
    """Of the main section. A long line goes on in the next, after a blank."""
    main = manifest.replace("\r\n", "\n").replace("\n ", "").partition("\n\n")[0]
    return {
        name: value.strip() for name, _, value in (line.partition(":") for line in main.split("\n"))
    }


def _clauses(header: str) -> list[tuple[str, ...]]:
    """`"Apache-2.0";link="https://..."` has two words for one licence; a comma parts licences."""
    return [
        tuple(_value(piece) for piece in _PIECE.findall(clause) if piece.strip())
        for clause in _CLAUSE.findall(header)
        if clause.strip()
    ]


def _value(piece: str) -> str:
    return re.sub(r"^\s*(link|description)\s*=", "", piece).strip().strip('"')


def _licences_of_pom(pom: str) -> list[tuple[str, ...]]:
    return [
        tuple(found)
        for one in _LICENCE_OF_POM.findall(_COMMENT.sub("", pom))
        if (found := [word.strip() for word in _NAME_OR_ADDRESS.findall(one) if word.strip()])
    ]


def _group(manifest: dict[str, str], artifact: str) -> str:
    """Mill and sbt write it for whatever they publish. Other tools write there what they like."""
    if manifest.get("Tool", "").startswith("Mill-"):
        return manifest.get("Implementation-Vendor", "")
    if _SCALA.search(artifact):
        return manifest.get("Implementation-Vendor-Id", "")
    return ""
