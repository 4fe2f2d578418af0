"""`penstock init`: writes a settings file, a transformation and its test to start from."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import indent
from typing import Annotated

import typer
import yaml

from penstock.cli.console import say
from penstock.cli.options import BootstrapServer
from penstock.errors import PenstockError, UsageError
from penstock.model.topic_partition import is_topic_name

MODULE = "my_transformations"
_SETTINGS = """\
# Settings of Penstock. `penstock settings reference` prints every option with its default.
{kafka}
monitor:
  include: [{patterns}]          # the topics to carry, as regular expressions

lake:
  root: lake                      # a folder, or s3://bucket/path
  tables:
{tables}"""
_TABLE = """\
    {topic}:                      # a topic
      transformation: {module}:decode
      columns: [id, amount, topic, partition, offset, timestamp]
"""
# Written as comments: each way in needs other ones of these lines.
_SECURITY = """\
insecure: true                  # for a broker of another machine without TLS
properties:                     # TLS, with a login
  security.protocol: SASL_SSL
  ssl.ca.location: /etc/penstock/ca.pem
  sasl.mechanism: SCRAM-SHA-512
  sasl.username: penstock
sasl_password_file: /etc/penstock/kafka-password
properties:                     # or, in place of the lines above, TLS with your own certificate
  security.protocol: SSL
  ssl.ca.location: /etc/penstock/ca.pem
  ssl.certificate.location: /etc/penstock/client.pem
  ssl.key.location: /etc/penstock/client-key-and-certificate.pem
"""
_TRANSFORMATION = '''\
"""From the records of Kafka to the rows of a table."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

# Your fields and their types, in Spark's words.
FIELDS = "id string, amount double"


def decode(records: DataFrame) -> DataFrame:
    """JSON objects with an id; what is not that becomes a dead letter."""
    content = F.from_json(F.col("value").cast("string"), FIELDS)
    rows = records.withColumn("id", content["id"]).withColumn("amount", content["amount"])
    return rows.withColumn("_undecodable", F.when(F.col("id").isNull(), "no JSON with an id"))
'''
_TEST = '''\
"""Run it with `pytest`: it needs Java 17, and no Kafka."""

from penstock.testing import run_transformation

COLUMNS = ["id", "amount", "partition", "offset"]


def test_orders_become_rows_and_the_rest_dead_letters():
    """One record has an id, one has none, and one is no JSON."""
    records = ['{"id": "a", "amount": 2.5}', '{"amount": 1}', b"broken"]
    result = run_transformation("MODULE:decode", records, columns=COLUMNS)
    assert result.rows == [{"id": "a", "amount": 2.5, "partition": 0, "offset": 0}]
    assert result.schema["amount"] == "double"
    assert [letter.offset for letter in result.dead_letters] == [1, 2]
'''.replace("MODULE", MODULE)


def init(
    directory: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="Where to write; made if it is not there.")
    ] = Path(),
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", help="A topic to carry; may be given several times. [orders]"),
    ] = None,
    bootstrap_server: BootstrapServer = None,
) -> None:
    """Write penstock.yaml, my_transformations.py and a test of it. Never overwrites a file.

    Example: `penstock init shop --topic orders --bootstrap-server 127.0.0.1:9092`
    """
    topics = list(dict.fromkeys(topic or ["orders"]))
    for one in topics:
        if not is_topic_name(one):
            raise UsageError(f"{one!r} is not a topic's name; it has letters, digits, . _ -")
    files = {
        "penstock.yaml": _settings(topics, bootstrap_server),
        f"{MODULE}.py": _TRANSFORMATION,
        f"test_{MODULE}.py": _TEST,
    }
    there = [name for name in files if (directory / name).exists()]
    if there:
        raise UsageError(
            f"{directory / there[0]} exists already; nothing was written.",
            remedy="Name another directory.",
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            with (directory / name).open("x", encoding="utf-8") as file:
                file.write(content)
            say(f"wrote {directory / name}")
    except OSError as error:
        raise PenstockError(f"Could not write to {directory}: {error.strerror}.") from error
    place = directory.absolute()
    say(f"Next, in {place}:")
    say("  edit penstock.yaml           # how Kafka is reached: TLS and logins are its comments")
    say(f"  edit {MODULE}.py   # your fields; another topic may need a function of its own")
    say(f"  export PYTHONPATH={place}   # where Python looks for {MODULE}")
    say("  pytest                       # the test of the transformation")
    say(f"  penstock try {topics[0]}          # the transformation on real records")


def _settings(topics: Sequence[str], bootstrap_server: str | None) -> str:
    secured = indent(_SECURITY, "  # ")
    kafka = f"\nkafka:\n  bootstrap_servers: {bootstrap_server}\n{secured}"
    if bootstrap_server is None:
        kafka = (
            "\n# Without this, `penstock up` starts a Kafka of its own.\n"
            "# kafka:\n#   bootstrap_servers: 127.0.0.1:9092\n" + indent(_SECURITY, "#   ")
        )
    patterns = ", ".join(f'"{topic.replace(".", "[.]")}"' for topic in topics)
    tables = "".join(_TABLE.format(topic=_as_yaml(topic), module=MODULE) for topic in topics)
    return _SETTINGS.format(kafka=kafka, patterns=patterns, tables=tables)


def _as_yaml(topic: str) -> str:
    """In quotes where YAML would read another value than this text: `123` or `null`."""
    return str(yaml.safe_dump(topic)).splitlines()[0]
