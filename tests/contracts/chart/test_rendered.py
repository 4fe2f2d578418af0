"""What the chart renders for many values: safe pods, few rights, valid settings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from kit.kubernetes.helm import CHART, containers, of_kind, rendered, template
from kit.kubernetes.helm import helm as run_helm
from penstock import __version__
from penstock.deployment.interface import DeploymentTemplate
from penstock.deployment.kubernetes.core.manifests import PodPlan, deployment_manifest
from penstock.deployment.kubernetes.core.pod_template import invalid_reason
from penstock.deployment.kubernetes.process.from_settings import require_usable
from penstock.model import ConsumerId
from penstock.settings import Settings
from penstock.settings.load import load_settings

pytestmark = pytest.mark.timeout(1300)  # the first run on a machine compiles Helm
VALUES = sorted((Path(__file__).parent / "values").glob("*.yaml"))
SECURED, EVERYTHING = (
    Path(__file__).parent / "values" / f"{name}.yaml" for name in ("secured", "everything")
)
ALLOWED_KINDS = {
    "ConfigMap",
    "Deployment",
    "NetworkPolicy",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    "PrometheusRule",
    "Role",
    "RoleBinding",
    "Service",
    "ServiceAccount",
    "ServiceMonitor",
}
each_value_file = pytest.mark.parametrize(
    "values", [(), *((path,) for path in VALUES)], ids=["default", *(p.stem for p in VALUES)]
)
Objects = list[dict[str, Any]]


@pytest.fixture
def objects(helm: Path, values: tuple[Path, ...]) -> Objects:
    return rendered(helm, *values)


def settings_file(objects: Objects, folder: Path) -> Path:
    (config_map,) = of_kind(objects, "ConfigMap").values()
    file = folder / "penstock.yaml"
    file.write_text(config_map["data"]["penstock.yaml"], encoding="utf-8")
    return file


def plain_environment(container: Mapping[str, Any]) -> dict[str, str]:
    """The container's environment; values from a Secret are a text that must not appear."""
    return {one["name"]: one.get("value", "hush") for one in container.get("env", [])}


def consumer_pod(objects: Objects, folder: Path) -> dict[str, Any]:
    """The pod that the controller would create from these settings and this template."""
    settings = load_settings(settings_file(objects, folder), environment={}).settings
    (config_map,) = of_kind(objects, "ConfigMap").values()
    over = yaml.safe_load(config_map["data"]["pod-template.yaml"])
    assert invalid_reason(over) is None
    plan = PodPlan(settings.lake.group, settings.kubernetes, pod_template=over)
    made = deployment_manifest(plan, ConsumerId(1), DeploymentTemplate())
    return dict(made["spec"]["template"])


def pod_templates(objects: Objects, folder: Path) -> dict[str, dict[str, Any]]:
    """The pod templates of the chart and of the consumers."""
    own = {n: one["spec"]["template"] for n, one in of_kind(objects, "Deployment").items()}
    return {**own, "consumer": consumer_pod(objects, folder)}


def test_there_are_several_value_files() -> None:
    """There are several value files for the tests below."""
    assert len(VALUES) >= 3


@each_value_file
def test_it_passes_helms_own_lint(helm: Path, values: tuple[Path, ...]) -> None:
    """`helm lint --strict` passes."""
    given = [text for path in values for text in ("-f", str(path))]
    done = run_helm(helm, "lint", "--strict", str(CHART), *given)
    assert done.returncode == 0, done.stdout


@each_value_file
def test_only_namespaced_kinds_that_are_expected(objects: Objects) -> None:
    """The chart has no cluster-wide object and no Secret."""
    assert {one["kind"] for one in objects} <= ALLOWED_KINDS
    for one in objects:
        assert one["metadata"].get("namespace", "penstock") == "penstock"
    assert len(of_kind(objects, "Role")) == 1
    (binding,) = of_kind(objects, "RoleBinding").values()
    assert binding["roleRef"]["kind"] == "Role"
    (subject,) = binding["subjects"]
    controller = _controller(objects)
    assert subject["name"] == controller["spec"]["template"]["spec"]["serviceAccountName"]


