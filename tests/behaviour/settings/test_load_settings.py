"""Flags win over the environment, the environment over the file; unknown names are errors."""

from pathlib import Path

import pytest

from penstock.errors import SettingsError
from penstock.settings import load_settings
from penstock.settings.sections.kafka import CLIENT_PROPERTIES_ALLOWED


def written(directory: Path, text: str) -> Path:
    file = directory / "penstock.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_each_layer_wins_over_the_one_below(tmp_path: Path) -> None:
    """A value comes from the highest layer that has it, and keeps its origin."""
    file = written(
        tmp_path,
        "kafka:\n  bootstrap_servers: file:1\n  answer_timeout: 1s\ntopics:\n  prefix: from-file\n",
    )
    loaded = load_settings(
        file,
        flags={"kafka.bootstrap_servers": "flag:3"},
        environment={
            "PENSTOCK_KAFKA__BOOTSTRAP_SERVERS": "environment:2",
            "PENSTOCK_KAFKA__ANSWER_TIMEOUT": "2s",
        },
    )
    assert loaded.settings.kafka.bootstrap_servers == "flag:3"
    assert loaded.settings.kafka.answer_timeout == 2
    assert loaded.settings.topics.prefix == "from-file"
    assert loaded.origin["kafka", "bootstrap_servers"] == "flag for kafka.bootstrap_servers"
    expected = "environment PENSTOCK_KAFKA__ANSWER_TIMEOUT"
    assert loaded.origin["kafka", "answer_timeout"] == expected
    assert loaded.origin["topics", "prefix"] == str(file)
    assert ("log", "level") not in loaded.origin


def test_nothing_given_is_the_default() -> None:
    """Without a file, environment or flags every option has its default."""
    loaded = load_settings(environment={})
    assert loaded.settings.topics.prefix == "data-engineering"
    assert loaded.origin == {}


def test_the_file_may_be_named_in_the_environment(tmp_path: Path) -> None:
    """PENSTOCK_SETTINGS names the file; it is not itself a setting."""
    file = written(tmp_path, "topics: {prefix: named}")
    loaded = load_settings(environment={"PENSTOCK_SETTINGS": str(file), "PENSTOCK_CACHE": "/x"})
    assert loaded.settings.topics.prefix == "named"


def test_a_file_here_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """penstock.yaml in the working directory is read without being named."""
    written(tmp_path, "topics: {prefix: here}")
    monkeypatch.chdir(tmp_path)
    assert load_settings(environment={}).settings.topics.prefix == "here"


def test_sections_may_be_empty(tmp_path: Path) -> None:
    """A file with only comments gives the defaults."""
    assert load_settings(written(tmp_path, "kafka:\ntopics:\n"), environment={}).origin == {}
    assert load_settings(written(tmp_path, ""), environment={}).origin == {}


