"""The shipped role has exactly the rights that Penstock uses."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from kit.kubernetes.kubernetes_bench import SimulatedBench, is_deleted
from kit.kubernetes.kubernetes_cluster import ROLE_FILE, Cluster, ask, role_rules, until
from penstock.deployment import DeploymentTemplate
from penstock.deployment.kubernetes import KubernetesDeployment, kubernetes_deployment
from penstock.deployment.kubernetes.core.refusals import Right
from penstock.model import ConsumerId
from penstock.settings import load_settings

pytestmark = pytest.mark.kubernetes
ONE, TWO = ConsumerId(1), ConsumerId(2)
FIRST = DeploymentTemplate(version=1)


def rights_in(rules: Sequence[Mapping[str, Any]]) -> set[Right]:
    return {
        Right(verb, resource, group)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def every_call(bench: SimulatedBench, *, remove_volumes: bool) -> set[Right]:
    """Make every kind of call with the shipped role; a refusal raises."""
    used: set[Right] = set()
    flags = {
        "lake.group": "bench",
        "kubernetes.image": "localhost/python:1",
        "kubernetes.owner": "the-controller",
        "kubernetes.remove_volumes": str(remove_volumes).lower(),
    }
    loaded = load_settings(flags=flags, environment={})
    access = bench.cluster.access_with(bench.cluster.token(bench.namespace), bench.namespace)
    backend = kubernetes_deployment(loaded, allowed=access, on_call=used.add)
    try:
        lifecycle_of_a_group(bench, backend)
        until(lambda: Right("create", "events") in used, "an Event was written")
        conditions = Right("patch", "deployments/status", "apps")
        until(lambda: conditions in used, "a condition was written")
        assert backend._api._refused == {}
        assert backend._background_calls.dropped == 0
    finally:
        backend.close()
    return used


def lifecycle_of_a_group(bench: SimulatedBench, backend: KubernetesDeployment) -> None:
    backend.create(ONE, FIRST)
    backend.create(ONE, FIRST)  # the object exists, so its labels are read
    bench.kill(ONE)
    until(
        lambda: any("ended with code" in one.explanation for one in backend.repair()), "restarted"
    )
    backend.create(TWO, FIRST)

    backend.list_consumers()
    path = f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/bench-consumer-2"
    bench.cluster.must("DELETE", path)
    until(lambda: any("made again" in one.explanation for one in backend.repair()), "made again")
    bench.cluster.must("PATCH", path, {"spec": {"replicas": 0}}, "merge-patch+json")
    until(lambda: any("scaled back" in one.explanation for one in backend.repair()), "scaled back")
    until(lambda: backend._deployments.trouble is None, "in touch")
    until(lambda: is_deleted(backend, ONE), "consumer 1 is gone")
    until(lambda: is_deleted(backend, TWO), "consumer 2 is gone")


@pytest.mark.parametrize("remove_volumes", [False, True])
def test_the_role_is_exactly_what_is_used(simulated_cluster: Cluster, remove_volumes: bool) -> None:
    """The role has every right that is used, and no other."""
    rules = role_rules(remove_volumes=remove_volumes)
    bench = with_controller(SimulatedBench(simulated_cluster, rules=rules))
    try:
        used = every_call(bench, remove_volumes=remove_volumes)
        allowed = rights_in(rules)
        assert used - allowed == set(), "used and not in the role"
        assert allowed - used == set(), "in the role and not used"
    finally:
        bench.close()


def with_controller(bench: SimulatedBench) -> SimulatedBench:
    """Create the controller's Deployment, which owns the consumers."""
    labels = {"app": "controller"}
    container = {"name": "controller", "image": "localhost/python:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    bench.cluster.must(
        "POST",
        f"/apis/apps/v1/namespaces/{bench.namespace}/deployments",
        {"metadata": {"name": "the-controller"}, "spec": spec},
    )
    return bench


