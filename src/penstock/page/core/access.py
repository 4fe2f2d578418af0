"""Who may ask, and what: decided from the head of a request alone.

Only GET and HEAD exist. The host that a request names must be expected, or a foreign web site could
reach the page under a name of its own (DNS rebinding). A browser says when another site asks.
Where there is a token, everything under `/v1` needs it, as a header or as the cookie that is
derived from it. What the page's own files and the health probes answer has nothing of the group.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address

from penstock.errors import SettingsError
from penstock.settings.sections import PageSettings

COOKIE = "penstock_session"
TOKEN_LENGTH_MIN = 16
HERE = frozenset({"127.0.0.1", "localhost", "::1"})
PROBES = frozenset({"/healthz", "/readyz"})
METHODS = frozenset({"GET", "HEAD"})
_SCHEME = "bearer"
_HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:@/\s]+?)\.?)(?::[0-9]*)?")


@dataclass(frozen=True, slots=True)
class RequestHead:
    method: str
    path: str
    # Every value of the header: a request with two hosts is refused.
    hosts: tuple[str, ...] = ()
    origin: str | None = None
    # What a browser says: `cross-site` when another site's page asks.
    fetch_site: str | None = None
    fetch_mode: str | None = None
    authorization: str | None = None
    cookie: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    status: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Access:
    allowed_hosts: frozenset[str]
    # None: nobody needs a token.
    token: str | None = None

    def refusal(self, head: RequestHead) -> Refused | None:
        """Why the request is not answered; None when it is."""
        if head.method not in METHODS:
            return Refused(405, "method_not_allowed", "Only GET and HEAD exist: nothing changes.")
        if head.path in PROBES:
            return None
        if not self._is_expected(head.hosts):
            return Refused(
                403,
                "foreign_host",
                "This host name is not expected; put it into page.allowed_hosts.",
            )
        if self._is_foreign(head):
            return Refused(403, "foreign_origin", "Another site's page may not ask here.")
        if self._needs_token(head.path) and not self._has_token(head):
            return Refused(
                401,
                "token_needed",
                "A token is needed: send `Authorization: Bearer TOKEN`, or open the page with "
                "#token=TOKEN behind its address.",
            )
        return None

    def _is_expected(self, hosts: tuple[str, ...]) -> bool:
        return len(hosts) == 1 and host_name(hosts[0]) in self.allowed_hosts

    def _is_foreign(self, head: RequestHead) -> bool:
        if head.origin is not None:
            scheme, separator, place = head.origin.partition("://")
            if not separator or scheme not in ("http", "https"):
                return True
            if host_name(place) not in self.allowed_hosts:
                return True
        # A link on another site may open the page, which asks for the figures itself.
        is_opened = head.fetch_mode == "navigate" and not head.path.startswith("/v1")
        return head.fetch_site in ("cross-site", "same-site") and not is_opened

    def _needs_token(self, path: str) -> bool:
        return self.token is not None and (path == "/v1" or path.startswith("/v1/"))

    def _has_token(self, head: RequestHead) -> bool:
        if self.token is None:
            return True
        scheme, _, given = (head.authorization or "").partition(" ")
        if scheme.lower() == _SCHEME and same_text(given.strip(), self.token):
            return True
        return head.path != "/v1/session" and same_text(
            session_in(head.cookie or ""), session_of(self.token)
        )


def same_text(one: str, other: str) -> bool:
    """Compared in constant time, also when the lengths differ."""
    digests = [hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in (one, other)]
    return hmac.compare_digest(*digests)


def session_of(token: str) -> str:
    """The cookie that stands for the token: from it the token cannot be had."""
    return hmac.new(token.encode(), b"penstock page session", hashlib.sha256).hexdigest()


def session_in(cookies: str) -> str:
    for one in cookies.split(";"):
        name, _, value = one.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


def session_cookie(token: str, *, is_secure: bool) -> str:
    """The header that gives a browser its session, until the browser is closed."""
    secure = "; Secure" if is_secure else ""
    return f"{COOKIE}={session_of(token)}; Path=/; HttpOnly; SameSite=Strict{secure}"


def host_name(text: str) -> str:
    """The host of `host:port`, `[::1]:8642` or `host`, without a final dot; else empty."""
    found = _HOST.fullmatch(text)
    return "" if found is None else (found["address"] or found["name"]).lower()


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def access_of(page: PageSettings, own_names: Iterable[str]) -> Access:
    """Who may ask. SettingsError when the address is open to others without a guard."""
    token = None if page.token is None else page.token.reveal()
    if token is not None and len(token) < TOKEN_LENGTH_MIN:
        raise SettingsError(
            f"page.token has {len(token)} characters, which is too easy to guess.",
            remedy=f"Use {TOKEN_LENGTH_MIN} or more, for instance from: openssl rand -hex 32",
        )
    if bool(page.certificate_file) != bool(page.key_file):
        raise SettingsError(
            "page.certificate_file and page.key_file are needed together.", remedy="Set both."
        )
    is_open = not is_loopback(page.host)
    if is_open and token is None:
        raise SettingsError(
            f"page.address {page.address} can be reached from other machines, and there is no "
            "token.",
            remedy="Set page.token_file, or listen on 127.0.0.1.",
        )
    if is_open and not page.certificate_file and not page.behind_proxy:
        raise SettingsError(
            f"page.address {page.address} can be reached from other machines, and there is no TLS.",
            remedy="Set page.certificate_file and page.key_file, or page.behind_proxy if a proxy "
            "before the page does TLS.",
        )
    named = (*own_names, *page.allowed_hosts, page.host)
    # An address of IPv6 in the settings has no brackets and no port; in a request it has both.
    names = {name.lower() if name.count(":") > 1 else host_name(name) for name in named}
    return Access(frozenset(names | HERE) - {"0.0.0.0", "::", ""}, token)  # noqa: S104 -- never a host's name
