"""A real Prometheus and a real Alertmanager for a test, with short periods, on this machine."""

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from documents.alert_rules import rules_file
from kit.free_ports import HOST, free_ports
from kit.promtool import program

SHORT = "1s"


@dataclass(frozen=True, slots=True)
class Alerting:
    """The two servers; they answer over HTTP."""

    prometheus: str
    alertmanager: str

    def value(self, expression: str) -> dict[str, float]:
        """The values of an expression now, by topic."""
        query = urllib.parse.urlencode({"query": expression})
        found = _answer(f"{self.prometheus}/api/v1/query?{query}")["data"]["result"]
        return {one["metric"].get("topic", ""): float(one["value"][1]) for one in found}

    def firing(self) -> dict[str, dict[str, str]]:
        """The labels of each alert that Alertmanager would tell somebody of now, by its name."""
        found = _answer(f"{self.alertmanager}/api/v2/alerts?active=true")
        return {one["labels"]["alertname"]: one["labels"] for one in found}


def _answer(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 -- of this machine
        return json.load(answer)


@contextmanager
def alerting(folder: Path, targets: Path) -> Iterator[Alerting]:
    """Our rules, with a short `for`; what is scraped is in the folder `targets`."""
    rules = rules_file()
    for one in rules["groups"][0]["rules"]:
        one["for"] = SHORT
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    ports = free_ports(2)
    addresses = [f"{HOST}:{port}" for port in ports]
    settings = {
        "global": {"scrape_interval": SHORT, "evaluation_interval": SHORT},
        "rule_files": [str(folder / "rules.yaml")],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [addresses[1]]}]}]},
        "scrape_configs": [
            {
                "job_name": "penstock",
                "file_sd_configs": [{"files": [f"{targets}/*.json"], "refresh_interval": SHORT}],
            }
        ],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(settings))
    quiet = {"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}
    (folder / "alertmanager.yaml").write_text(yaml.safe_dump(quiet))
    commands = (
        [
            program("prometheus"),
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={addresses[0]}",
        ],
        [
            program("prometheus-alertmanager"),
            f"--config.file={folder / 'alertmanager.yaml'}",
            f"--storage.path={folder / 'alerts'}",
            f"--web.listen-address={addresses[1]}",
            "--cluster.listen-address=",
        ],
    )
    processes = []
    try:
        for number, command in enumerate(commands):
            with (folder / f"server-{number}.log").open("wb") as log:
                processes.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=folder))
        for address in addresses:
            _wait_for(f"http://{address}/-/ready")
        yield Alerting(*(f"http://{address}" for address in addresses))
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _wait_for(url: str) -> None:
    deadline_s = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 -- of this machine
                return
        except OSError:
            assert time.monotonic() < deadline_s, url
            time.sleep(0.1)  # a server that starts cannot be waited for in another way