def _controller(objects: Objects) -> dict[str, Any]:
    (found,) = (
        one for n, one in of_kind(objects, "Deployment").items() if n.endswith("-controller")
    )
    return found


@each_value_file
def test_every_pod_is_locked_down(objects: Objects, tmp_path: Path) -> None:
    """Every pod is non-root, with a read-only root, seccomp, limits and no capabilities."""
    for name, pod in pod_templates(objects, tmp_path).items():
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["runAsUser"] > 0, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        # Service variables such as PENSTOCK_SPARK_PORT would be refused as unknown settings.
        assert spec["enableServiceLinks"] is False, name
        for forbidden in ("hostNetwork", "hostPID", "hostIPC"):
            assert not spec.get(forbidden), name
        own = [one for one in spec["containers"] if one["name"] != "beside"]
        for one in [*spec.get("initContainers", []), *own]:
            assert one["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, (name, one["name"])
            for bound in ("requests", "limits"):
                assert set(one["resources"][bound]) >= {"cpu", "memory"}, (name, one["name"])
            places = {mount["mountPath"] for mount in one["volumeMounts"]}
            assert "/tmp" in places  # noqa: S108 -- a volume of the pod's own


@each_value_file
def test_every_long_running_container_has_probes(objects: Objects, tmp_path: Path) -> None:
    """Every container has probes on its health endpoint, or for Spark on its port."""
    for name, pod in pod_templates(objects, tmp_path).items():
        one = pod["spec"]["containers"][0]
        ports = {port["name"] for port in one["ports"]}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            how = one[probe].get("httpGet") or one[probe]["tcpSocket"]
            assert how["port"] in ports, (name, probe)


@each_value_file
def test_only_the_controller_has_a_token(objects: Objects, tmp_path: Path) -> None:
    """Only the controller's pod mounts a service account token."""
    for name, account in of_kind(objects, "ServiceAccount").items():
        assert account["automountServiceAccountToken"] is False, name
    for name, pod in pod_templates(objects, tmp_path).items():
        is_controller = name.endswith("-controller")
        assert pod["spec"]["automountServiceAccountToken"] is is_controller, name
    bound = _controller(objects)["spec"]["template"]["spec"]["serviceAccountName"]
    others = {
        pod["spec"]["serviceAccountName"]
        for name, pod in pod_templates(objects, tmp_path).items()
        if not name.endswith("-controller")
    }
    assert bound not in others


@each_value_file
def test_penstock_accepts_its_settings(objects: Objects, tmp_path: Path) -> None:
    """Penstock loads the settings file with each container's environment."""
    file = settings_file(objects, tmp_path)
    pods = pod_templates(objects, tmp_path)
    assert pods
    for pod in pods.values():
        for one in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]:
            settings = load_settings(file, environment=plain_environment(one)).settings
            assert settings.controller.deployment == "kubernetes"
            require_usable(settings)
            assert settings.lake.root != Settings().lake.root


@each_value_file
def test_names_agree(objects: Objects, tmp_path: Path) -> None:
    """Names in the settings are names of the chart's objects, and mounted volumes exist."""
    settings = load_settings(settings_file(objects, tmp_path), environment={}).settings
    kubernetes = settings.kubernetes
    assert kubernetes.owner in of_kind(objects, "Deployment")
    assert kubernetes.settings_config_map in of_kind(objects, "ConfigMap")
    accounts = of_kind(objects, "ServiceAccount")
    assert kubernetes.consumer_service_account in accounts
    if settings.spark.master.startswith("sc://"):
        address = urlsplit(settings.spark.master)
        (served,) = of_kind(objects, "Service")[str(address.hostname)]["spec"]["ports"]
        assert served["port"] == address.port
    for name, pod in pod_templates(objects, tmp_path).items():
        volumes = {one["name"] for one in pod["spec"]["volumes"]}
        for one in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]:
            mounts = one.get("volumeMounts", [])
            assert {mount["name"] for mount in mounts} <= volumes, name
            paths = [mount["mountPath"] for mount in mounts]
            assert len(paths) == len(set(paths)), name
            # A mount point below a read-only mount cannot be created.
            assert not [p for p in paths if p.startswith("/etc/penstock/")], name