@pytest.mark.parametrize(
    ("text", "explanation"),
    [
        ("kafak: {}", "unknown setting kafak"),
        ("kafka: {bootstrap_server: 'a:1'}", "Did you mean kafka.bootstrap_servers"),
        ("topics: {monitor_retention: 3 parsecs}", "unknown unit 'parsecs'"),
        ("kafka: {answer_timeout: 30}", "has no unit"),
        ("kafka: {answer_timeout: 0s}", "greater than 0"),
        ("kafka: {bootstrap_servers: nonsense}", "kafka.bootstrap_servers"),
        ("kafka: {properties: {sasl.password: x}}", "is a secret"),
        ("kafka: {properties: {group.instance.id: x}}", "is not allowed"),
        ("kafka: {properties: nothing}", "kafka.properties"),
        ("kafka: {sasl_password: hunter2}", "is a secret and is not allowed here"),
        ("topics: {prefix: 'a/b'}", "is not a valid prefix of a Kafka topic name"),
        ("log: {level: loud}", "log.level"),
        ("lake: {root: /data/50%20}", "lake.root"),
        ("lake: {root: ''}", "lake.root: it is empty; name a folder"),
        ("lake: {root: ' '}", "lake.root: it is empty; name a folder"),
        (
            "controller: {consumers_min: 0, consumers_max: 0}",
            "controller.consumers_max: with 0 consumers nobody would read; set 1 or more",
        ),
        (
            "lake: {tables: {a: {table: b, partition_by: [date]}, b: {partition_by: [topic]}}}",
            "a and b both go to the table b, but a has partition_by ['date'] and b has ['topic']",
        ),
        (
            "lake: {tables: {a: {table: t, partition_by: [date]}, b: {table: t}}}",
            "lake.tables: topics a and b both go to the table t, but a has partition_by ['date']",
        ),
        (
            "lake: {tables: {a: {table: t, columns: [id]}, b: {table: t, columns: [x, ID]}}}",
            "lake.tables: topics a and b both go to the table t, but a has the column 'id' and",
        ),
        (
            "lake: {tables: {a: {table: t, file_size: 2MiB}, b: {table: t}}}",
            "lake.tables: topics a and b both go to the table t, but a has file_size 2097152 and",
        ),
        (
            "lake: {tables: {a: {table: t, sort_by: [id]}, b: {table: t, sort_by: [day]}}}",
            "lake.tables: topics a and b both go to the table t, but a has sort_by ['id'] and",
        ),
        ("lake: {tables: {a: {file_size: 1kB}}}", "the smallest size is 1MiB"),
        ("lake: {tables: {a: {sort_by: [id, ID]}}}", "the column 'ID' is named more than once"),
        (
            "lake: {tables: {a: {columns: [id], sort_by: [day]}}}",
            "sort_by names 'day', which is not in columns",
        ),
        (
            "lake: {tables: {a: {partition_by: [date], sort_by: [date]}}}",
            "sort_by names 'date', which partition_by names, too",
        ),
        ("lake: {compact_share: 0}", "lake.compact_share"),
        ("just text", "unknown setting"),
        ("a: [unclosed", "line 1, column"),
    ],
)
def test_wrong_files_are_refused_with_one_clear_message(
    tmp_path: Path, text: str, explanation: str
) -> None:
    """Each error names the file and the mistake in one line."""
    file = written(tmp_path, text)
    with pytest.raises(SettingsError) as raised:
        load_settings(file, environment={})
    assert str(file) in str(raised.value)
    assert explanation in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("environment", "explanation"),
    [
        ({"PENSTOCK_KAFAK__X": "1"}, "PENSTOCK_KAFAK__X: unknown setting kafak.x"),
        ({"PENSTOCK_KAFKA__ANSWER_TIMEOUT": "soon"}, "environment PENSTOCK_KAFKA__ANSWER_TIMEOUT"),
        ({"PENSTOCK_KAFKA__PROPERTIES": "{a: "}, "not valid YAML"),
        ({"PENSTOCK_SPARK__WORKERS_RETRY": "0s"}, "environment PENSTOCK_SPARK__WORKERS_RETRY"),
    ],
)
def test_wrong_environment_is_refused(environment: dict[str, str], explanation: str) -> None:
    """An unknown or wrong variable is an error that names it."""
    with pytest.raises(SettingsError, match=explanation):
        load_settings(environment=environment)


def test_unknown_flags_are_refused() -> None:
    """`--set` with an unknown name is refused."""
    with pytest.raises(SettingsError, match=r"unknown setting topics\.prefx"):
        load_settings(flags={"topics.prefx": "x"}, environment={})


def test_collections_come_from_the_environment_as_yaml() -> None:
    """A mapping in a variable is YAML; booleans become Kafka's `true` and `false`."""
    loaded = load_settings(
        environment={
            "PENSTOCK_KAFKA__PROPERTIES": "{security.protocol: SSL, socket.keepalive.enable: true}"
        }
    )
    assert loaded.settings.kafka.properties == {
        "security.protocol": "SSL",
        "socket.keepalive.enable": "true",
    }


