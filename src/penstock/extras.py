"""Which part of Penstock needs which extra of its package, and what to say when one is missing.

`pip install penstock` brings the controller, the monitor, the operator's commands and `simulate`.
What is large or only for some comes as an extra (pyproject.toml lists their packages):

    connect      a consumer of a Spark Connect server: Spark's client and the lake's writer
    spark        all of Spark: a Connect server, consumers with a Spark of their own, `penstock up`
    kubernetes   a controller whose consumers are Deployments of a cluster
    page         the live page and its API
    laboratory   `demo`, `campaign`, `study` and `simulate --plot`: all of Spark, the page, pictures
"""

import importlib.util
from enum import StrEnum

from penstock.errors import PenstockError


class Extra(StrEnum):
    CONNECT = "connect"
    SPARK = "spark"
    KUBERNETES = "kubernetes"
    PAGE = "page"
    LABORATORY = "laboratory"


# The module by which an extra is known to be installed. Both kinds of Spark have the module
# `pyspark`; only all of Spark has the bridge to Java.
_KNOWN_BY = {
    Extra.CONNECT: ("pyspark", "deltalake"),
    Extra.SPARK: ("py4j", "pyspark", "deltalake"),
    Extra.KUBERNETES: ("kubernetes",),
    Extra.PAGE: ("starlette", "uvicorn"),
    Extra.LABORATORY: ("matplotlib", "starlette", "py4j", "pyspark", "deltalake"),
}
_EXTRA_OF_MODULE = {
    "deltalake": Extra.SPARK,
    "kubernetes": Extra.KUBERNETES,
    "matplotlib": Extra.LABORATORY,
    "obstore": Extra.SPARK,
    "pandas": Extra.SPARK,
    "py4j": Extra.SPARK,
    "pyarrow": Extra.SPARK,
    "pyspark": Extra.SPARK,
    "starlette": Extra.PAGE,
    "urllib3": Extra.KUBERNETES,
    "uvicorn": Extra.PAGE,
}
_LABORATORY_COMMANDS = ("demo", "campaign", "simulate", "study")
# These run with Spark's client as well, so both extras serve.
_EITHER_SPARK = ("consumer", "lake", "try", "verify")


class MissingExtraError(PenstockError):
    """A command needs packages that were not installed with Penstock."""


def install_command(extra: Extra) -> str:
    return f"pip install 'penstock[{extra}]'"


def has_extra(extra: Extra) -> bool:
    """Looked up without importing anything: Spark takes seconds."""
    return all(_is_installed(module) for module in _KNOWN_BY[extra])


def missing_extra(error: ImportError, command: str = "") -> MissingExtraError | None:
    """The error for people, if a module is missing because its extra was not installed."""
    module = (error.name or "").partition(".")[0]
    extra = _EXTRA_OF_MODULE.get(module)
    # Spark's client alone has the module `pyspark`, but not everything in it.
    only_client = module == "pyspark" and not _is_installed("py4j")
    if extra is None or (_is_installed(module) and not only_client):
        return None
    if command in _LABORATORY_COMMANDS:
        extra = Extra.LABORATORY
    remedy = f"Run: {install_command(extra)}"
    if command in _EITHER_SPARK and extra is Extra.SPARK:
        remedy += f"; for use with a Spark Connect server only: {install_command(Extra.CONNECT)}"
    what = f"`penstock {command}`" if command else "This"
    return MissingExtraError(
        f"{what} needs the Python package {module}, which is not installed here.", remedy=remedy
    )


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # somebody put None or a module without a spec into sys.modules
        return False
