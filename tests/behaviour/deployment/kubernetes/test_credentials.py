"""Credentials for the API server: their sources, and that they are never printed."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.kubernetes.stub_api_server import StubApiServer
from penstock.deployment.kubernetes.process.api import DEPLOYMENTS, Api
from penstock.deployment.kubernetes.process.credentials import TokenFile, access
from penstock.errors import SettingsError
from penstock.settings import load_settings
from penstock.settings.sections import KubernetesSettings

CANARY = "canary-secret-token"


def settings(**given: Any) -> KubernetesSettings:
    return KubernetesSettings.model_validate(given)


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A service account's files, as Kubernetes mounts them in a pod."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text(CANARY, encoding="utf-8")
    (folder / "ca.crt").write_text("certificate", encoding="utf-8")
    (folder / "namespace").write_text("lakes\n", encoding="utf-8")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return folder


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://api:1"}}],
        "users": [{"name": "u", "user": {"token": CANARY}}],
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "first"}},
            {"name": "two", "context": {"cluster": "c", "user": "u"}},
        ],
        "current-context": "one",
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def header(found: Any) -> str:
    text: str = found.client.configuration.auth_settings()["BearerToken"]["value"]
    return text


def test_in_a_pod_its_own_token_is_used(account: Path) -> None:
    """In a pod the service account gives token, address and namespace."""
    found = access(settings(), service_account=account)
    assert found.client.configuration.host == "https://10.0.0.1:443"
    assert (found.namespace, found.origin) == ("lakes", "service account")
    assert header(found) == f"Bearer {CANARY}"
    assert access(settings(namespace="ponds"), service_account=account).namespace == "ponds"


def test_an_ipv6_address_is_bracketed(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An IPv6 address is put in brackets."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    found = access(settings(), service_account=account)
    assert found.client.configuration.host == "https://[fd00::1]:443"


def test_a_kubeconfig_that_is_named_wins(account: Path, kubeconfig: Path) -> None:
    """A kubeconfig wins over the pod's token, and its context gives the namespace."""
    found = access(settings(kubeconfig=str(kubeconfig)), service_account=account)
    assert (found.namespace, found.origin) == ("first", "kubeconfig")
    assert header(found) == f"Bearer {CANARY}"
    other = access(settings(kubeconfig=str(kubeconfig), context="two"), service_account=account)
    assert other.namespace == "default"


def test_a_kubeconfig_that_cannot_be_used_is_named_and_not_quoted(
    tmp_path: Path, kubeconfig: Path
) -> None:
    """A missing or wrong kubeconfig is named in the error, and its content is not quoted."""
    broken = tmp_path / "broken"
    broken.write_text(f"users: [{{token: {CANARY}", encoding="utf-8")
    for given in (
        {"kubeconfig": str(tmp_path / "none")},
        {"kubeconfig": str(broken)},
        {"kubeconfig": str(kubeconfig), "context": "three"},
    ):
        with pytest.raises(SettingsError, match="cannot be used") as raised:
            access(settings(**given))
        assert CANARY not in str(raised.value)
        assert raised.value.__cause__ is None


def test_a_rotated_token_is_used_at_once(tmp_path: Path, account: Path) -> None:
    """The next call uses a changed token; while the file is missing the old one stays."""

    def answering(*_: Any) -> tuple[int, Any, dict[str, str]]:
        return 200, {"metadata": {"name": "x", "uid": "u"}}, {}

    token = account / "token"
    with StubApiServer(answering) as server:
        explicit = settings(
            api_server=server.host,
            token_file=str(token),
            certificate_authority_file=str(account / "ca.crt"),
        )
        api = Api(access(explicit))
        api.read(DEPLOYMENTS, "x")
        swapped = tmp_path / "next"
        swapped.write_text("second", encoding="utf-8")
        swapped.replace(token)
        api.read(DEPLOYMENTS, "x")
        token.unlink()
        api.read(DEPLOYMENTS, "x")
    assert server.tokens == [f"Bearer {CANARY}", "Bearer second", "Bearer second"]


def test_explicit_access_is_whole_or_an_error(account: Path, tmp_path: Path) -> None:
    """api_server, token_file and certificate file must be set together and exist."""
    whole = {"api_server": "https://x", "token_file": "y", "certificate_authority_file": "z"}
    for name in whole:
        with pytest.raises(ValueError, match="together"):
            settings(**{one: whole[one] for one in whole if one != name})
    with pytest.raises(ValueError, match="not both"):
        settings(**whole, kubeconfig="k")
    with pytest.raises(SettingsError, match="certificate file"):
        access(settings(**whole))
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(SettingsError, match="cannot be read or is empty"):
        TokenFile(empty)


def test_the_token_is_never_printed(account: Path) -> None:
    """Neither the token's holder nor the settings print the token."""
    token = TokenFile(account / "token")
    assert CANARY not in repr(token)
    assert CANARY not in repr(access(settings(), service_account=account))
    assert CANARY not in repr(load_settings(environment={}).settings.kubernetes)


def test_a_token_without_an_address_is_a_clear_error(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token without KUBERNETES_SERVICE_HOST is a settings error."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(SettingsError, match="KUBERNETES_SERVICE_HOST"):
        access(settings(), service_account=account)
