"""Credentials for the API server: the pod's own token, a kubeconfig, or a token file and a CA.

A token file is read again whenever it changes, so that a rotated token is used at once. Secrets are
never printed: errors name files, not their content.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import load_kube_config
from kubernetes.config.config_exception import ConfigException

from penstock.errors import SettingsError
from penstock.settings.sections import KubernetesSettings
from penstock.settings.yaml_text import read_yaml

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
CONNECTIONS_MAX = 32
_KEY = "BearerToken"
# What the libraries raise for a file that is no kubeconfig.
_NOT_READ = (
    OSError,
    yaml.YAMLError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
)


@dataclass(frozen=True, slots=True)
class Access:
    """An authenticated client, and the namespace it works in."""

    client: ApiClient
    namespace: str
    # Where the credentials come from, for people; contains no secret.
    origin: str


def access(settings: KubernetesSettings, *, service_account: Path = SERVICE_ACCOUNT) -> Access:
    """Access from the settings; `kubernetes.kubeconfig` describes the order."""
    if settings.api_server:
        configuration = _with_token_file(
            settings.api_server,
            Path(settings.token_file),
            Path(settings.certificate_authority_file),
        )
        origin, namespace = "kubernetes.token_file", "default"
    elif not settings.kubeconfig and (service_account / "token").is_file():
        configuration = _in_cluster(service_account)
        origin, namespace = "service account", _namespace_in_cluster(service_account)
    else:
        configuration, namespace = _from_kubeconfig(settings)
        origin = "kubeconfig"
    configuration.connection_pool_maxsize = CONNECTIONS_MAX
    configuration.retries = False  # api.py retries, with a limit and pauses
    configuration.keep_alive = True
    return Access(ApiClient(configuration), settings.namespace or namespace, origin)


def _in_cluster(service_account: Path) -> Configuration:
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise SettingsError(
            "A service account token exists, but KUBERNETES_SERVICE_HOST is not set.",
            remedy="Run in a pod, or set kubernetes.kubeconfig.",
        )
    address = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return _with_token_file(address, service_account / "token", service_account / "ca.crt")


def _namespace_in_cluster(service_account: Path) -> str:
    try:
        return (service_account / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        return "default"


def _with_token_file(address: str, token: Path, authority: Path) -> Configuration:
    if not authority.is_file():
        raise SettingsError(f"The certificate file {authority} does not exist.")
    configuration = Configuration()
    configuration.host = address
    configuration.ssl_ca_cert = str(authority)
    reader = TokenFile(token)
    configuration.api_key = {_KEY: reader.header()}

    def refreshed(current: Configuration) -> None:
        current.api_key[_KEY] = reader.header()

    configuration.refresh_api_key_hook = refreshed
    return configuration


class TokenFile:
    """Reads the token again when the file changes; keeps the old one while it is unreadable."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._header = ""
        self.header()
        if not self._header:
            raise SettingsError(f"The token file {path} cannot be read or is empty.")

    def header(self) -> str:
        try:
            found = self._path.stat()  # follows the links that Kubernetes swaps on rotation
            stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
            if stamp != self._stamp:
                token = self._path.read_text(encoding="utf-8").strip()
                if token:
                    self._stamp, self._header = stamp, f"Bearer {token}"
        except (OSError, UnicodeDecodeError):
            return self._header
        return self._header

    def __repr__(self) -> str:
        return f"TokenFile({str(self._path)!r})"


def _from_kubeconfig(settings: KubernetesSettings) -> tuple[Configuration, str]:
    named = settings.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    configuration = Configuration()
    try:
        for file in named.split(os.pathsep):
            # The library copies what it reads: within bounds first.
            read_yaml(Path(file).expanduser().read_text(encoding="utf-8"), file)
        load_kube_config(
            config_file=named,
            context=settings.context or None,
            client_configuration=configuration,
            persist_config=False,
        )
    except (ConfigException, SettingsError, *_NOT_READ) as error:
        kind = type(error).__name__
        raise SettingsError(
            f"The kubeconfig {named} cannot be used ({kind}).",
            remedy="Set kubernetes.kubeconfig and kubernetes.context, or $KUBECONFIG.",
        ) from None
    return configuration, _namespace_of_context(named, settings.context)


def _namespace_of_context(named: str, context: str) -> str:
    """Read the namespace of the context, which the client library does not return.

    If `named` lists several files, only the first one is read.
    """
    try:
        first = Path(named.split(os.pathsep, maxsplit=1)[0]).expanduser()
        content: Any = yaml.safe_load(first.read_text(encoding="utf-8"))
        wanted = context or content.get("current-context")
        found = [one for one in content.get("contexts", []) if one.get("name") == wanted]
        return str(found[0]["context"].get("namespace") or "default") if found else "default"
    except _NOT_READ:
        return "default"
