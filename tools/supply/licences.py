"""The licence of everything we ship, as an SPDX expression, and which licences we may ship.

A package whose metadata has an SPDX expression speaks for itself. For the others, and for jars,
these tables say it, with where it was read. What is in no table is refused: somebody has to look.
"""

from importlib import metadata

from supply.expressions import holds

# Those that ask of us no more than to keep their text and notices beside the package, which wheels
# and jars do. MPL-2.0 is for certifi, whose files we do not change. No copyleft of the whole.
ALLOWED = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "MPL-2.0",
        "PSF-2.0",
        "Zlib",
    }
)
# Licences that are not on the list, and the jars inside of Spark's package that may have them, by
# `group:artifact`. Another jar with one of these is refused.
#
# CDDL and EPL bind changes of their own files, which we do not make: we pass these jars on as they
# came, inside of a package that is installed by its hash. Who passes them on must
# also say where their source is: docs/development/supply.md does, as far as the jars tell.
#
# Apache-1.1 asks for its notice, which the NOTICE of the package has. Unicode-3.0 asks no more than
# to keep its text and notices, like those on the list.
ALLOWED_FOR = {
    "Apache-1.1": frozenset({"oro:oro"}),
    "CDDL-1.0": frozenset(
        {
            "javax.servlet:javax.servlet-api",
            "javax.transaction:jta",
            "javax.transaction:transaction-api",
        }
    ),
    "CDDL-1.1": frozenset({"javax.servlet:javax.servlet-api"}),
    "EPL-1.0": frozenset(
        {
            "org.eclipse.lsp4j:org.eclipse.lsp4j.generator",
            "org.eclipse.lsp4j:org.eclipse.lsp4j.jsonrpc",
        }
    ),
    "EPL-2.0": frozenset(
        {
            "jakarta.annotation:jakarta.annotation-api",
            "jakarta.servlet:jakarta.servlet-api",
            "jakarta.ws.rs:jakarta.ws.rs-api",
            "org.eclipse.xtend:org.eclipse.xtend.lib",
            "org.eclipse.xtend:org.eclipse.xtend.lib.macro",
            "org.eclipse.xtext:org.eclipse.xtext.xbase.lib",
            "org.glassfish.hk2.external:aopalliance-repackaged",
            "org.glassfish.hk2:hk2-api",
            "org.glassfish.hk2:hk2-locator",
            "org.glassfish.hk2:hk2-utils",
            "org.glassfish.hk2:osgi-resource-locator",
            "org.glassfish.jersey.containers:jersey-container-servlet",
            "org.glassfish.jersey.containers:jersey-container-servlet-core",
            "org.glassfish.jersey.core:jersey-client",
            "org.glassfish.jersey.core:jersey-common",
            "org.glassfish.jersey.core:jersey-server",
            "org.glassfish.jersey.inject:jersey-hk2",
        }
    ),
    "Unicode-3.0": frozenset({"com.ibm.icu:icu4j"}),
}
_FIELD = "the field License of its metadata"
_CLASSIFIER = "the classifier of its metadata"
# Packages without an SPDX expression in their metadata.
PACKAGES: dict[str, tuple[str, str]] = {
    "aiohappyeyeballs": ("PSF-2.0", _FIELD),
    "aiohttp-retry": ("MIT", _FIELD),
    "aiosignal": ("Apache-2.0", _FIELD),
    "certifi": ("MPL-2.0", _FIELD),
    "charset-normalizer": ("MIT", _FIELD),
    "colorama": ("BSD-3-Clause", "its LICENSE.txt; installed on Windows only"),
    "confluent-kafka": ("Apache-2.0", _CLASSIFIER),
    "contourpy": ("BSD-3-Clause", _FIELD),
    "cycler": ("BSD-3-Clause", "the text in the field License"),
    "deprecated": ("MIT", _FIELD),
    "durationpy": ("MIT", _FIELD),
    "fonttools": ("MIT", _FIELD),
    "frozenlist": ("Apache-2.0", _FIELD),
    "h11": ("MIT", _FIELD),
    "kiwisolver": ("BSD-3-Clause", "the text in the field License"),
    "markdown-it-py": ("MIT", _CLASSIFIER),
    "matplotlib": ("PSF-2.0", "its own licence, which is that of Python; see its classifier"),
    "mdurl": ("MIT", _CLASSIFIER),
    "oauthlib": ("BSD-3-Clause", _FIELD),
    "obstore": ("MIT", _CLASSIFIER),
    "pandas": ("BSD-3-Clause", _FIELD),
    "propcache": ("Apache-2.0", _FIELD),
    "protobuf": ("BSD-3-Clause", _FIELD),
    "py4j": ("BSD-3-Clause", "its LICENSE; the field says BSD"),
    "pyspark": ("Apache-2.0", _FIELD),
    "pyspark-client": ("Apache-2.0", "the same project and licence as pyspark"),
    "pytz": ("MIT", _FIELD),
    "pyyaml": ("MIT", _FIELD),
    "requests": ("Apache-2.0", _FIELD),
    "requests-oauthlib": ("ISC", _FIELD),
    "rich": ("MIT", _FIELD),
    "shellingham": ("ISC", _FIELD),
    "tzdata": ("Apache-2.0", _FIELD),
    "websocket-client": ("Apache-2.0", _FIELD),
    "yarl": ("Apache-2.0", _FIELD),
}
_MANIFEST = "Bundle-License in its manifest"
_INSIDE = "the LICENSE inside of the jar"
_PROJECT = "as the project says; not read from the jar"
# Jars by `group:artifact`, or by a group alone.
JARS: dict[str, tuple[str, str]] = {
    "at.yawk.lz4": ("Apache-2.0", _MANIFEST),
    "com.dynatrace.hash4j": ("Apache-2.0", _PROJECT),
    "com.fasterxml.jackson.core": ("Apache-2.0", _INSIDE),
    "com.fasterxml.jackson.dataformat": ("Apache-2.0", _INSIDE),
    "com.fasterxml.jackson.datatype": ("Apache-2.0", _INSIDE),
    "com.github.ben-manes.caffeine": ("Apache-2.0", _INSIDE),
    "com.github.luben": ("BSD-2-Clause", _MANIFEST),
    "com.google.re2j": (
        "BSD-3-Clause",
        "as the project says: the licence of Go; not read from the jar",
    ),
    "com.typesafe.scala-logging": ("Apache-2.0", _MANIFEST),
    "com.yammer.metrics": ("Apache-2.0", _PROJECT),
    "commons-beanutils": ("Apache-2.0", _INSIDE),
    "commons-collections": ("Apache-2.0", _INSIDE),
    "commons-digester": ("Apache-2.0", _INSIDE),
    "commons-logging": ("Apache-2.0", _INSIDE),
    "commons-validator": ("Apache-2.0", _INSIDE),
    "net.sf.jopt-simple": ("MIT", _MANIFEST),
    "net.sourceforge.argparse4j": ("MIT", "the POM inside of the jar"),
    "org.apache.commons": ("Apache-2.0", _INSIDE),
    "org.apache.hadoop": ("Apache-2.0", _PROJECT),
    "org.apache.kafka": ("Apache-2.0", _INSIDE),
    "org.apache.logging.log4j": ("Apache-2.0", _INSIDE),
    "org.apache.spark": ("Apache-2.0", _INSIDE),
    "org.bitbucket.b_c": ("Apache-2.0", _MANIFEST),
    "org.hdrhistogram": ("CC0-1.0 OR BSD-2-Clause", _MANIFEST),
    "org.jspecify": ("Apache-2.0", _MANIFEST),
    "org.pcollections": ("MIT", _PROJECT),
    "org.reactivestreams": ("MIT-0", "as the project says, from 1.0.4 on; not read from the jar"),
    "org.scala-lang": ("Apache-2.0", _INSIDE),
    "org.slf4j": ("MIT", _PROJECT),
    "org.xerial.snappy": ("Apache-2.0", _MANIFEST),
    "org.yaml": ("Apache-2.0", _MANIFEST),
    "software.amazon.awssdk": ("Apache-2.0", _PROJECT),
    "software.amazon.eventstream": ("Apache-2.0", _PROJECT),
    "software.amazon.s3.analyticsaccelerator": ("Apache-2.0", _PROJECT),
}


class UnknownLicenceError(Exception):
    """Nothing says what the licence is: look it up, and add a line to the table."""


def licence_of_package(name: str) -> str:
    """From the table, else from the metadata of the installed package."""
    if name in PACKAGES:
        return PACKAGES[name][0]
    found = said_by_package(name)
    if found is None:
        raise UnknownLicenceError(f"the package {name}: add it to PACKAGES in {__file__}")
    return found


def said_by_package(name: str) -> str | None:
    """The SPDX expression of an installed package, if it has one."""
    try:
        said = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    return next(iter(said.get_all("License-Expression") or []), None)


def licence_of_jar(group: str, artifact: str) -> str:
    for name in (f"{group}:{artifact}", group):
        if name in JARS:
            return JARS[name][0]
    raise UnknownLicenceError(f"the jar {group}:{artifact}: add it to JARS in {__file__}")


def is_allowed(expression: str, inner_jar: str = "") -> bool:
    """Of alternatives one must be allowed, of those that hold together all.

    `inner_jar` is the `group:artifact` of a jar inside of Spark's package.
    """
    for_this = {licence for licence, jars in ALLOWED_FOR.items() if inner_jar in jars}
    return holds(expression, ALLOWED | for_this)
