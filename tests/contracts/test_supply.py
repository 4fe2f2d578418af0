"""The bill of materials has everything that the locks name, and all of it may be shipped."""

import hashlib
import os
import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pyspark
import pytest

from kit.canaries import CANARIES, found_in
from kit.generated_files import ROOT
from penstock import __version__
from penstock.jars.lock import JarSet, locked_jars
from supply.__main__ import is_by_digest
from supply.audit import problems_of
from supply.bill import bill_of_materials, licence_of, refused
from supply.inner_jars import inner_jar, inner_jars
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


def test_the_jars_inside_of_spark_are_in_it() -> None:
    """Each file of the installed package, by the sum of its content, read here by another way."""
    (spark,) = [one for one in BILL["components"] if one["name"] == "pyspark"]
    listed = {one["properties"][0]["value"]: one for one in spark["components"]}
    folder = Path(pyspark.__file__).parent
    files = {f"pyspark/{one.relative_to(folder)}": one for one in folder.rglob("*.jar")}
    assert listed.keys() == files.keys()
    assert len(files) > 200
    for path in sorted(files)[::40]:
        summed = hashlib.sha256(files[path].read_bytes()).hexdigest()
        assert listed[path]["hashes"] == [{"alg": "SHA-256", "content": summed}]
    for path, one in listed.items():
        assert Path(path).name.startswith(f"{one['name']}-{one['version']}")
    made_by = {(one["name"], one.get("group")) for one in listed.values()}
    assert {("log4j-core", "org.apache.logging.log4j"), ("netty-codec", "io.netty")} <= made_by
    references = [one["bom-ref"] for one in (*BILL["components"], *spark["components"])]
    assert len(references) == len(set(references))


def _jar(folder: Path, name: str, *described: tuple[str, str, str]) -> Path:
    file = folder / name
    with zipfile.ZipFile(file, "w") as jar:
        for group, artifact, version in described:
            text = f"groupId={group}\nartifactId={artifact}\nversion={version}\n"
            jar.writestr(f"META-INF/maven/{group}/{artifact}/pom.properties", text)
    return file


@pytest.mark.parametrize(
    ("name", "described", "expected"),
    [
        ("a-b-1.2.jar", [("g", "a-b", "1.2")], ("a-b", "1.2", "pkg:maven/g/a-b@1.2")),
        ("a-1.2-api-3.4.jar", [("g", "a-1.2-api", "3.4")], ("a-1.2-api", "3.4", None)),
        ("a-1-x86.jar", [("g", "a", "1")], ("a", "1", "pkg:maven/g/a@1?classifier=x86")),
        ("a-1.jar", [("g", "a", "1"), ("h", "inside", "2")], ("a", "1", "pkg:maven/g/a@1")),
        ("a-1.jar", [("g", "a", "9")], ("a", "1", "")),
        ("a-1.jar", [("g", "a", "1"), ("h", "a", "1")], ("a", "1", "")),
        ("a_2.13-1.0-M2.jar", [], ("a_2.13", "1.0-M2", "")),
    ],
)
def test_a_jar_is_what_it_says_where_its_name_agrees(
    name: str,
    described: list[tuple[str, str, str]],
    expected: tuple[str, str, str | None],
    tmp_path: Path,
) -> None:
    """Else only the name of its file counts; one without a version is refused."""
    found = inner_jar(f"x/{name}", "0" * 64, _jar(tmp_path, name, *described), {})
    artifact, version, purl = expected
    assert (found.artifact, found.version) == (artifact, version)
    assert purl in {None, found.purl}
    with pytest.raises(ValueError, match="no version"):
        inner_jar("x/nothing.jar", "0" * 64, _jar(tmp_path, "nothing.jar"), {})


def test_a_package_that_is_not_here_has_no_jars_in_the_bill() -> None:
    """Or is here in another version: those would be other jars."""
    assert inner_jars("nobody-knows-this", "1") == []
    assert inner_jars("pyspark", "0.1") == []


def test_no_secret_of_the_environment_is_in_it(tmp_path: Path) -> None:
    """Whoever makes it has keys in the environment, of an index or a store."""
    file = tmp_path / "bill.json"
    done = subprocess.run(
        [sys.executable, "-m", "supply", "bill", str(file)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **CANARIES},
        capture_output=True,
        text=True,
        check=True,
    )
    said = done.stdout + done.stderr + file.read_text(encoding="utf-8")
    assert "pkg:pypi/pyspark" in said
    assert found_in(said, CANARIES.values()) == []


def test_every_licence_may_be_shipped() -> None:
    """Each component names one, and it is allowed. tests/contracts/test_supply_licences.py: how."""
    assert refused(BILL) == []
    wrong = {p: licence_of(one) for p, one in COMPONENTS.items() if not is_allowed(licence_of(one))}
    assert wrong == {}


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
        ("MIT OR BSD-3-Clause AND GPL-3.0-only", True),
        ("(MIT OR BSD-3-Clause) AND ISC", True),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("MIT OR GPL-2.0-only WITH Classpath-exception-2.0", True),
        ("MIT WITH Classpath-exception-2.0", False),
    ],
)
def test_alternatives_and_conjunctions(expression: str, allowed: bool) -> None:
    """One of the alternatives must be allowed, and all that hold together."""
    assert is_allowed(expression) == allowed


@pytest.mark.parametrize("expression", ["", "MIT OR", "AND MIT", "(MIT", "MIT)", "MIT ISC", "WITH"])
def test_what_is_no_expression_is_refused(expression: str) -> None:
    """Nothing is allowed because nobody could read it."""
    with pytest.raises(ValueError, match=r"licence|parenthesis"):
        is_allowed(expression)


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
