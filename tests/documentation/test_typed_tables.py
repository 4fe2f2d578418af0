"""docs/typed-tables.md from top to bottom, on a broker with TLS and a login, and real Spark."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from documents.examples import examples_in
from kit.generated_files import ROOT
from kit.kafka.secured_broker import SecuredBroker, secured_broker
from kit.lake.delta_spark import packages_from_cache
from kit.terminal import Terminal, succeeds, wait_until_said
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.producer import RecordProducer

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]
PAGE = ROOT / "docs" / "typed-tables.md"
SERVERS = "broker-1.example:9094,broker-2.example:9094"
RECORDS, PARTITIONS = 20_000, 4
IN_FOLDER = "cd orders-to-tables\nexport PYTHONPATH=$PWD"
# What a user has from DuckDB's own server comes from a package here.
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE]\+?[0-9]+)?")
GET_EXTENSION = "from duckdb_extensions import import_extension; import_extension('delta')"


def blocks() -> dict[str, str]:
    marked = (one for one in examples_in(ROOT, PAGE) if one.mark.startswith("run: as "))
    return {one.mark.removeprefix("run: as typed-tables-"): one.text for one in marked}


def settings_example() -> str:
    (found,) = (one for one in examples_in(ROOT, PAGE) if one.mark == "settings")
    return found.text


@pytest.fixture
def broker(broker_jars: None, tmp_path: Path) -> Iterator[SecuredBroker]:
    """Waiting JSON records, as in the page's example."""
    folder = tmp_path / "secured"
    folder.mkdir()
    with secured_broker(folder, user="penstock") as running:
        Administration(running.kafka.settings).create_topic("orders", partitions=PARTITIONS)
        producer = RecordProducer(running.kafka.settings)
        for number in range(RECORDS):
            value = json.dumps({"id": f"order-{number}", "amount": number / 2}).encode()
            producer.send("orders", number % PARTITIONS, value)
            producer.poll()
        assert not producer.flush(240)
        yield running


def commands(text: str) -> list[str]:
    return [line.partition("  #")[0].strip() for line in text.splitlines()]


def test_the_page_from_top_to_bottom(
    broker: SecuredBroker, spark_jars: None, own_cache: Path, tmp_path: Path
) -> None:
    """Only the address and the folder of the certificates are others."""
    text = blocks()
    begun = Terminal(tmp_path, "true", own_cache).run(f"set -e\n{text['begin']}")
    assert begun.returncode == 0, begun.stderr
    terminal = Terminal(tmp_path, IN_FOLDER, own_cache)
    mine = terminal.folder / "orders-to-tables"
    settings = settings_example().replace(SERVERS, broker.address["LOGIN"])
    settings = settings.replace("/etc/penstock", str(broker.folder))
    (mine / "penstock.yaml").write_text(settings, encoding="utf-8")

    for command in (*commands(text["look"]), *commands(text["try"])):
        done = terminal.run(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert not (mine / "lake").exists(), "nothing is written before the start"

    *prepare, up = commands(text["start"])
    for command in prepare:
        succeeds(terminal, command, within_s=0)
    with terminal.running(up) as output:
        wait_until_said(output, "The group is up.")
        until_carried(terminal)
        for command in (*commands(text["watch"]), *commands(text["change"])):
            done = terminal.run(command)
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    succeeds(terminal, text["compact"].strip(), within_s=0)

    total = sum(number / 2 for number in range(RECORDS))
    arguments = f"{packages_from_cache(tmp_path)} --master local[1] pyspark-shell"
    for reader in ("duckdb", "polars", "spark"):
        program = tmp_path / f"{reader}_reads.py"
        first = f"{GET_EXTENSION}\n" if reader == "duckdb" else ""
        program.write_text(first + text[reader], encoding="utf-8")
        # What the tests' own Spark has set means another Spark than a user's.
        plain = "env -u SPARK_CONNECT_MODE_ENABLED -u SPARK_REMOTE python"
        done = terminal.run(f"{plain} {program}", {"PYSPARK_SUBMIT_ARGS": arguments})
        assert done.returncode == 0, done.stderr
        figures = [float(one) for one in NUMBER.findall(done.stdout)]
        assert RECORDS in figures, f"{reader}: {done.stdout}"
        assert any(abs(one - total) < 1 for one in figures), f"{reader}: {done.stdout}"


def until_carried(terminal: Terminal) -> None:
    """`penstock verify` also passes while nothing is carried: wait until all of it is."""
    deadline_s = time.monotonic() + 600
    while True:
        done = terminal.run("penstock lake ledger -o json")
        rows = json.loads(done.stdout) if done.returncode == 0 else []
        if sum(row["offset"] or 0 for row in rows) >= RECORDS:
            return
        assert time.monotonic() < deadline_s, done.stdout + done.stderr
        time.sleep(2)  # each look is a program of its own
