"""`penstock doctor`: checks all that Penstock needs. Each line is ok, or says what to do."""

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

import typer
from rich.markup import escape
from rich.table import Table

from penstock.cli.console import (
    OUTPUT_OPTION,
    OutputFormat,
    foreign_output_to_stderr,
    print_data,
)
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.cli.quiet_spark import quiet_session
from penstock.cli.told_progress import ToldProgress
from penstock.controller.process.prefix_holder import prefix_state
from penstock.errors import NotPermittedError, PenstockError, UnreachableError
from penstock.extras import Extra, has_extra, install_command
from penstock.jars import JarSet, jar_paths, spark_sets
from penstock.jars.java import find_java
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.client_properties import require_usable
from penstock.kafka_io.control_topics import findings_for, needed_topics, optional_findings
from penstock.kafka_io.leaders_records import may_ask_who_leads
from penstock.model.sentences import counted
from penstock.monitor.included_topics import require_included
from penstock.settings import Settings
from penstock.topics import TopicState

CONNECT_TIMEOUT_S = 3.0
# A check that takes longer than this says that it goes on.
SAID_AGAIN_AFTER_S = 2.0
CLUSTER_RIGHTS = frozenset({"DESCRIBE"})
_CHECKED = {
    "java": "Java",
    "spark server": "how the Spark Connect server is reached",
    "ports": "whether a broker's port answers",
    "encryption": "encryption",
    "broker": "whether the brokers answer",
    "included": "whether any topic matches monitor.include",
    "topics": "the control topics",
    "prefix": "whether another group has the control topics",
    "rights": "the rights in Kafka",
}
CONTROL_TOPIC_RIGHTS = frozenset({"DESCRIBE", "READ", "WRITE"})


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    explanation: str
    remedy: str = ""
    exit_code: int = 0
    # It works, but is probably a mistake: all records would be dead letters.
    is_doubtful: bool = False

    @property
    def is_ok(self) -> bool:
        return self.exit_code == 0


