"""The licence of each jar inside of Spark's package, and where it was read.

Asked in this order: the jar itself, the list of licences in the package, a table kept by hand. A
jar about which none of them speaks is refused, and so is a word for a licence that is in no table.
"""

from dataclasses import dataclass

from supply.expressions import all_of, names_in
from supply.inner_jars import InnerJar
from supply.licences import UnknownLicenceError
from supply.said_by_jar import SaidByJar
from supply.spellings import licences_named, name_of_text

_JAR = "the jar"
_LIST = "the LICENSE of the package"
_PROJECT = "as the project says; not read from the jar"
# The names of SPDX before its version 3.
_OLD_NAMES = {"GPL-2.0": "GPL-2.0-only", "LGPL-2.1": "LGPL-2.1-only"}

# Jars about which neither they nor the package speak, by `group:artifact`, or by a group alone.
UNSAID: dict[str, tuple[str, str]] = {
    "ch.epfl.scala:bsp4j": ("Apache-2.0", _PROJECT),
    "com.thesamet.scalapb": ("Apache-2.0", _PROJECT),
    "io.get-coursier:class-path-util_2.13": ("Apache-2.0", _PROJECT),
    "io.get-coursier:interface": ("Apache-2.0", _PROJECT),
    "io.vertx:vertx-uri-template": (
        "EPL-2.0 OR Apache-2.0",
        "the POM inside of vertx-core, of the same project",
    ),
    "org.scalameta": ("BSD-3-Clause", _PROJECT),
    "org.tpolecat:typename_2.13": ("MIT", _PROJECT),
}


@dataclass(frozen=True, slots=True)
class Reading:
    # What the jar says when everything in it holds together; empty where it names none.
    strict: str
    means: str
    source: str


_JERSEY = Reading(
    "(EPL-2.0 OR GPL-2.0-only WITH Classpath-exception-2.0) AND Apache-2.0 AND BSD-2-Clause"
    " AND BSD-3-Clause AND CC0-1.0 AND LicenseRef-W3C-documents-1999 AND MIT",
    "EPL-2.0 OR GPL-2.0-only WITH Classpath-exception-2.0",
    "the SPDX header of its POM; the others are of parts of Jersey that are not in this jar",
)
# Jars that list licences of which one may be chosen, or which are not all theirs, and one that the
# package's list has wrong. A line counts only as long as the jar says what it said when somebody
# looked.
READINGS: dict[str, Reading] = {
    "com.github.javaparser:javaparser-core": Reading(
        "Apache-2.0 AND LGPL-3.0-only",
        "Apache-2.0 OR LGPL-3.0-only",
        "the LICENSE of the project, which lets choose; not read from the jar",
    ),
    "jline:jline": Reading(
        "",
        "BSD-3-Clause",
        "LICENSE-jline.txt of the package, whose list says BSD-2-Clause",
    ),
    "org.glassfish.jersey.containers:jersey-container-servlet": _JERSEY,
    "org.glassfish.jersey.containers:jersey-container-servlet-core": _JERSEY,
    "org.glassfish.jersey.core:jersey-client": _JERSEY,
    "org.glassfish.jersey.inject:jersey-hk2": _JERSEY,
    "org.javassist:javassist": Reading(
        "Apache-2.0 AND LGPL-2.1-only AND MPL-1.1",
        "Apache-2.0 OR LGPL-2.1-only OR MPL-1.1",
        "LICENSE-javassist.html of the package, which lets choose",
    ),
    "org.locationtech.jts:jts-core": Reading(
        "BSD-3-Clause AND EPL-2.0",
        "BSD-3-Clause OR EPL-2.0",
        "the LICENSES.md of the project, which lets choose; not read from the jar",
    ),
}


@dataclass(frozen=True, slots=True)
class Licence:
    expression: str
    source: str


def licence_of_inner_jar(jar: InnerJar, listed: dict[str, str]) -> Licence:
    """`listed` is what the package's own list says. UnknownLicenceError: somebody has to look."""
    name = f"{jar.group}:{jar.artifact}"
    said = strictly(jar.said, jar.path)
    reading = READINGS.get(name)
    if reading is not None and reading.strict == said:
        return Licence(reading.means, reading.source)
    if said:
        return Licence(said, _JAR)
    if name in listed:
        return Licence(listed[name], _LIST)
    for known in (name, jar.group):
        if known in UNSAID:
            return Licence(*UNSAID[known])
    raise UnknownLicenceError(f"nothing says the licence of {jar.path}: add it in {__file__}")


def strictly(said: SaidByJar, where: str) -> str:
    """Everything that the jar says holds together, but what its SPDX expression already has.

    Jars list licences of which one may be chosen in the same words as those of their parts.
    """
    header = _header(said.expression, where)
    named = {licence for one in said.licences for licence in licences_named(one, where)}
    for text in said.texts:
        named |= licences_named((name_of_text(text),), where)
    covered = names_in(header) if header else frozenset()
    more = sorted(one for one in named if not names_in(one) <= covered)
    return all_of([header, *more] if header else more)


def _header(expression: str, where: str) -> str:
    words = " ".join(_OLD_NAMES.get(word, word) for word in expression.split())
    if words:
        try:
            names_in(words)
        except ValueError as error:
            raise UnknownLicenceError(f"{where} names {words!r}: no licence") from error
    return words
