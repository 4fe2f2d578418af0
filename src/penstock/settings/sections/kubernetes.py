"""Where consumers run on Kubernetes, and what their pods look like."""

import re
from typing import Literal

from pydantic import field_validator, model_validator

from penstock.settings.sections.base import Section, option
from penstock.settings.units import Duration

_QUANTITY = re.compile(r"\d+(\.\d+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?")


class KubernetesSettings(Section):
    """Consumers as Deployments: read when `controller.deployment` is `kubernetes`."""

    namespace: str = option(
        "", "Where the consumers live. Empty: as the kubeconfig or the pod's service account says."
    )
    kubeconfig: str = option(
        "",
        "A kubeconfig file. Empty: the pod's own token when there is one, else $KUBECONFIG or "
        "~/.kube/config.",
    )
    context: str = option("", "Which context of the kubeconfig; its current one when empty.")
    api_server: str = option(
        "", "The API server's address, with `token_file` and `certificate_authority_file`."
    )
    token_file: str = option(
        "", "A file with a bearer token; read again when it changes. Needs `api_server`."
    )
    certificate_authority_file: str = option(
        "", "The certificate that the API server is checked against. Needs `api_server`."
    )
    image: str = option("", "The consumers' image. There is no default: it must be set.")
    image_pull_policy: Literal["IfNotPresent", "Always", "Never"] = option(
        "IfNotPresent", "When a node fetches the image."
    )
    consumer_service_account: str = option(
        "penstock-consumer",
        "The consumers' service account: it needs no rights, and its token is not mounted.",
    )
    pod_template: str = option(
        "",
        "A YAML file with a pod template that is laid over ours: mappings are merged, lists whose "
        "entries have a name are merged by it (ours is the container `consumer`), null removes.",
    )
    settings_config_map: str = option(
        "", "A ConfigMap whose key `penstock.yaml` is the consumers' settings file."
    )
    owner: str = option(
        "", "The controller's Deployment: when it is removed, its consumers are. Empty: nobody's."
    )
    volume_size: str = option("1Gi", "How large each consumer's volume for its state is.")
    volume_storage_class: str = option(
        "", "The storage class of these volumes; the cluster's own default when empty."
    )
    volume_access_mode: Literal["ReadWriteOnce", "ReadWriteOncePod"] = option(
        "ReadWriteOnce",
        "How a volume is held: by one node, or by one pod where the cluster and its storage class "
        "can do that (Kubernetes 1.29 and a CSI driver; one that cannot never binds the claim).",
    )
    remove_volumes: bool = option(
        False, "Whether a removed consumer's volume goes too, instead of waiting for its next life."
    )
    grace_period: Duration = option(
        60.0, "How long a pod may take to end; longer than `consumer.grace`.", gt=0, le=3600
    )
    cpu_request: str = option("250m", "The processor time a consumer is promised.")
    cpu_limit: str = option("1", "The most processor time a consumer gets.")
    memory_request: str = option("512Mi", "The memory a consumer is promised.")
    memory_limit: str = option("1Gi", "The most memory a consumer may take.")

    @field_validator("*", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        """`cpu_limit: 1` and `context:` mean what they look like."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return "" if value is None else str(value) if is_number else value

    @field_validator("volume_size", "cpu_request", "cpu_limit", "memory_request", "memory_limit")
    @classmethod
    def _is_quantity(cls, value: str) -> str:
        if not _QUANTITY.fullmatch(value):
            raise ValueError(f"{value!r} is no Kubernetes quantity, for instance 250m or 1Gi")
        return value

    @model_validator(mode="after")
    def _explicit_is_whole(self) -> "KubernetesSettings":
        given = (self.api_server, self.token_file, self.certificate_authority_file)
        if any(given) and not all(given):
            raise ValueError(
                "api_server, token_file and certificate_authority_file go together: set all three"
            )
        if self.api_server and self.kubeconfig:
            raise ValueError("api_server and kubeconfig exclude each other")
        return self