def doctor(
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Check Java, jars, the lake, ports, the broker, the control topics, rights, transformations.

    The lake gets a file in a folder of its own, which is removed again. Each transformation of the
    settings runs on a few records of its topic.

    What is being checked is said on stderr, for it takes a while. The exit code is 0 when all
    checks pass, else that of the first check that fails. `??` marks what works but is
    probably a mistake: a transformation that makes a dead letter of every record.
    """
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    with foreign_output_to_stderr(), ToldProgress(first_after_s=SAID_AGAIN_AFTER_S) as tell:
        checks = list(_checks(loaded, tell))
    table = Table("", "check", "", box=None, show_header=False)
    for check in checks:
        mark = "[green]ok[/]" if check.is_ok else "[red]!![/]"
        mark = "[yellow]??[/]" if check.is_doubtful else mark
        table.add_row(mark, check.name, escape(f"{check.explanation} {check.remedy}".rstrip()))
    rows = [
        {
            "check": one.name,
            "ok": one.is_ok,
            "is_doubtful": one.is_doubtful,
            "explanation": one.explanation,
            "remedy": one.remedy,
        }
        for one in checks
    ]
    print_data(rows, output, table)
    wrong = [check.exit_code for check in checks if not check.is_ok]
    if wrong:
        raise typer.Exit(wrong[0])


def _checks(settings: Settings, tell: ToldProgress) -> Iterator[Check]:
    tried = partial(_tried, tell)
    yield Check("extras", _extras())
    # Nothing else runs Java: controller, monitor and a consumer of a Connect server do not.
    if has_extra(Extra.SPARK):
        yield tried("java", _java)
        for jar_set in (JarSet.BROKER, *spark_sets(settings.spark.object_store)):
            yield tried(f"{jar_set} jars", partial(_jars, jar_set))
    if settings.spark.uses_connect_server and (has_extra(Extra.SPARK) or has_extra(Extra.CONNECT)):
        yield tried("spark server", lambda: _spark_server(settings))
    trials = _trials(settings, tell)
    yield from islice(trials, 1)  # the lake
    ports = tried("ports", lambda: _ports(settings))
    yield ports
    encryption = tried("encryption", lambda: _encryption(settings))
    yield encryption
    if not encryption.is_ok:
        return
    broker = (
        tried("broker", lambda: _broker(settings))
        if ports.is_ok
        else Check("broker", "not checked: no port answers.", exit_code=ports.exit_code)
    )
    yield broker
    if not broker.is_ok:
        return
    yield tried("included", lambda: _included(settings))
    yield tried("topics", lambda: _topics(settings))
    yield tried("prefix", lambda: prefix_state(settings))
    yield tried("rights", lambda: _rights(settings))
    yield from trials


def _trials(settings: Settings, tell: ToldProgress) -> Iterator[Check]:
    """The lake, then every transformation on a few records, where consumers could run."""
    if not (has_extra(Extra.SPARK) or has_extra(Extra.CONNECT)):
        return
    tell.if_long("loading Spark")
    from penstock.pipeline.trial import try_out  # noqa: PLC0415 -- slow: PySpark

    for one in try_out(settings, lambda: quiet_session(settings.spark), tell):
        wrong = one.error
        yield (
            Check(one.name, one.explanation, is_doubtful=one.is_doubtful)
            if wrong is None
            else Check(one.name, one.explanation, wrong.remedy, wrong.exit_code)
        )


def _tried(tell: ToldProgress, name: str, check: Callable[[], str]) -> Check:
    tell(f"checking {_CHECKED.get(name, name)}")
    try:
        return Check(name, check())
    except PenstockError as error:
        return Check(name, error.message, error.remedy, error.exit_code)


def _extras() -> str:
    """List the extras. A missing one is no error: not every machine needs every extra."""
    there = [str(extra) for extra in Extra if has_extra(extra)]
    missing = [install_command(extra) for extra in Extra if not has_extra(extra)]
    if has_extra(Extra.CONNECT) and not has_extra(Extra.SPARK):
        # Both bring the package pyspark, so all of Spark needs an environment of its own.
        missing = [install_command(Extra.KUBERNETES)] if not has_extra(Extra.KUBERNETES) else []
    found = f"installed: {', '.join(there) or 'none'}"
    return f"{found}; for more: {', '.join(missing)}" if missing else found


def _java() -> str:
    java = find_java()
    return f"Java {java.version} at {java.path}"


def _jars(jar_set: JarSet) -> str:
    return f"{len(jar_paths(jar_set))} jars, checksums as locked"


def _spark_server(settings: Settings) -> str:
    """How sessions are opened there, and what others could see of it."""
    from penstock.pipeline.server_token import (  # noqa: PLC0415 -- slow: PySpark
        require_safe_server,
        token_for,
    )

    spark = settings.spark
    require_safe_server(spark)
    token = "without a token" if token_for(spark) is None else "with a token"
    if spark.is_exposed:
        return (
            f"WARNING: {spark.master}, {token} and not encrypted, as spark.insecure says: who is "
            "on the way can run code in it"
        )
    where = "encrypted" if spark.is_encrypted else "on this machine only"
    return f"{spark.master}, {token}, {where}"


def _ports(settings: Settings) -> str:
    """At least one bootstrap server must accept a connection."""
    refused = []
    for address in settings.kafka.bootstrap_servers.split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT_S).close()
        except OSError as error:
            refused.append(f"{address} ({error.strerror or error})")
        else:
            return f"{address} accepts connections"
    raise UnreachableError(
        f"nothing listens at {', '.join(refused)}.",
        remedy="Start a broker (`penstock broker start`) or set kafka.bootstrap_servers.",
    )


def _encryption(settings: Settings) -> str:
    kafka = settings.kafka
    require_usable(kafka)
    if kafka.unencrypted_servers:
        return (
            f"WARNING: not encrypted, as kafka.insecure says ({kafka.security_protocol} to "
            f"{', '.join(kafka.unencrypted_servers)}): everybody on the way can read and change "
            "records and commands"
        )
    if kafka.security_protocol.endswith("PLAINTEXT"):
        return f"{kafka.security_protocol}, on this machine only"
    if kafka.properties.get("ssl.endpoint.identification.algorithm") == "none":
        return (
            f"WARNING: {kafka.security_protocol}: encrypted, but the name in the broker's "
            "certificate is not compared (ssl.endpoint.identification.algorithm none): who has any "
            "certificate of the same authority can stand in for the broker"
        )
    has_certificate = "ssl.certificate.location" in kafka.properties
    own = ", with a certificate of this client" if has_certificate else ""
    return f"{kafka.security_protocol}: encrypted{own}"


def _broker(settings: Settings) -> str:
    cluster = Administration(settings.kafka).cluster()
    count = len(cluster.broker_ids)
    verb = "answers" if count == 1 else "answer"
    topics = counted(len(cluster.partition_counts), "topic")
    return f"{counted(count, 'broker')} {verb}, {topics}"


def _included(settings: Settings) -> str:
    require_included(settings)
    return f"topics that match {', '.join(settings.monitor.include)} are carried"


def _topics(settings: Settings) -> str:
    administration = Administration(settings.kafka)
    found = findings_for(administration, needed_topics(settings))
    wrong: dict[str, list[str]] = {}
    for one in found:
        if one.verdict is not TopicState.OK:
            wrong.setdefault(one.explanation, []).append(one.topic)
    if wrong:
        told = [f"{', '.join(topics)}: {what}" for what, topics in wrong.items()]
        raise PenstockError("; ".join(told) + ".")
    missed = [
        f"; {one.topic} {one.explanation}; until then each consumer commits for itself"
        for one in optional_findings(administration, settings)
        if one.verdict is not TopicState.OK
    ]
    return f"the control topics {settings.topics.prefix}-* are usable{''.join(missed)}"


def _rights(settings: Settings) -> str:
    administration = Administration(settings.kafka)
    missing = [
        f"{right} on the cluster" for right in CLUSTER_RIGHTS - administration.cluster_rights()
    ]
    names = [topic.name for topic in needed_topics(settings)]
    for name, rights in administration.topic_rights(names).items():
        missing += [f"{right} on topic {name}" for right in sorted(CONTROL_TOPIC_RIGHTS - rights)]
    leader = settings.topics.names.transactional_id(settings.lake.group)
    if not may_ask_who_leads(settings.kafka, leader):
        missing.append(f"DESCRIBE on transactional id {leader}")
    if missing:
        raise NotPermittedError(
            f"this principal lacks {', '.join(missing)}.",
            remedy="docs/security.md lists the rights each role needs.",
        )
    has = "describe the cluster; describe, read and write the control topics; ask who leads"
    return has + _missing_for_optional_topics(administration, settings)


def _missing_for_optional_topics(administration: Administration, settings: Settings) -> str:
    """What is missing for topics that stop nothing."""
    found = optional_findings(administration, settings)
    there = [one.topic for one in found if one.verdict is TopicState.OK]
    lacked = [
        f"{right} on topic {name}"
        for name, rights in (administration.topic_rights(there) if there else {}).items()
        for right in sorted(CONTROL_TOPIC_RIGHTS - rights)
    ]
    return f"; without {', '.join(lacked)} each consumer commits for itself" if lacked else ""
