"""Parsers of what operators write: settings, the environment, flags, units, recorded streams."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from kit.fuzz.parser import Form, Parser
from penstock.cli.options import named_values
from penstock.deployment.kubernetes.process.credentials import access
from penstock.deployment.kubernetes.process.from_settings import read_pod_template
from penstock.errors import SettingsError, UsageError
from penstock.jars.java import java_version
from penstock.jars.lock import LockedJar
from penstock.laboratory.packing_replay.stream import read_stream
from penstock.settings import load_settings
from penstock.settings.sections import KubernetesSettings
from penstock.settings.snapshot import snapshot_text
from penstock.settings.units import parse_bytes, parse_duration, parse_speed

_FILE = b"""kafka:
  bootstrap_servers: broker-1:9092
  properties:
    security.protocol: SASL_SSL
    sasl.mechanism: PLAIN
    sasl.username: penstock
monitor:
  include: ["orders.*", "payments"]
  window: 30s
packing:
  capacity: 2MB/s
controller:
  consumers_max: 9
lake:
  root: ./lake
  tables:
    orders:
      transformation: mine:clean
      partition_by: [day]
spark:
  options:
    spark.sql.shuffle.partitions: 8
log:
  level: info
"""
_MARK = b'# penstock-snapshot {"file": "/etc/penstock.yaml", "origins": {"lake.root": "x"}}\n'
_ENVIRONMENT = b"""PENSTOCK_KAFKA__BOOTSTRAP_SERVERS=broker-1:9092
PENSTOCK_KAFKA__SASL_PASSWORD=x
PENSTOCK_MONITOR__INCLUDE=["orders.*"]
PENSTOCK_PACKING__CAPACITY=2MB/s
PENSTOCK_CONTROLLER__CONSUMERS_MAX=9
PENSTOCK_SPARK__OPTIONS={"spark.a": "b"}"""
_FLAGS = b"""packing.capacity=2MB/s
monitor.include=["orders.*"]
lake.tables={"orders": {"transformation": "mine:clean"}}
controller.consumers_max=9
kafka.bootstrap_servers=broker-1:9092"""
_KUBECONFIG = b"""apiVersion: v1
kind: Config
current-context: here
clusters:
- name: here
  cluster:
    server: http://127.0.0.1:1
contexts:
- name: here
  context:
    cluster: here
    user: me
    namespace: streams
users:
- name: me
  user:
    token: abc
"""
_POD = b"""metadata:
  labels:
    team: streams
spec:
  containers:
  - name: consumer
    env:
    - name: A
      value: b
  nodeSelector:
    disk: fast
"""


def in_a_file(read: Callable[[Path], object], name: str = "input") -> Callable[[bytes], None]:
    """A parser of bytes from one of a file."""

    def parse(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / name
            file.write_bytes(data)
            read(file)

    return parse


def _file(file: Path) -> None:
    loaded = load_settings(file, {}, {}, cores=2)
    loaded.settings.model_dump_json()
    snapshot_text(loaded)


def _lines(data: bytes) -> list[str]:
    return [line.decode(errors="surrogateescape") for line in data.split(b"\n") if line]


def _environment(data: bytes) -> None:
    pairs = [line.partition("=") for line in _lines(data)]
    loaded = load_settings(None, {}, {name: value for name, _, value in pairs}, cores=2)
    json.dumps({".".join(path): str(origin) for path, origin in loaded.origin.items()})


def _flags(data: bytes) -> None:
    load_settings(None, named_values(_lines(data)), {}, cores=2)


def _units(data: bytes) -> None:
    text = data.decode(errors="surrogateescape")
    refused = 0
    for parse in (parse_duration, parse_bytes, parse_speed):
        try:
            assert parse(text) >= 0
        except ValueError:  # pydantic makes a refusal of it
            refused += 1
    assert refused >= 1, "no text is a duration, a size and a speed"


def _kubeconfig(file: Path) -> None:
    access(KubernetesSettings(kubeconfig=str(file))).client.close()


def _words(data: bytes) -> None:
    text = data.decode(errors="replace")
    java_version(text)
    LockedJar.parse(text)


SETTINGS_PARSERS = (
    Parser(
        "settings-file",
        in_a_file(_file, "penstock.yaml"),
        (_FILE, _MARK + _FILE),
        Form.YAML,
        ("settings/load.py", "settings/snapshot_mark.py", "settings/yaml_text.py"),
        (SettingsError,),
    ),
    Parser(
        "settings-environment",
        _environment,
        (_ENVIRONMENT,),
        Form.YAML,
        ("settings/load.py",),
        (SettingsError,),
    ),
    Parser(
        "settings-flags",
        _flags,
        (_FLAGS,),
        Form.YAML,
        ("settings/load.py",),
        (SettingsError, UsageError),
    ),
    Parser(
        "units", _units, (b"1.5MB/s", b"30s", b"2MiB", b"1e3ms"), Form.BYTES, ("settings/units.py",)
    ),
    Parser(
        "pod-template",
        in_a_file(lambda file: read_pod_template(str(file))),
        (_POD,),
        Form.YAML,
        ("deployment/kubernetes/process/from_settings.py",),
        (SettingsError,),
    ),
    Parser(
        "kubeconfig",
        in_a_file(_kubeconfig),
        (_KUBECONFIG,),
        Form.YAML,
        ("deployment/kubernetes/process/credentials.py",),
        (SettingsError,),
    ),
    Parser(
        "recorded-stream",
        in_a_file(read_stream),
        (b"orders-0,orders-1\n1000,2.5e3\n0,12\n",),
        Form.BYTES,
        ("laboratory/packing_replay/stream.py",),
        (UsageError,),
    ),
    Parser(
        "words-of-programs",
        _words,
        (b"a:b:1 sha256:" + b"0" * 64, b'openjdk version "17.0.2"'),
        Form.BYTES,
        ("jars/lock.py", "jars/java.py"),
        (ValueError,),
    ),
)
