"""The bill of materials, in the form of CycloneDX 1.6.

It is made from the locks, so the same commit gives the same bill: no time, no random number but one
that follows from the content. Only the jars inside of Spark's package are in no lock: they are
listed where the package is installed, which the lock's hash makes the same everywhere.
"""

import hashlib
import json
import re
import uuid
from typing import Any

from penstock import __version__
from supply.inner_jars import inner_jars
from supply.inner_licences import licence_of_inner_jar
from supply.licences import is_allowed, licence_of_jar, licence_of_package
from supply.listed_by_package import listed_by_package
from supply.locked import jars, packages

_SPDX_ID = re.compile(r"[A-Za-z0-9.-]+")
# Packages that bring jars.
_WITH_JARS = frozenset({"pyspark"})
_OWN = f"pkg:pypi/penstock@{__version__}"


def bill_of_materials() -> dict[str, Any]:
    components = [*_packages(), *_jars()]
    content = json.dumps([_OWN, components], sort_keys=True).encode()
    number = uuid.UUID(bytes=hashlib.sha256(content).digest()[:16], version=4)
    own = {
        "type": "application",
        "bom-ref": _OWN,
        "name": "penstock",
        "version": __version__,
        "licenses": _licences("Apache-2.0"),
        "purl": _OWN,
    }
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
        "metadata": {"component": own},
        "components": components,
        "dependencies": [{"ref": _OWN, "dependsOn": [one["bom-ref"] for one in components]}],
    }


def _packages() -> list[dict[str, Any]]:
    found = []
    for one in packages():
        purl = f"pkg:pypi/{one.name}@{one.version}"
        properties = [{"name": "penstock:image", "value": image} for image in one.images]
        if one.marker:
            properties.append({"name": "penstock:marker", "value": one.marker})
        found.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": one.name,
                "version": one.version,
                "hashes": [{"alg": "SHA-256", "content": text} for text in one.sha256],
                "licenses": _licences(licence_of_package(one.name)),
                "purl": purl,
                "properties": properties,
            }
        )
        if one.name in _WITH_JARS:
            found[-1]["components"] = _jars_inside(one.name, one.version)
    return found


def _jars_inside(package: str, version: str) -> list[dict[str, Any]]:
    listed = listed_by_package(package)
    found = []
    for one in inner_jars(package, version):
        licence = licence_of_inner_jar(one, listed)
        component = {
            "type": "library",
            "bom-ref": f"pkg:pypi/{package}@{version}#{one.path}",
            "name": one.artifact,
            "version": one.version,
            "hashes": [{"alg": "SHA-256", "content": one.sha256}],
            "licenses": _licences(licence.expression),
            "properties": [
                {"name": "penstock:path", "value": one.path},
                {"name": "penstock:licence-read-from", "value": licence.source},
            ],
        }
        if one.group:
            component |= {"group": one.group, "purl": one.purl}
        found.append(component)
    return found


def _jars() -> list[dict[str, Any]]:
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:maven/{one.group}/{one.artifact}@{one.version}",
            "group": one.group,
            "name": one.artifact,
            "version": one.version,
            "hashes": [{"alg": "SHA-256", "content": one.sha256}],
            "licenses": _licences(licence_of_jar(one.group, one.artifact)),
            "purl": f"pkg:maven/{one.group}/{one.artifact}@{one.version}",
            "properties": [{"name": "penstock:jar-set", "value": name} for name in one.sets],
        }
        for one in jars()
    ]


def _licences(expression: str) -> list[dict[str, Any]]:
    if _SPDX_ID.fullmatch(expression):
        return [{"license": {"id": expression}}]
    return [{"expression": expression}]


def licence_of(component: dict[str, Any]) -> str:
    """The expression that a component of the bill names."""
    named = component["licenses"][0]
    return str(named["expression"] if "expression" in named else named["license"]["id"])


def inner_components(bill: dict[str, Any]) -> list[dict[str, Any]]:
    """The jars inside of packages."""
    return [jar for one in bill["components"] for jar in one.get("components", [])]


def refused(bill: dict[str, Any]) -> list[str]:
    """A line for each component whose licence is not allowed, or whose jars were not looked at."""
    named = [(one, "") for one in bill["components"]]
    named += [(one, f"{one.get('group', '')}:{one['name']}") for one in inner_components(bill)]
    unseen = [
        f"{one['bom-ref']}: not installed, so that nobody looked at its jars"
        for one in bill["components"]
        if one["name"] in _WITH_JARS and not one["components"]
    ]
    return unseen + [
        f"{one['bom-ref']}: {licence_of(one)} is not allowed"
        for one, jar in named
        if not is_allowed(licence_of(one), jar)
    ]
