"""Which addresses are safe, and which requests are answered."""

import pytest

from penstock.errors import SettingsError
from penstock.page.core.access import (
    Access,
    RequestHead,
    access_of,
    host_name,
    is_loopback,
    session_cookie,
    session_in,
)
from penstock.settings.secret import Secret
from penstock.settings.sections import PageSettings

TOKEN = "t" * 32


def settings(address: str = "127.0.0.1:8642", **given: object) -> PageSettings:
    return PageSettings.model_validate({"address": address, **given})


def test_this_machine_needs_nothing() -> None:
    """And its own names are expected, with those of the settings."""
    access = access_of(settings(allowed_hosts=["page.example"]), ["Tower"])
    assert access.token is None
    assert access.allowed_hosts == {"127.0.0.1", "localhost", "::1", "tower", "page.example"}


def test_an_address_of_ipv6_is_expected_as_a_whole() -> None:
    """Of the page and of the settings; its first part is no name of a host."""
    given = settings("[FD00::1]:8642", token=Secret(TOKEN), behind_proxy=True)
    access = access_of(given.model_copy(update={"allowed_hosts": ["fd00::2"]}), ())
    head = RequestHead("GET", "/", hosts=("[fd00::1]:8642",))
    assert access.refusal(head) is None
    assert {"fd00::1", "fd00::2"} <= access.allowed_hosts
    assert "fd00" not in access.allowed_hosts


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "there is no token"),
        ({"token": Secret(TOKEN)}, "there is no TLS"),
        ({"token": Secret("short")}, "too easy to guess"),
        ({"token": Secret(TOKEN), "key_file": "k"}, "needed together"),
    ],
)
def test_other_machines_need_a_token_and_tls(given: dict[str, object], message: str) -> None:
    """Neither alone is enough; what is missing is said, and never the token."""
    with pytest.raises(SettingsError, match=message) as refused:
        access_of(settings("0.0.0.0:8642", **given), ())
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize(
    "given", [{"behind_proxy": True}, {"certificate_file": "c", "key_file": "k"}]
)
def test_tls_or_a_proxy(given: dict[str, object]) -> None:
    """A wildcard address is no name of a host."""
    access = access_of(settings("0.0.0.0:8642", token=Secret(TOKEN), **given), ())
    assert access.token == TOKEN
    assert not [one for one in access.allowed_hosts if one.startswith("0.")]


@pytest.mark.parametrize(
    "address", ["8642", "a b:1", "host:99999", "::1:80", "host:", "http://a:1", ":80"]
)
def test_what_is_no_address(address: str) -> None:
    """Is refused when the settings are read."""
    with pytest.raises(ValueError, match="write host:port"):
        settings(address)


def test_allowed_hosts_are_names() -> None:
    """A wildcard would allow every name."""
    for wrong in ("*", "*.example", "http://a", ""):
        with pytest.raises(ValueError, match="not the name of a host"):
            settings(allowed_hosts=[wrong])
    with pytest.raises(ValueError, match="write a list"):
        settings(allowed_hosts="page.example")


def test_names_of_hosts() -> None:
    """With and without a port, in every spelling."""
    texts = ("A.example:80", "a.example.", "[::1]:8642", "127.0.0.1")
    assert [host_name(one) for one in texts] == ["a.example", "a.example", "::1", "127.0.0.1"]
    wrong = ("[::1]evil", "[::1].evil.example", "[::1", "a:80@evil", "a:b", "a b", "[]", "")
    assert [host_name(one) for one in wrong] == [""] * len(wrong)
    assert [is_loopback(one) for one in ("localhost", "127.0.0.9", "::1")] == [True] * 3
    assert not is_loopback("10.0.0.1")
    assert not is_loopback("page.example")
    assert settings("[::1]:80").host == "::1"


def asked(path: str = "/v1/status", **given: str) -> RequestHead:
    return RequestHead("GET", path, ("localhost",), **given)


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (RequestHead("POST", "/v1/status", ("localhost",)), "method_not_allowed"),
        (RequestHead("GET", "/healthz", ("10.0.0.1",)), None),
        (RequestHead("GET", "/v1/status", ()), "foreign_host"),
        (RequestHead("GET", "/v1/status", ("localhost", "localhost")), "foreign_host"),
        (asked(origin="null"), "foreign_origin"),
        (asked(origin="ftp://localhost"), "foreign_origin"),
        (asked(origin="http://a"), "foreign_origin"),
        (asked(origin="http://localhost:1"), "token_needed"),
        (asked(origin="http://localhost, http://a"), "foreign_origin"),
        (asked("/v1"), "token_needed"),
        (asked("/v1x"), None),
        (asked(authorization=f"bearer {TOKEN}"), None),
        (asked(authorization="Bearer wrong"), "token_needed"),
        (asked(cookie="penstock_session=x"), "token_needed"),
    ],
)
def test_what_is_refused(head: RequestHead, code: str | None) -> None:
    """By method, host, origin and token, in this order."""
    refused = Access(frozenset({"localhost"}), TOKEN).refusal(head)
    assert (None if refused is None else refused.code) == code


def test_a_link_may_open_the_page() -> None:
    """But no other site's page may ask for figures."""
    access = Access(frozenset({"localhost"}))
    opened = {"hosts": ("localhost",), "fetch_site": "cross-site", "fetch_mode": "navigate"}
    assert access.refusal(RequestHead("GET", "/", **opened)) is None  # type: ignore[arg-type]
    refused = access.refusal(RequestHead("GET", "/v1/status", **opened))  # type: ignore[arg-type]
    assert refused is not None
    assert refused.code == "foreign_origin"


def test_a_session_without_a_token() -> None:
    """Where nobody needs a token, /v1/session needs none either."""
    head = RequestHead("GET", "/v1/session", hosts=("localhost",))
    assert Access(frozenset({"localhost"})).refusal(head) is None
    assert Access(frozenset({"localhost"}))._has_token(head)


def test_sessions() -> None:
    """The cookie is found among others; with TLS it is for TLS alone."""
    cookie = session_cookie(TOKEN, is_secure=True)
    assert cookie.endswith("; Secure")
    assert not session_cookie(TOKEN, is_secure=False).endswith("; Secure")
    assert session_in(f"a=b; {cookie.partition(';')[0]}; c=d") == cookie[17:].partition(";")[0]
    assert session_in("a=b; c") == ""
