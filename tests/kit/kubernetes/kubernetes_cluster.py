"""A Kubernetes cluster for tests: a named one, one of our own, or none with the reason.

`PENSTOCK_TEST_KUBECONFIG` names one. Else `tests/test_cluster` compiles one once, where Go is
present, into a cache outside the checkout. Every session has ports and folders of its own, and
takes down what a killed session left.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import load_kube_config

from kit.kubernetes.cluster_recipe import cluster_cache, reason_to_skip, run_recipe
from penstock.deployment.kubernetes.process.credentials import Access
from penstock.processes import identity_of, is_alive, send_signal, start_detached
from penstock.processes.owner import owner_as_text, owner_from_text

ROOT = Path(__file__).parents[3]
ROLE_FILE = ROOT / "deploy" / "helm" / "penstock" / "templates" / "role.yaml"
CONTROLLER_ACCOUNT = "penstock-controller"
CONSUMER_ACCOUNT = "penstock-consumer"
Answer = tuple[int, Any]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster with administrator rights."""

    kubeconfig: Path
    client: ApiClient
    # The variables of a cluster of our own; None for a named one.
    environment: Mapping[str, str] | None = None
    # The address of this machine for pods on a real node of our own.
    host_address: str = ""

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "json") -> Answer:
        """One call as administrator: status and body."""
        return ask(self.client, method, path, body, content_type)

    def must(self, method: str, path: str, body: Any = None, content_type: str = "json") -> Any:
        status, found = self.ask(method, path, body, content_type)
        assert 200 <= status < 300, f"{method} {path}: {status} {found}"
        return found

    def new_namespace(self) -> str:
        """A new namespace with the accounts that Penstock needs."""
        name = f"test-{uuid.uuid4().hex[:8]}"
        self.must("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        for account in (CONTROLLER_ACCOUNT, CONSUMER_ACCOUNT):
            self.must(
                "POST",
                f"/api/v1/namespaces/{name}/serviceaccounts",
                {"metadata": {"name": account}},
            )
        return name

    def forget_namespace(self, name: str) -> None:
        self.ask("DELETE", f"/api/v1/namespaces/{name}")  # it takes a while and is not waited for

    def bind(self, namespace: str, rules: Sequence[Mapping[str, Any]]) -> None:
        """Give the controller's account a role of exactly these rules."""
        base = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
        self.must(
            "POST", f"{base}/roles", {"metadata": {"name": CONTROLLER_ACCOUNT}, "rules": rules}
        )
        self.must(
            "POST",
            f"{base}/rolebindings",
            {
                "metadata": {"name": CONTROLLER_ACCOUNT},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "Role",
                    "name": CONTROLLER_ACCOUNT,
                },
                "subjects": [
                    {
                        "kind": "ServiceAccount",
                        "name": CONTROLLER_ACCOUNT,
                        "namespace": namespace,
                    }
                ],
            },
        )
        # The server notices a new role a moment later, on a busy machine after seconds.
        until(lambda: self._is_granted(namespace, rules[0]), "the role is in force")

    def _is_granted(self, namespace: str, rule: Mapping[str, Any]) -> bool:
        resource, _, subresource = rule["resources"][0].partition("/")
        asked = {
            "namespace": namespace,
            "group": rule["apiGroups"][0],
            "resource": resource,
            "subresource": subresource,
            "verb": rule["verbs"][0],
        }
        user = f"system:serviceaccount:{namespace}:{CONTROLLER_ACCOUNT}"
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        body = {"spec": {"user": user, "resourceAttributes": asked}}
        return bool(self.must("POST", path, body)["status"]["allowed"])

    def token(self, namespace: str, account: str = CONTROLLER_ACCOUNT) -> str:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        found = self.must("POST", path, {"spec": {"expirationSeconds": 3600}})
        return str(found["status"]["token"])

    def access_with(self, token: str, namespace: str, *, host: str | None = None) -> Access:
        admin = self.client.configuration
        configuration = Configuration()
        configuration.host = host or admin.host
        configuration.ssl_ca_cert = admin.ssl_ca_cert
        configuration.api_key = {"BearerToken": f"Bearer {token}"}
        configuration.retries = False
        configuration.connection_pool_maxsize = 32
        return Access(ApiClient(configuration), namespace, "test")

    @property
    def volumes(self) -> Path:
        """The folder on this machine with the volumes of a cluster of our own."""
        assert self.environment is not None, "only a cluster of our own shows its volumes"
        return Path(self.environment["CLUSTER_RUN"]) / "volumes"

    @property
    def authority(self) -> Path:
        """The file with the server's certificate authority."""
        return Path(str(self.client.configuration.ssl_ca_cert))

    def items(self, namespace: str, kind: str, base: str = "api/v1") -> list[Any]:
        found: list[Any] = self.must("GET", f"/{base}/namespaces/{namespace}/{kind}")["items"]
        return found

    def deployments(self, namespace: str) -> list[Any]:
        return self.items(namespace, "deployments", "apis/apps/v1")

    def patch_pod_status(self, namespace: str, pod: str, status: Mapping[str, Any]) -> None:
        """Set a pod's status as a kubelet would; simulated pods have none."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/status"
        self.must("PATCH", path, {"status": status}, "merge-patch+json")


def ask(
    client: ApiClient, method: str, path: str, body: Any = None, content_type: str = "json"
) -> Answer:
    headers = {"Accept": "application/json", "Content-Type": f"application/{content_type}"}
    parts = client.param_serialize(
        method, path, header_params=headers, body=body, auth_settings=["BearerToken"]
    )
    answer = client.call_api(*parts, _request_timeout=(5, 30))
    content = answer.read()
    try:
        return answer.status, json.loads(content)
    except ValueError:
        return answer.status, content.decode(errors="replace")


def role_rules(*, remove_volumes: bool = True) -> list[dict[str, Any]]:
    """The rules of the shipped role, as the chart renders them."""
    kept: list[str] = []
    is_in_option = False
    for line in ROLE_FILE.read_text(encoding="utf-8").split("\nrules:\n")[1].splitlines():
        if line.strip().startswith("{{- if"):
            is_in_option = True
        elif line.strip().startswith("{{- end"):
            is_in_option = False
        elif remove_volumes or not is_in_option:
            kept.append(line)
    found: list[dict[str, Any]] = yaml.safe_load("\n".join(kept))
    return found


def until(condition: Callable[[], Any], what: str, within_s: float = 30.0) -> Any:
    deadline_s = time.monotonic() + within_s
    while time.monotonic() < deadline_s:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {within_s} s: {what}")


# Where it comes from


@contextmanager
def named_or_own_cluster(*, real_pods: bool) -> Iterator[Cluster]:
    """A cluster for tests; skips with the reason if there is none."""
    named = os.environ.get("PENSTOCK_TEST_KUBECONFIG")
    if named:
        yield _cluster(Path(named), None)
        return
    reason = reason_to_skip(real_pods=real_pods)
    if reason:
        pytest.skip(reason)
    environment = _environment(real_pods=real_pods)
    run_recipe("build", environment, timeout_s=3600)
    run_recipe("up-pods" if real_pods else "up", environment, timeout_s=300)
    try:
        kubeconfig = Path(environment["CLUSTER_RUN"]) / "admin.kubeconfig"
        yield _cluster(kubeconfig, environment, f"{environment['CLUSTER_NODE_NET']}.1")
    finally:
        run_recipe("down", environment, timeout_s=120)
        shutil.rmtree(Path(environment["CLUSTER_RUN"]).parent, ignore_errors=True)


def _cluster(
    kubeconfig: Path, environment: Mapping[str, str] | None, host_address: str = ""
) -> Cluster:
    configuration = Configuration()
    load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)
    configuration.retries = False
    return Cluster(kubeconfig, ApiClient(configuration), environment, host_address)


def _environment(*, real_pods: bool) -> dict[str, str]:
    me = identity_of(os.getpid())
    assert me is not None
    kind = "pods" if real_pods else "simulated"
    runs = cluster_cache() / "runs"
    folder = runs / f"{owner_as_text(me).replace(':', '-')}-{kind}-{uuid.uuid4().hex[:4]}"
    _take_down_left_behind(runs)
    folder.mkdir(parents=True)
    first, second = _free_port_pair()
    net = _free_net()
    made = {
        "CLUSTER_CACHE": str(cluster_cache()),
        "CLUSTER_RUN": str(folder / "run"),
        "CLUSTER_API_PORT": str(first),
        "CLUSTER_ETCD_PORT": str(second),
        "CLUSTER_NODE_NET": f"10.{net}.0",
        "CLUSTER_POD_NET": f"10.{net}.1",
        "CLUSTER_SERVICE_NET": f"10.{net}.2",
        "CLUSTER_LINK": f"cluster{net}",
    }
    (folder / "environment.json").write_text(json.dumps(made), encoding="utf-8")
    return made


def _take_down_left_behind(runs: Path) -> None:
    """Stop clusters of killed sessions, whose process is gone."""
    for note in runs.glob("*/environment.json"):
        pid, ticks = note.parent.name.split("-")[:2]
        if not is_alive(owner_from_text(f"{pid}:{ticks}")):
            run_recipe("down", json.loads(note.read_text(encoding="utf-8")), timeout_s=120)
            shutil.rmtree(note.parent, ignore_errors=True)


def _free_port_pair() -> tuple[int, int]:
    """A free port for the API server, and a free pair for etcd."""
    for _ in range(100):
        with socket.socket() as first, socket.socket() as second, socket.socket() as third:
            first.bind(("127.0.0.1", 0))
            second.bind(("127.0.0.1", 0))
            port = second.getsockname()[1]
            try:
                third.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return int(first.getsockname()[1]), int(port)
    raise AssertionError("no free ports")


def _free_net() -> int:
    """A number N whose 10.N network is unused on this machine."""
    routes = subprocess.run(["ip", "route"], capture_output=True, text=True, check=False).stdout
    free = [n for n in range(160, 250) if f"10.{n}." not in routes]
    return free[os.getpid() % len(free)]


@contextmanager
def paused_nodes(cluster: Cluster) -> Iterator[None]:
    """Simulated nodes stand still in the block: no pod ends there, and none becomes ready."""
    assert cluster.environment is not None, "only a cluster of our own is harmed"
    note = Path(cluster.environment["CLUSTER_RUN"]) / "pids" / "kwok"
    paused = identity_of(int(note.read_text(encoding="utf-8").split()[0]))
    assert paused is not None
    send_signal(paused, signal.SIGSTOP)
    try:
        yield
    finally:
        send_signal(paused, signal.SIGCONT)


@contextmanager
def without_api_server(cluster: Cluster) -> Iterator[None]:
    """Kill the API server, and restart it with the same arguments after the block."""
    assert cluster.environment is not None, "only a cluster of our own is harmed"
    run = Path(cluster.environment["CLUSTER_RUN"])
    note = run / "pids" / "kube-apiserver"
    pid = int(note.read_text(encoding="utf-8").split()[0])
    command = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode().split("\0")
    killed = identity_of(pid)
    assert killed is not None
    assert "kube-apiserver" in command[0]
    send_signal(killed, signal.SIGKILL)
    until(lambda: not is_alive(killed), "the API server is dead")
    try:
        yield
    finally:
        born = start_detached(command, log_file=run / "kube-apiserver-again.log")
        # So that `down` finds it.
        note.write_text(f"{born.pid} {born.started_at_ticks}\n", encoding="utf-8")
        until(lambda: _is_up(cluster), "the API server is back", 60)


def _is_up(cluster: Cluster) -> bool:
    try:
        return cluster.ask("GET", "/readyz")[0] == 200
    except (OSError, urllib3.exceptions.HTTPError):
        return False