def forbidden(namespace: str) -> Iterable[tuple[str, str, Any]]:
    """Calls that a stolen controller token must not allow."""
    core, apps = f"/api/v1/namespaces/{namespace}", f"/apis/apps/v1/namespaces/{namespace}"
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    yield "GET", f"{core}/secrets", None
    yield "GET", f"{core}/secrets/any", None
    yield "POST", f"{core}/secrets", {"metadata": {"name": "x"}}
    yield "GET", f"{core}/configmaps", None
    yield "POST", f"{core}/configmaps", {"metadata": {"name": "x"}}
    yield "GET", f"{core}/pods/any", None
    yield "POST", f"{core}/pods", {"metadata": {"name": "x"}}
    yield "DELETE", f"{core}/pods/any", None
    yield "POST", f"{core}/pods/any/exec?command=sh", None
    yield "POST", f"{core}/serviceaccounts/penstock-controller/token", {"spec": {}}
    yield "POST", f"{core}/services", {"metadata": {"name": "x"}}
    yield "GET", f"{core}/events", None
    yield "GET", f"{core}/persistentvolumeclaims", None
    yield "PATCH", f"{apps}/deployments/any", {"metadata": {}}
    yield "PATCH", f"{apps}/deployments/any/scale", {"spec": {"replicas": 0}}
    yield "POST", f"{apps}/daemonsets", {"metadata": {"name": "x"}}
    yield "GET", f"{apps}/statefulsets", None
    yield "GET", f"{apps}/replicasets", None
    yield "DELETE", f"{apps}/deployments", None
    yield "GET", "/apis/apps/v1/namespaces/default/deployments", None
    yield "GET", "/apis/apps/v1/deployments", None
    yield "GET", "/api/v1/nodes", None
    yield "GET", "/api/v1/namespaces", None
    yield "POST", f"{rbac}/namespaces/{namespace}/roles", {"metadata": {"name": "x"}, "rules": []}
    yield "POST", f"{rbac}/namespaces/{namespace}/rolebindings", {"metadata": {"name": "x"}}
    yield "GET", "/apis/storage.k8s.io/v1/storageclasses", None


def test_nothing_else_is_allowed(bench: SimulatedBench) -> None:
    """Two dozen other calls with the controller's token are refused with 403."""
    access = bench.cluster.access_with(bench.cluster.token(bench.namespace), bench.namespace)
    tried = list(forbidden(bench.namespace))
    assert len(tried) >= 20
    for method, path, body in tried:
        content = "merge-patch+json" if method == "PATCH" else "json"
        status, found = ask(access.client, method, path, body, content)
        assert status == 403, (method, path, status, json.dumps(found)[:200])


def test_a_consumers_account_may_do_nothing(bench: SimulatedBench) -> None:
    """A consumer's account has no rights, even with a token."""
    token = bench.cluster.token(bench.namespace, "penstock-consumer")
    access = bench.cluster.access_with(token, bench.namespace)
    for rule in rights_in(role_rules()):
        base = "apis/apps/v1" if rule.api_group else "api/v1"
        kind = rule.resource.split("/", maxsplit=1)[0]
        path = f"/{base}/namespaces/{bench.namespace}/{kind}"
        method = {"create": "POST"}.get(rule.verb, "GET")
        assert ask(access.client, method, path, {} if method == "POST" else None)[0] == 403


def test_every_verb_of_the_role_has_its_reason() -> None:
    """Every line of verbs in the role has a comment with its reason."""
    text = ROLE_FILE.read_text(encoding="utf-8")
    entries = [line for line in text.splitlines() if line.strip().startswith("- ")]
    verbs = [line for line in entries if ":" not in line.split("#", maxsplit=1)[0]]
    assert len(verbs) == len(rights_in(role_rules()))
    assert all("  # " in line for line in verbs)
    assert "kind: Role\n" in text
    assert "ClusterRole" not in text