def test_a_missing_file_is_a_settings_error(tmp_path: Path) -> None:
    """A named file that does not exist is a settings error."""
    with pytest.raises(SettingsError, match="Could not read the settings file"):
        load_settings(tmp_path / "none.yaml", environment={})


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    """A file that is too large is refused before it is parsed."""
    with pytest.raises(SettingsError, match="too large"):
        load_settings(written(tmp_path, "#" * 1_100_000), environment={})


def test_a_yaml_that_builds_objects_is_refused(tmp_path: Path) -> None:
    """YAML tags that construct objects are refused."""
    with pytest.raises(SettingsError, match="not valid YAML"):
        load_settings(written(tmp_path, "a: !!python/object/apply:os.system [x]"), environment={})


def test_the_longest_retry_is_no_shorter_than_the_first(tmp_path: Path) -> None:
    """Two waits that contradict each other are refused."""
    file = written(tmp_path, "consumer: {retry_longest: 100ms}")
    with pytest.raises(SettingsError, match="retry_longest is shorter than retry_first"):
        load_settings(file, environment={})


def test_a_local_consumer_is_not_killed_before_its_batch_may_end() -> None:
    """The controller waits longer for a clean shutdown than it may take; Kubernetes has its own."""
    short = {"controller.consumer_grace": "5s", "consumer.grace": "60s"}
    with pytest.raises(SettingsError) as raised:
        load_settings(flags=short, environment={})
    assert str(raised.value).splitlines()[0] == (
        "controller.consumer_grace (5s) is not longer than consumer.grace (1m): local consumers "
        "would be killed during a batch."
    )
    load_settings(flags={**short, "controller.deployment": "kubernetes"}, environment={})
    load_settings(flags={**short, "controller.consumer_grace": "61s"}, environment={})


def test_topics_may_share_a_table(tmp_path: Path) -> None:
    """With the same partitioning; columns that one of them lacks are empty in its rows."""
    tables = (
        "a: {table: t, partition_by: [date], columns: [id, date]}, "
        "b: {table: t, partition_by: [date], columns: [date, total]}, c: {partition_by: [x]}"
    )
    file = written(tmp_path, f"lake: {{tables: {{{tables}}}}}")
    assert len(load_settings(file, environment={}).settings.lake.tables) == 3


def test_consumers_are_bounded_where_nothing_is_set() -> None:
    """Locally by the cores, elsewhere by a number; the reason is told. A value that is set wins."""
    path = ("controller", "consumers_max")
    local = load_settings(environment={}, cores=2)
    assert local.settings.controller.consumers_max == 8
    assert local.derived[path] == "default: 4 for each of 2 cores of this machine"
    assert path not in local.origin
    at_least = load_settings(flags={"controller.consumers_min": 9}, environment={}, cores=2)
    assert at_least.settings.controller.consumers_max == 9
    elsewhere = load_settings(
        flags={"controller.deployment": "kubernetes"}, environment={}, cores=2
    )
    assert elsewhere.settings.controller.consumers_max == 100
    assert elsewhere.derived[path] == "default: the bound where consumers are not local"
    loaded = load_settings(flags={"controller.consumers_max": 50}, environment={}, cores=2)
    assert loaded.settings.controller.consumers_max == 50
    assert path not in loaded.derived


def test_an_unknown_key_of_a_table_is_named(tmp_path: Path) -> None:
    """With the nearest name; `lake.tables: Extra inputs are not permitted` named nothing."""
    near = written(tmp_path, "lake:\n  tables:\n    orders:\n      transformations: a.b:c\n")
    with pytest.raises(SettingsError) as wrong:
        load_settings(near, environment={})
    assert "unknown setting lake.tables.orders.transformations" in wrong.value.message
    assert str(near) in wrong.value.message
    assert wrong.value.remedy == "Did you mean transformation?"
    far = written(tmp_path, "lake:\n  tables:\n    orders:\n      zzz: 1\n")
    with pytest.raises(SettingsError) as wrong:
        load_settings(far, environment={})
    names = "columns, file_size, partition_by, rows, sort_by, table, transformation"
    assert wrong.value.remedy == f"A table has {names}."


