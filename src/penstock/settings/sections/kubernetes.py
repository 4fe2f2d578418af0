"""Settings of consumers on Kubernetes: access to the cluster, and their pods."""

import re
from typing import Literal

from pydantic import field_validator, model_validator

from penstock.settings.sections.base import Section, option
from penstock.settings.units import Duration

_QUANTITY = re.compile(r"\d+(\.\d+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?")


class KubernetesSettings(Section):
    """Consumers as Deployments; used when `controller.deployment` is `kubernetes`."""

    namespace: str = option(
        "", "The consumers' namespace. Empty: from the kubeconfig or the pod's service account."
    )
    kubeconfig: str = option(
        "",
        "A kubeconfig file. Empty: the pod's own token if there is one, else $KUBECONFIG or "
        "~/.kube/config.",
    )
    context: str = option("", "The context of the kubeconfig. Empty: its current context.")
    api_server: str = option(
        "", "The API server's address; needs `token_file` and `certificate_authority_file`."
    )
    token_file: str = option(
        "", "A file with a bearer token, read again when it changes; needs `api_server`."
    )
    certificate_authority_file: str = option(
        "", "The certificate authority of the API server; needs `api_server`."
    )
    image: str = option("", "The consumers' image. It has no default and must be set.")
    image_pull_policy: Literal["IfNotPresent", "Always", "Never"] = option(
        "IfNotPresent", "When a node fetches the image."
    )
    consumer_service_account: str = option(
        "penstock-consumer",
        "The consumers' service account. It needs no rights, and its token is not mounted.",
    )
    pod_template: str = option(
        "",
        "A YAML file with a pod template to merge into ours: mappings are merged, lists of named "
        "entries are merged by name (the container is `consumer`), null removes a value.",
    )
    settings_config_map: str = option(
        "",
        "A ConfigMap whose key `penstock.yaml` holds the consumers' settings file. Consumers keep "
        "the map of their version, so another content needs another name, as the chart does it.",
    )
    owner: str = option(
        "", "The controller's Deployment; deleting it deletes the consumers. Empty: no owner."
    )
    volume_size: str = option("1Gi", "The size of each consumer's state volume.")
    volume_storage_class: str = option(
        "", "The storage class of the volumes. Empty: the cluster's default."
    )
    volume_access_mode: Literal["ReadWriteOnce", "ReadWriteOncePod"] = option(
        "ReadWriteOnce",
        "Whether a volume is mounted by one node or by one pod. ReadWriteOncePod needs Kubernetes "
        "1.29 and a CSI driver; without them the claim is never bound.",
    )
    remove_volumes: bool = option(
        False, "Delete the volume of a removed consumer, instead of keeping it for reuse."
    )
    grace_period: Duration = option(
        60.0, "How long a pod may take to end; must be longer than `consumer.grace`.", gt=0, le=3600
    )
    cpu_request: str = option("250m", "The CPU request of a consumer.")
    cpu_limit: str = option("1", "The CPU limit of a consumer.")
    memory_request: str = option("512Mi", "The memory request of a consumer.")
    memory_limit: str = option("1Gi", "The memory limit of a consumer.")

    @field_validator("*", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        """Accept `cpu_limit: 1` as text and an empty `context:` as empty text."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return "" if value is None else str(value) if is_number else value

    @field_validator("volume_size", "cpu_request", "cpu_limit", "memory_request", "memory_limit")
    @classmethod
    def _is_quantity(cls, value: str) -> str:
        if not _QUANTITY.fullmatch(value):
            raise ValueError(f"{value!r} is not a Kubernetes quantity, for instance 250m or 1Gi")
        return value

    @model_validator(mode="after")
    def _explicit_is_whole(self) -> "KubernetesSettings":
        given = (self.api_server, self.token_file, self.certificate_authority_file)
        if any(given) and not all(given):
            raise ValueError("set api_server, token_file and certificate_authority_file together")
        if self.api_server and self.kubeconfig:
            raise ValueError("set either api_server or kubeconfig, not both")
        return self
