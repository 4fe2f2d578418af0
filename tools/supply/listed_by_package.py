"""The licences of the jars inside of Spark's package, as the LICENSE of that package lists them.

Below a heading that names a licence stands one artifact a line, `group:artifact`.
"""

import re
from importlib import metadata

_FILE = "licenses/LICENSE"
_ARTIFACT = re.compile(r"([\w.-]+:[\w.-]+)(:jar)?(\s.*)?")
_LINE = re.compile(r"-{3,}")
# The first list has no heading but this sentence.
_OWN = "License Version 2.0:"
_HEADINGS = {
    _OWN: "Apache-2.0",
    "BSD 0-Clause": "0BSD",
    "BSD 2-Clause": "BSD-2-Clause",
    "BSD 3-Clause": "BSD-3-Clause",
    "MIT License": "MIT",
    "ISC License": "ISC",
    "Common Development and Distribution License (CDDL) 1.0": "CDDL-1.0",
    "Common Development and Distribution License (CDDL) 1.1": "CDDL-1.1",
    "Eclipse Distribution License (EDL) 1.0": "BSD-3-Clause",
    "Eclipse Public License (EPL) 2.0": "EPL-2.0",
}


def listed_by_package(package: str) -> dict[str, str]:
    """Licence by `group:artifact`; empty for a package that is not installed, or has no list."""
    try:
        text = metadata.distribution(package).read_text(_FILE)
    except metadata.PackageNotFoundError:
        return {}
    return listed_in(text or "")


def listed_in(text: str) -> dict[str, str]:
    """What stands below a heading that is not known here is left out: nothing is said about it."""
    lines = text.splitlines()
    found: dict[str, str] = {}
    licence = ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        artifact = _ARTIFACT.fullmatch(line)
        if line == _OWN or (line.strip() and _LINE.fullmatch(following)):
            licence = _HEADINGS.get(line.strip(), "")
        elif artifact is not None and licence:
            found[artifact[1]] = licence
    return found


def group_listed(artifact: str, listed: dict[str, str]) -> str:
    """Empty unless there is one for this artifact alone."""
    groups = {name.partition(":")[0] for name in listed if name.endswith(f":{artifact}")}
    return groups.pop() if len(groups) == 1 else ""
