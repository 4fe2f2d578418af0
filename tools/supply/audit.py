"""Reads a report of pip-audit. What it could not look up is not known to be sound.

pip-audit ends with 0 and "No known vulnerabilities found" also when it found no package at all, as
behind a mirror of the index that has no advisories.
"""

from typing import Any


def problems_of(report: dict[str, Any]) -> list[str]:
    """A line for each package that was not looked up, and for each known vulnerability."""
    found = []
    for one in report["dependencies"]:
        if "skip_reason" in one:
            found.append(f"{one['name']}: not looked up: {one['skip_reason']}")
        for known in one.get("vulns", []):
            fixed = ", ".join(known.get("fix_versions") or []) or "no release"
            found.append(f"{one['name']} {one['version']}: {known['id']}, mended in {fixed}")
    if not report["dependencies"]:
        found.append("the report names no package")
    return found