@each_value_file
def test_the_controller_and_the_consumers_read_the_same_group(
    objects: Objects, tmp_path: Path
) -> None:
    """Only the consumers of this group can reach the Spark Connect server."""
    pod = consumer_pod(objects, tmp_path)
    policies = of_kind(objects, "NetworkPolicy")
    for policy in [one for name, one in policies.items() if name.endswith("-spark")]:
        (rule,) = policy["spec"]["ingress"]
        (source,) = rule["from"]
        wanted = source["podSelector"]["matchLabels"]
        assert wanted.items() <= pod["metadata"]["labels"].items()
        assert "penstock.io/group" in wanted
        served = of_kind(objects, "Deployment")[policy["metadata"]["name"]]
        assert (
            policy["spec"]["podSelector"]["matchLabels"]
            == served["spec"]["selector"]["matchLabels"]
        )


def test_no_secret_is_written_down(helm: Path) -> None:
    """Passwords stay in the Secret; the ConfigMap has only user names."""
    objects = rendered(helm, SECURED)
    (config_map,) = of_kind(objects, "ConfigMap").values()
    pods = yaml.safe_load(config_map["data"]["pod-template.yaml"])["spec"]
    named = {}
    for one in [*containers(_controller(objects)), *pods["containers"]]:
        for variable in one["env"]:
            if variable["name"].endswith("PASSWORD"):
                assert "value" not in variable
                named[one["name"]] = variable["valueFrom"]["secretKeyRef"]
    assert named["controller"] == {"name": "kafka-controller", "key": "password"}
    assert named["topics"] == named["controller"]
    assert named["consumer"] == {"name": "kafka-consumer", "key": "word"}
    text = config_map["data"]["penstock.yaml"]
    assert "sasl.username: penstock" in text
    assert "assword" not in text


def test_each_role_has_its_own_user(helm: Path, tmp_path: Path) -> None:
    """A role's own Kafka user replaces the common one and keeps other properties."""
    objects = rendered(helm, SECURED)
    file = settings_file(objects, tmp_path)
    seen = {}
    for pod in pod_templates(objects, tmp_path).values():
        one = pod["spec"]["containers"][0]
        settings = load_settings(file, environment=plain_environment(one)).settings
        assert settings.kafka.properties["sasl.mechanism"] == "SCRAM-SHA-512"
        assert settings.kafka.sasl_password is not None
        seen[one["name"]] = settings.kafka.properties["sasl.username"]
    assert seen == {
        "controller": "penstock-controller",
        "monitor": "penstock",
        "consumer": "penstock-consumer",
    }


def test_the_values_reach_the_consumers_pods(helm: Path, tmp_path: Path) -> None:
    """Variables, volumes, scheduling and the user's template reach the consumers' pods."""
    pod = consumer_pod(rendered(helm, EVERYTHING), tmp_path)
    spec = pod["spec"]
    consumer, beside = spec["containers"]
    assert {"TZ": "UTC", "PYTHONPATH": "/code", "EXTRA": "1"}.items() <= plain_environment(
        consumer
    ).items()
    assert {"/data/lake", "/code", "/certificates", "/var/lib/penstock/state"} <= {
        mount["mountPath"] for mount in consumer["volumeMounts"]
    }
    assert consumer["resources"]["limits"] == {"cpu": "2", "memory": "4Gi"}
    assert beside["name"] == "beside"
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert spec["securityContext"]["runAsUser"] == 20002
    assert spec["topologySpreadConstraints"]
    assert spec["tolerations"]
    assert spec["hostAliases"]
    assert spec["terminationGracePeriodSeconds"] == 90
    assert pod["metadata"]["labels"]["team"] == "data"
    assert pod["metadata"]["annotations"] == {
        "example.com/kind": "consumer",
        "example.com/owner": "data",
        "example.com/scrape": "no",
        "penstock.io/template-version": "0",
    }


