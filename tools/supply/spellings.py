"""How jars spell licences: names and addresses, and the openings of licence texts.

A spelling that is in no table is refused: somebody has to look, and to add a line.
"""

import re

from supply.licences import UnknownLicenceError

_CLASSPATH = "GPL-2.0-only WITH Classpath-exception-2.0"
# In lower case; of addresses without what comes before the host, and without the kind of file.
SPELLINGS = {
    # The names of SPDX
    "0bsd": "0BSD",
    "apache-1.1": "Apache-1.1",
    "apache-2.0": "Apache-2.0",
    "bsd-3-clause": "BSD-3-Clause",
    "cddl-1.0": "CDDL-1.0",
    "cddl-1.1": "CDDL-1.1",
    "epl-1.0": "EPL-1.0",
    "epl-2.0": "EPL-2.0",
    "mit": "MIT",
    "unicode-3.0": "Unicode-3.0",
    # Names
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license v2.0": "Apache-2.0",
    "apache license, 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "bsd 2-clause": "BSD-2-Clause",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd 3-clause": "BSD-3-Clause",
    "cddl + gplv2 with classpath exception": f"CDDL-1.1 OR {_CLASSPATH}",
    # The same words as BSD with three clauses.
    "edl 1.0": "BSD-3-Clause",
    "eclipse public license - v 2.0": "EPL-2.0",
    "epl 2.0": "EPL-2.0",
    "gnu lesser general public license": "LGPL-3.0-only",
    "gpl-2.0-with-classpath-exception": _CLASSPATH,
    "gpl2 w/ cpe": _CLASSPATH,
    "lgpl 2.1": "LGPL-2.1-only",
    "mit license": "MIT",
    "modified bsd": "BSD-3-Clause",
    "mpl 1.1": "MPL-1.1",
    "new bsd license": "BSD-3-Clause",
    "the apache license, version 2.0": "Apache-2.0",
    "the apache software license, version 2.0": "Apache-2.0",
    "the gnu general public license (gpl), version 2, with classpath exception": _CLASSPATH,
    "the new bsd license": "BSD-3-Clause",
    # Addresses
    "antlr.org/license": "BSD-3-Clause",
    "apache.org/licenses/license-2.0": "Apache-2.0",
    "asm.ow2.io/license": "BSD-3-Clause",
    "asm.ow2.org/license": "BSD-3-Clause",
    "creativecommons.org/publicdomain/zero/1.0": "CC0-1.0",
    "eclipse.org/legal/epl-2.0": "EPL-2.0",
    "eclipse.org/legal/epl-v20": "EPL-2.0",
    "eclipse.org/org/documents/edl-v10": "BSD-3-Clause",
    "github.com/locationtech/jts/blob/master/license_edlv1": "BSD-3-Clause",
    "github.com/locationtech/jts/blob/master/license_eplv2": "EPL-2.0",
    "gnu.org/licenses/lgpl-2.1": "LGPL-2.1-only",
    "gnu.org/licenses/lgpl-3.0": "LGPL-3.0-only",
    "gnu.org/software/classpath/license": _CLASSPATH,
    "jquery.org/license": "MIT",
    "mozilla.org/en-us/mpl/1.1": "MPL-1.1",
    "opensource.org/license/bsd-3-clause": "BSD-3-Clause",
    "opensource.org/license/mit": "MIT",
    "opensource.org/licenses/bsd-2-clause": "BSD-2-Clause",
    "opensource.org/licenses/bsd-3-clause": "BSD-3-Clause",
    "opensource.org/licenses/mit-license": "MIT",
    "oss.oracle.com/licenses/cddl+gpl-1.1": f"CDDL-1.1 OR {_CLASSPATH}",
    "spdx.org/licenses/bsd-3-clause": "BSD-3-Clause",
    # SPDX has no name for the licence of W3C's documents.
    "w3.org/consortium/legal/copyright-documents-19990405": "LicenseRef-W3C-documents-1999",
}
# These name no licence for sure: which of those called BSD, or what a page of a project says.
UNCLEAR = frozenset(
    {
        "bsd licence",
        "bsd license",
        "javolution.org/license",
        "opensource.org/licenses/bsd-license",
        "public domain",
        "the bsd license",
        "jpam.sourceforge.net/license",
        "raw.githubusercontent.com/google/flatbuffers/master/license",
        "raw.githubusercontent.com/irmen/pickle/master/license",
        "raw.githubusercontent.com/threeten/threeten-extra/main/license",
        "raw.githubusercontent.com/unicode-org/icu/maint/maint-78/license",
    }
)
# How licence texts open, after ornaments; the first that fits. With blanks in place of line ends.
_OPENINGS = [
    (re.compile(r"apache license,? version 2\.0"), "Apache-2.0"),
    (
        re.compile(
            r"this copy of .{1,80} is licensed under the apache \(software\) license, version 2\.0"
        ),
        "Apache-2.0",
    ),
    (re.compile(r"the apache software license, version 1\.1"), "Apache-1.1"),
    (
        re.compile(r"common development and distribution license \(cddl\) version 1\.0"),
        "CDDL-1.0",
    ),
    (
        re.compile(r"common development and distribution license \(cddl\) version 1\.1"),
        "CDDL-1.1",
    ),
    (re.compile(r"eclipse public license - v 1\.0"), "EPL-1.0"),
    (re.compile(r"eclipse public license - v 2\.0"), "EPL-2.0"),
    (re.compile(r"about.{1,900} eclipse public license version 1\.0"), "EPL-1.0"),
    (re.compile(r"about.{1,900} eclipse public license version 2\.0"), "EPL-2.0"),
    (re.compile(r".{0,300}permission is hereby granted, free of charge, to any"), "MIT"),
    (
        re.compile(r".{0,300}redistribution and use in source and binary.{1,900}neither the name"),
        "BSD-3-Clause",
    ),
]
_ORNAMENTS = re.compile(r"<[^>]*>|[*/=#]+")
_OF_ADDRESS = re.compile(r"^https?://(www\.)?|/$")
_KIND = re.compile(r"\.(html?|md|php|txt)$")
_IN_BRACKETS = re.compile(r"^(\S+) \(.*\)$")


def plain(spelling: str) -> str:
    """As the tables have it. `MIT (MIT License)` is how the build tool Mill writes `MIT`."""
    words = " ".join(spelling.lower().split())
    named = _IN_BRACKETS.fullmatch(words)
    address = _OF_ADDRESS.sub("", named[1] if named else words)
    return address if address == words else _KIND.sub("", address)


def licences_named(spellings: tuple[str, ...], where: str) -> frozenset[str]:
    """What one licence is called in several ways; more than one where the ways do not agree.

    Empty where none of them is clear. UnknownLicenceError for one that is in no table.
    """
    found = set()
    for one in map(plain, spellings):
        if one in SPELLINGS:
            found.add(SPELLINGS[one])
        elif one not in UNCLEAR:
            raise UnknownLicenceError(f"{where} names {one!r}: add it to SPELLINGS in {__file__}")
    return frozenset(found)


def name_of_text(text: str) -> str:
    """A spelling for the licence of this text; of an unknown one its first words."""
    words = " ".join(_ORNAMENTS.sub(" ", text).split())
    for opening, name in _OPENINGS:
        if opening.match(words.lower()):
            return name
    return f"a text that opens with: {words[:60]}"
