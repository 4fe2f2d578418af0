"""Each jar inside of Spark's package has a licence that may be shipped, and a source for it."""

import zipfile
from collections import Counter
from importlib import metadata
from pathlib import Path

import pytest

from supply.__main__ import main
from supply.bill import bill_of_materials, inner_components, licence_of, refused
from supply.expressions import names_in
from supply.inner_jars import GROUPS, InnerJar, inner_jar, inner_jars
from supply.inner_licences import READINGS, UNSAID, licence_of_inner_jar, strictly
from supply.licences import ALLOWED, ALLOWED_FOR, UnknownLicenceError, is_allowed
from supply.listed_by_package import group_listed, listed_by_package, listed_in
from supply.said_by_jar import SaidByJar
from supply.spellings import SPELLINGS, UNCLEAR, plain

LISTED = listed_by_package("pyspark")
JARS = inner_jars("pyspark", metadata.version("pyspark"))
MIT_TEXT = "Copyright (c) 2020 Somebody\n\nPermission is hereby granted, free of charge, to any\n"
BSD_TEXT = (
    "Redistribution and use in source and binary forms ... are permitted ...\n"
    " * Neither the name of Somebody nor ...\n"
)


def _name(jar: InnerJar) -> str:
    return f"{jar.group}:{jar.artifact}"


