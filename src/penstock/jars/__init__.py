"""The Java archives: named with checksums in lock files, fetched once, verified at every use."""

from penstock.jars.cache import cache_directory, classpath, jar_paths
from penstock.jars.fetch import fetch
from penstock.jars.lock import USUAL_SETS, JarSet, LockedJar, LockFile, locked_jars, spark_sets

__all__ = [
    "USUAL_SETS",
    "JarSet",
    "LockFile",
    "LockedJar",
    "cache_directory",
    "classpath",
    "fetch",
    "jar_paths",
    "locked_jars",
    "spark_sets",
]
