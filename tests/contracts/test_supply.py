"""The bill of materials has everything that the locks name, and all of it may be shipped."""

import re
import subprocess
from importlib import metadata
from typing import Any

import pytest

from kit.generated_files import ROOT
from penstock import __version__
from penstock.jars.lock import JarSet, locked_jars
from supply.__main__ import is_by_digest
from supply.audit import problems_of
from supply.bill import bill_of_materials, licence_of
from supply.licences import (
    JARS,
    PACKAGES,
    UnknownLicenceError,
    is_allowed,
    licence_of_jar,
    licence_of_package,
    said_by_package,
)
from supply.locked import packages, parse_lock

BILL = bill_of_materials()
COMPONENTS: dict[str, dict[str, Any]] = {one["purl"]: one for one in BILL["components"]}


def test_every_locked_package_and_jar_is_in_it() -> None:
    """By name and version, with the hashes of the lock; read here in another way than there."""
    for lock in ("runtime", "thin"):
        text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
        pinned = re.findall(r"^([a-z0-9.-]+)==(\S+)", text, re.MULTILINE)
        assert len(pinned) > 30
        for name, version in pinned:
            assert f"pkg:pypi/{name}@{version}" in COMPONENTS
        listed = {h["content"] for one in COMPONENTS.values() for h in one["hashes"]}
        assert set(re.findall(r"sha256:([0-9a-f]{64})", text)) <= listed
    for jar_set in JarSet:
        for jar in locked_jars(jar_set):
            found = COMPONENTS[f"pkg:maven/{jar.group}/{jar.artifact}@{jar.version}"]
            assert found["hashes"] == [{"alg": "SHA-256", "content": jar.sha256}]
            assert {"name": "penstock:jar-set", "value": str(jar_set)} in found["properties"]


def test_every_licence_may_be_shipped() -> None:
    """Each component names one, and it is allowed."""
    refused = {
        p: licence_of(one) for p, one in COMPONENTS.items() if not is_allowed(licence_of(one))
    }
    assert refused == {}


def test_it_is_a_bill_of_cyclonedx() -> None:
    """The fields that version 1.6 asks for; the schema itself is not among our packages."""
    assert (BILL["bomFormat"], BILL["specVersion"], BILL["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", BILL["serialNumber"])
    own = BILL["metadata"]["component"]
    assert (own["name"], own["version"]) == ("penstock", __version__)
    for one in BILL["components"]:
        assert one["type"] == "library"
        assert one["bom-ref"] == one["purl"]
        assert all(re.fullmatch(r"[0-9a-f]{64}", h["content"]) for h in one["hashes"])
    assert len(COMPONENTS) == len(BILL["components"]), "every reference is there once"
    assert set(BILL["dependencies"][0]["dependsOn"]) == set(COMPONENTS)
    assert bill_of_materials() == BILL, "the same commit has the same bill"


def test_the_tables_agree_with_what_packages_say() -> None:
    """A table never overrules an SPDX expression, and has no line too many."""
    shipped = {one.name for one in packages()}
    assert PACKAGES.keys() <= shipped
    groups = {jar.group for jar_set in JarSet for jar in locked_jars(jar_set)}
    assert {name.partition(":")[0] for name in JARS} <= groups
    for name in PACKAGES.keys() & {
        one.metadata["Name"].lower() for one in metadata.distributions()
    }:
        assert said_by_package(name) in {None, PACKAGES[name][0]}, name


def test_what_nobody_looked_at_is_refused() -> None:
    """A new package or jar without a known licence fails, and so does one without a hash."""
    with pytest.raises(UnknownLicenceError, match="PACKAGES"):
        licence_of_package("nobody-knows-this")
    with pytest.raises(UnknownLicenceError, match="JARS"):
        licence_of_jar("com.nobody", "knows-this")
    with pytest.raises(ValueError, match="no hash"):
        parse_lock("left-pad==1.0\n    # via nobody\n")


def test_a_package_that_was_not_looked_up_is_a_problem() -> None:
    """pip-audit passes over it; behind a mirror without advisories that is every package."""
    sound = {"name": "rich", "version": "15.0.0", "vulns": []}
    assert problems_of({"dependencies": [sound]}) == []
    known = {"id": "PYSEC-1", "fix_versions": ["16"]}
    report = {
        "dependencies": [
            {**sound, "vulns": [known]},
            {"name": "h11", "skip_reason": "not found on the index"},
        ]
    }
    assert problems_of(report) == [
        "rich 15.0.0: PYSEC-1, mended in 16",
        "h11: not looked up: not found on the index",
    ]
    assert problems_of({"dependencies": []}) == ["the report names no package"]


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("(MIT OR Apache-2.0) AND GPL-3.0-only", False),
        ("(MIT OR Apache-2.0) AND BSD-3-Clause", True),
        ("LGPL-3.0-only", False),
        ("SSPL-1.0", False),
    ],
)
def test_alternatives_and_conjunctions(expression: str, allowed: bool) -> None:
    """One of the alternatives must be allowed, and all that hold together."""
    assert is_allowed(expression) == allowed


@pytest.mark.parametrize(
    ("image", "any_base", "is_built"),
    [
        ("python:3.11-slim-bookworm", "no", False),
        ("python@sha256:" + "0" * 64, "no", True),
        ("mirror.example/python:3.11@sha256:" + "0" * 64, "no", True),
        ("python:3.11-slim-bookworm", "yes", True),
    ],
)
def test_a_base_image_by_tag_alone_is_refused(image: str, any_base: str, is_built: bool) -> None:
    """The Dockerfile's own check, run by a shell; the tool has the same rule."""
    text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    (check,) = re.findall(r"^RUN (case .*)$", text, re.MULTILINE)
    done = subprocess.run(
        ["sh", "-c", check],
        env={"PYTHON_IMAGE": image, "ANY_BASE": any_base},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == is_built
    assert is_built or "by digest" in done.stderr
    assert is_by_digest(image) == (is_built and any_base == "no")


def test_every_stage_of_the_images_comes_from_the_checked_base() -> None:
    """No other stage names an image."""
    text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"^FROM (\$\S+) AS (\S+)$", text, re.MULTILINE) == [
        ("${PYTHON_IMAGE}", "python")
    ]