def _made(
    folder: Path,
    *,
    manifest: str = "",
    pom: str = "",
    texts: tuple[tuple[str, str], ...] = (),
    listed: dict[str, str] | None = None,
) -> InnerJar:
    file = folder / "a-1.jar"
    with zipfile.ZipFile(file, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\r\n{manifest}\r\n")
        jar.writestr("META-INF/maven/g/a/pom.properties", "version=1\n")
        jar.writestr("META-INF/maven/g/a/pom.xml", pom)
        for name, text in texts:
            jar.writestr(name, text)
    return inner_jar("x/a-1.jar", "0" * 64, file, listed or {})


def _pom(*licences: tuple[str, str]) -> str:
    inner = "".join(
        f"<license>\n<name>{name}</name><url>{url}</url></license>" for name, url in licences
    )
    return f"<project><name>a</name><licenses>{inner}</licenses></project>"


def test_every_jar_inside_of_spark_has_a_licence_that_may_be_shipped() -> None:
    """All that are in the package; in the bill with the source of the licence, and the maker."""
    bill = bill_of_materials()
    inside = inner_components(bill)
    assert len(inside) == len(JARS) > 300
    wrong = {
        one["bom-ref"]: licence_of(one)
        for one in inside
        if not is_allowed(licence_of(one), f"{one['group']}:{one['name']}")
    }
    assert wrong == {}
    assert refused(bill) == []
    for one in inside:
        read_from = {p["name"]: p["value"] for p in one["properties"]}["penstock:licence-read-from"]
        assert read_from
        assert one["purl"].startswith(f"pkg:maven/{one['group']}/{one['name']}@{one['version']}")
    sources = Counter(one["properties"][1]["value"] for one in inside)
    assert sources["the jar"] > 200


@pytest.mark.parametrize(
    ("artifact", "licence"),
    [
        # The package's list says Apache-2.0 of it, and has CDDL-1.1 for the next.
        ("oro", "Apache-1.1"),
        ("jta", "CDDL-1.0"),
        ("gson", "Apache-2.0"),
        ("zstd-jni", "BSD-2-Clause"),
        ("hk2-api", "EPL-2.0 OR GPL-2.0-only WITH Classpath-exception-2.0"),
        ("ammonite-util_2.13", "MIT"),
        ("minlog", "BSD-3-Clause"),
        ("javolution", "BSD-2-Clause"),
        ("javassist", "Apache-2.0 OR LGPL-2.1-only OR MPL-1.1"),
        ("xbean-asm9-shaded", "Apache-2.0 AND BSD-3-Clause"),
        ("typename_2.13", "MIT"),
        ("spark-core_2.13", "Apache-2.0"),
    ],
)
def test_licences_of_known_jars(artifact: str, licence: str) -> None:
    """Looked up one by one, from each of the sources."""
    (jar,) = [one for one in JARS if one.artifact == artifact]
    assert licence_of_inner_jar(jar, LISTED).expression == licence


APACHE = "https://www.apache.org/licenses/LICENSE-2.0.txt"


@pytest.mark.parametrize(
    ("manifest", "pom", "texts", "expression"),
    [
        (f"Bundle-License: {APACHE}\r\n", "", (), "Apache-2.0"),
        (f'Bundle-License: "Apache-2.0";link="{APACHE}"\r\n', "", (), "Apache-2.0"),
        ("Bundle-License: https://opensource.org/licens\r\n es/MIT-license\r\n", "", (), "MIT"),
        ("Licenses: MIT (MIT License)\r\n", "", (), "MIT"),
        ("", _pom(("Apache License,\n Version 2.0", APACHE)), (), "Apache-2.0"),
        ("", _pom(("New BSD License", "https://x")), (), None),
        ("", _pom(("MIT License", APACHE)), (), "Apache-2.0 AND MIT"),
        ("", "", (("META-INF/LICENSE", "\n  Apache License\n  Version 2.0, ..."),), "Apache-2.0"),
        ("", "", (("LICENSE.txt", MIT_TEXT), ("COPYING", BSD_TEXT)), "BSD-3-Clause AND MIT"),
        ("", "", (("META-INF/LICENSE", "GNU GENERAL PUBLIC LICENSE"),), None),
        ("", "", (("a/LICENSE", "GNU GENERAL PUBLIC LICENSE of another part"),), ""),
        ("", "<!-- SPDX-License-Identifier: MIT OR ISC -->\n", (), "MIT OR ISC"),
        ("", "<!-- SPDX-License-Identifier: MIT OR GPL-2.0\n-->", (), "MIT OR GPL-2.0-only"),
        ("", "<!-- SPDX-License-Identifier: MIT OR -->\n", (), None),
        (
            f"Bundle-License: {APACHE},https://opensource.org/license/mit\r\n",
            "<!--\nSPDX-License-Identifier: MIT OR ISC\n-->",
            (),
            "(MIT OR ISC) AND Apache-2.0",
        ),
        ("Bundle-License: Sold by the hour\r\n", "", (), None),
        (f"Bundle-License: Sold by the hour;link={APACHE}\r\n", "", (), None),
        ("Bundle-License: The BSD License\r\n", "", (), ""),
        (f"Bundle-Vendor: x\r\n\r\nName: a/b\r\nBundle-License: {APACHE}\r\n", "", (), ""),
        ("", "<!-- <license><name>Sold</name></license> -->", (), ""),
        ("", "", (), ""),
    ],
)
def test_what_a_jar_says_holds_together(
    manifest: str,
    pom: str,
    texts: tuple[tuple[str, str], ...],
    expression: str | None,
    tmp_path: Path,
) -> None:
    """Manifest, own POM and texts count together; a word that nobody knows is refused."""
    jar = _made(tmp_path, manifest=manifest, pom=pom, texts=texts)
    if expression is None:
        with pytest.raises(UnknownLicenceError, match=r"a-1\.jar names"):
            strictly(jar.said, jar.path)
    else:
        assert strictly(jar.said, jar.path) == expression


def test_the_descriptions_of_jars_that_were_put_into_a_jar_do_not_count(tmp_path: Path) -> None:
    """Only its own POM speaks for it; docs/development/supply.md says that the others do not."""
    jar = _made(tmp_path, texts=(("META-INF/maven/h/b/pom.xml", _pom(("Sold", "https://x"))),))
    assert strictly(jar.said, jar.path) == ""


def test_jar_list_and_table_are_asked_in_this_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first that speaks is right, and nobody is asked about what nobody knows."""
    listed = {"g:a": "ISC"}
    monkeypatch.setitem(UNSAID, "g", ("MIT", "somebody"))
    speaking = _made(tmp_path, manifest="Licenses: 0BSD\r\n")
    assert licence_of_inner_jar(speaking, listed).expression == "0BSD"
    silent = _made(tmp_path)
    assert licence_of_inner_jar(silent, listed).expression == "ISC"
    assert licence_of_inner_jar(silent, {}).expression == "MIT"
    monkeypatch.delitem(UNSAID, "g")
    with pytest.raises(UnknownLicenceError, match=r"a-1\.jar"):
        licence_of_inner_jar(silent, {})


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ("Bundle-License: https://www.gnu.org/licenses/lgpl-3.0.html\r\n", "LGPL-3.0-only"),
        ("Bundle-License: EPL-2.0\r\n", "EPL-2.0"),
        ("Bundle-License: Sold by the hour\r\n", "sold by the hour"),
        ("", "nothing says the licence"),
    ],
)
def test_a_jar_with_another_licence_or_none_ends_the_check(
    manifest: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Weak copyleft is allowed for the jars that are named, and for no other."""
    made = _made(tmp_path, manifest=manifest)
    monkeypatch.setattr("supply.bill.inner_jars", lambda *_: [*JARS[:3], made])
    assert main(["licences"]) == 1
    said = capsys.readouterr().out
    assert "x/a-1.jar" in said
    assert told in said


def test_a_package_whose_jars_are_not_there_ends_the_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else nothing would be checked where the package is not installed."""
    monkeypatch.setattr("supply.bill.inner_jars", lambda *_: [])
    assert main(["licences"]) == 1
    assert "nobody looked at its jars" in capsys.readouterr().out


def test_the_list_of_the_package_is_read_by_its_headings() -> None:
    """An artifact below a heading that nobody knows has no licence from there."""
    text = (
        "x:before\n-----\nbundled, Apache\nLicense Version 2.0:\n\norg.a:one\n\ncore/src/x.js\n\n"
        "MIT License\n-----------\norg.b:two_2.13:jar\norg.c:two https://c\n\n"
        "Odd License\n-----------\norg.d:three\n\n"
        "BSD 2-Clause\n------------\norg.e:four\n"
    )
    listed = listed_in(text)
    assert listed == {
        "org.a:one": "Apache-2.0",
        "org.b:two_2.13": "MIT",
        "org.c:two": "MIT",
        "org.e:four": "BSD-2-Clause",
    }
    assert group_listed("one", listed) == "org.a"
    assert group_listed("ne", listed) == ""
    assert group_listed("three", listed) == ""
    assert group_listed("two", {**listed, "org.f:two": "MIT"}) == ""
    assert listed_by_package("nobody-knows-this") == {}


def test_sources_for_the_maker_of_a_jar_agree() -> None:
    """Where the jar and the list both name the group, they name the same, but for four jars."""
    compared = [(one, group_listed(one.artifact, LISTED)) for one in JARS]
    both = [(one, group) for one, group in compared if group]
    assert len(both) > 200
    assert {_name(one): group for one, group in both if group != one.group} == {
        "org.apache.hive.shims:hive-shims-0.23": "org.apache.hive",
        "org.apache.hive.shims:hive-shims-common": "org.apache.hive",
        "org.apache.hive.shims:hive-shims-scheduler": "org.apache.hive",
        "org.openlabtesting.leveldbjni:leveldbjni-all": "org.fusesource.leveldbjni",
    }


def test_no_line_of_the_tables_is_too_many() -> None:
    """Each is about a jar that is shipped, is needed there, and names a licence."""
    names = {_name(jar): jar for jar in JARS}
    for licence, jars in ALLOWED_FOR.items():
        assert licence not in ALLOWED
        assert jars <= names.keys()
        for name in jars:
            expression = licence_of_inner_jar(names[name], LISTED).expression
            assert licence in names_in(expression)
            assert not is_allowed(expression)
    for name, reading in READINGS.items():
        assert strictly(names[name].said, name) == reading.strict
        assert names_in(reading.means)
    sources = {licence_of_inner_jar(jar, LISTED).source for jar in JARS}
    assert {reading.source for reading in READINGS.values()} <= sources
    silent = {_name(jar) for jar in JARS if not strictly(jar.said, jar.path)} - LISTED.keys()
    assert UNSAID.keys() <= silent | {name.partition(":")[0] for name in silent}
    assert GROUPS.keys() <= {jar.artifact for jar in JARS}
    assert {plain(one) for one in (*SPELLINGS, *UNCLEAR)} == {*SPELLINGS, *UNCLEAR}
    assert not SPELLINGS.keys() & UNCLEAR


def test_a_reading_counts_only_for_what_was_read() -> None:
    """A jar that names one licence more with its next version is looked at again."""
    (jar,) = [one for one in JARS if one.artifact == "javaparser-core"]
    said = SaidByJar(licences=(*jar.said.licences, ("EPL-2.0",)))
    changed = InnerJar(jar.path, jar.artifact, "4", jar.sha256, said, jar.group)
    expression = licence_of_inner_jar(changed, LISTED).expression
    assert expression == "Apache-2.0 AND EPL-2.0 AND LGPL-3.0-only"
    assert not is_allowed(expression, _name(changed))