def test_images_are_named_exactly(helm: Path, tmp_path: Path) -> None:
    """Images have a tag or digest, never `latest`; thin consumers get the thin image."""

    def images(*values: str) -> tuple[str, str]:
        objects = rendered(helm, settings=values)
        settings = load_settings(settings_file(objects, tmp_path), environment={}).settings
        return containers(_controller(objects))[-1]["image"], settings.kubernetes.image

    digest = "sha256:" + "b" * 64
    assert images() == (f"penstock:{__version__}", f"penstock:{__version__}")
    assert images("spark.connect.enabled=true")[1] == f"penstock-thin:{__version__}"
    assert images(f"image.digest={digest}") == (f"penstock@{digest}", f"penstock@{digest}")
    assert images("image.tag=x", "consumer.image.tag=y") == ("penstock:x", "penstock:y")


def test_the_chart_is_of_this_program() -> None:
    """The chart's appVersion is Penstock's version."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["appVersion"] == __version__


def test_selectors_never_change(helm: Path) -> None:
    """Selectors depend only on the release's name, because they cannot change."""
    before = of_kind(rendered(helm), "Deployment")
    greedy = [
        r"podLabels.app\.kubernetes\.io/name=mine",
        r"controller.podLabels.app\.kubernetes\.io/component=mine",
        "fullnameOverride=penstock",
    ]
    after = of_kind(rendered(helm, EVERYTHING, settings=greedy), "Deployment")
    assert set(before) == set(after)
    for name, one in after.items():
        chosen = one["spec"]["selector"]["matchLabels"]
        assert chosen == before[name]["spec"]["selector"]["matchLabels"]
        assert chosen.items() <= one["spec"]["template"]["metadata"]["labels"].items()
        assert set(chosen) == {
            f"app.kubernetes.io/{part}" for part in ("name", "instance", "component")
        }


def test_two_releases_in_a_namespace_share_nothing(helm: Path) -> None:
    """Two releases have different names and selectors; long names stay valid."""
    long = "a-release-with-a-name-as-long-as-helm-allows-a-name-b"
    first, second = rendered(helm, release="penstock"), rendered(helm, release=long)
    keys = [{(one["kind"], one["metadata"]["name"]) for one in each} for each in (first, second)]
    assert not keys[0] & keys[1]
    assert all(len(name) <= 63 for _, name in keys[1])


def test_changed_settings_restart_what_reads_them(helm: Path) -> None:
    """The pods' annotation changes exactly when the ConfigMap changes."""

    def sums(*values: str) -> set[str]:
        made = of_kind(rendered(helm, settings=values), "Deployment").values()
        return {
            one["spec"]["template"]["metadata"]["annotations"]["checksum/config"] for one in made
        }

    assert len(sums()) == 1
    assert sums() == sums("controller.resources.limits.cpu=2")
    assert sums() != sums("settings.controller.consumers_max=7")


def test_one_controller_with_its_own_claim(helm: Path) -> None:
    """Without a standby: one replica, strategy Recreate and a claim of its own."""
    objects = rendered(helm, settings=["controller.standby=false"])
    spec = _controller(objects)["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}
    (claim,) = (
        one["persistentVolumeClaim"]["claimName"]
        for one in spec["template"]["spec"]["volumes"]
        if "persistentVolumeClaim" in one
    )
    assert of_kind(objects, "PersistentVolumeClaim")[claim]["spec"]["accessModes"] == [
        "ReadWriteOnce"
    ]
    mounted = {
        m["name"]: m["mountPath"] for m in containers(_controller(objects))[-1]["volumeMounts"]
    }
    (config_map,) = of_kind(objects, "ConfigMap").values()
    settings = yaml.safe_load(config_map["data"]["penstock.yaml"])
    assert mounted["state"] == settings["controller"]["directory"]


def test_a_lake_that_nothing_holds_is_refused(helm: Path) -> None:
    """A lake path without a volume is refused with a remedy."""
    done = template(helm, settings=["lake.persistence.enabled=false"])
    assert done.returncode != 0
    assert "Nothing holds the lake" in done.stderr


def test_the_lake_stays_when_the_release_goes(helm: Path) -> None:
    """By default, removing the release keeps the lake."""
    kept = of_kind(rendered(helm), "PersistentVolumeClaim")["penstock-lake"]
    assert kept["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    gone = rendered(helm, settings=["lake.persistence.keepOnUninstall=false"])
    assert "annotations" not in of_kind(gone, "PersistentVolumeClaim")["penstock-lake"]["metadata"]