def test_a_minimum_above_the_maximum_is_refused() -> None:
    """By flags or by file: the group could keep neither."""
    flags = {"controller.consumers_min": "5", "controller.consumers_max": "2"}
    with pytest.raises(SettingsError, match="consumers_min 5 is above consumers_max 2"):
        load_settings(flags=flags, environment={})


def test_a_capacity_without_a_unit_is_refused() -> None:
    """It says what was probably meant."""
    with pytest.raises(SettingsError, match=r"packing\.capacity: .*did you mean 2MB/s"):
        load_settings(flags={"packing.capacity": "2"}, environment={})


def test_a_capacity_is_measured_unless_one_is_set() -> None:
    """And the option of an earlier release says what to do instead."""
    for flags in ({}, {"packing.capacity": "auto"}):
        asked = load_settings(flags=flags, environment={}).settings.packing
        assert (asked.is_capacity_measured, asked.first_capacity_bytes_per_s) == (True, 10e6)
    flags = {"packing.capacity": "3MB/s"}
    chosen = load_settings(flags=flags, environment={}).settings.packing
    assert (chosen.is_capacity_measured, chosen.first_capacity_bytes_per_s) == (False, 3e6)
    with pytest.raises(SettingsError, match="unknown setting") as wrong:
        load_settings(flags={"controller.capacity_is_learned": "true"}, environment={})
    assert "`packing.capacity: auto`" in wrong.value.remedy


def properties(text: str) -> None:
    load_settings(environment={"PENSTOCK_KAFKA__PROPERTIES": text})


def test_the_allowed_kafka_properties_are_named_when_another_is_set() -> None:
    """With the nearest one, and all of them."""
    with pytest.raises(SettingsError) as wrong:
        properties("{ssl.ca.locaton: /ca.pem}")
    assert "did you mean ssl.ca.location?" in wrong.value.message
    assert all(name in wrong.value.message for name in CLIENT_PROPERTIES_ALLOWED)
    with pytest.raises(SettingsError, match=r"'zzz' is not allowed\. Allowed are client\.id"):
        properties("{zzz: 1}")


LOGIN = "security.protocol: SASL_SSL, sasl.username: penny"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{LOGIN}, sasl.mechanism: GSSAPI", "'GSSAPI' cannot be used; Penstock logs in with"),
        (f"{LOGIN}, sasl.mechanism: OAUTHBEARER", "ask for a SCRAM user"),
        (f"{LOGIN}, sasl.mechanism: scram-sha-512", "'scram-sha-512' cannot be used"),
        (LOGIN, "SASL_SSL needs sasl.mechanism"),
        ("security.protocol: SASL_SSL, sasl.mechanism: PLAIN", "needs sasl.username"),
        ("security.protocol: TLS", "security.protocol 'TLS' is unknown; use one of PLAINTEXT"),
        ("sasl.mechanism: PLAIN", "no effect with security.protocol PLAINTEXT"),
        ("security.protocol: SSL, sasl.username: penny", "have no effect with security.protocol"),
        ("ssl.ca.location: /ca.pem", "ssl.ca.location has no effect"),
        ("security.protocol: SSL, ssl.key.location: /key.pem", "needs both"),
    ],
)
def test_a_login_that_cannot_work_is_a_settings_error(text: str, reason: str) -> None:
    """It failed later as `no broker answers`."""
    with pytest.raises(SettingsError) as wrong:
        properties(f"{{{text}}}")
    assert reason in wrong.value.message


@pytest.mark.parametrize(
    "text",
    [
        "security.protocol: PLAINTEXT",
        f"{LOGIN}, sasl.mechanism: SCRAM-SHA-512, ssl.ca.location: /ca.pem",
        "security.protocol: SASL_PLAINTEXT, sasl.mechanism: PLAIN, sasl.username: penny",
        "security.protocol: SSL, ssl.key.location: /k.pem, ssl.certificate.location: /c.pem",
    ],
)
def test_a_login_that_can_work_is_taken(text: str) -> None:
    """Plain, TLS with SCRAM, SASL without TLS, mutual TLS."""
    properties(f"{{{text}}}")
