"""Why a broker that listens lets nobody in: read from what the client told meanwhile. Pure.

To the caller of a question every such failure looks like silence. The client tells the cause beside
it, in the words of its TLS library and of the broker.
"""

import re
from collections.abc import Iterable
from enum import Enum, auto

from penstock.errors import NotPermittedError, PenstockError, SettingsError, UnreachableError
from penstock.settings.sections import KafkaSettings

_SUPPORTED = re.compile(r"supported mechanisms: ([A-Z0-9,\- ]+)")


class Refusal(Enum):
    """What was refused. The order is that of what says most."""

    LOGIN_NOT_TAKEN = auto()  # the client logs in, the broker knows no logins
    MECHANISM = auto()
    LOGIN = auto()
    AUTHORITY = auto()
    CLIENT_CERTIFICATE = auto()
    TLS = auto()  # the client speaks TLS, the broker does not
    PLAIN = auto()  # the broker speaks TLS, the client does not
    NO_LOGIN = auto()  # the broker wants a login, the client has none


# So begins what the client found out itself. A broker that ends in the midst of a login is told as
# a failed one, with such a reason.
_OF_THE_CLIENT = "local: "
# Parts of the client's texts, in small letters.
_SIGNS = {
    Refusal.LOGIN_NOT_TAKEN: ("not valid in current sasl state",),
    Refusal.MECHANISM: ("mechanism handshake failed", "unsupported sasl mechanism"),
    Refusal.LOGIN: ("sasl authentication error", "authentication failed"),
    Refusal.AUTHORITY: ("certificate verify failed", "certificate could not be verified"),
    Refusal.CLIENT_CERTIFICATE: (
        "alert certificate required",
        "alert bad certificate",
        "alert unknown ca",
        "alert certificate unknown",
        "client ssl authentication might be required",
    ),
    Refusal.TLS: ("wrong version number", "connecting to a plaintext broker listener"),
    Refusal.PLAIN: ("connecting to a ssl listener",),
    Refusal.NO_LOGIN: ("broker might require sasl",),
}


def refusal_in(texts: Iterable[str]) -> Refusal | None:
    """What the client's texts say; None if they say no more than that nobody answers."""
    small = [text for text in map(str.lower, texts) if _OF_THE_CLIENT not in text]
    for refusal, signs in _SIGNS.items():
        if any(sign in text for text in small for sign in signs):
            return refusal
    return None


def refused(
    refusal: Refusal, kafka: KafkaSettings, doing: str, texts: Iterable[str] = ()
) -> PenstockError:
    """The refusal as an error with what to set."""
    if refusal in {Refusal.MECHANISM, Refusal.LOGIN}:
        return _login_refused(refusal, kafka, doing, texts)
    if refusal is Refusal.AUTHORITY:
        return _authority_unknown(kafka, doing)
    if refusal is Refusal.CLIENT_CERTIFICATE:
        return _client_not_known(kafka, doing)
    return _other_protocol(refusal, kafka, doing)


def _other_protocol(refusal: Refusal, kafka: KafkaSettings, doing: str) -> PenstockError:
    what = f"The broker at {kafka.bootstrap_servers}"
    if refusal is Refusal.TLS:
        return UnreachableError(
            f"{what} does not answer with TLS ({doing}).",
            remedy="Check the port in kafka.bootstrap_servers: it may be one without TLS. If that "
            "is meant, set security.protocol to PLAINTEXT, or SASL_PLAINTEXT.",
        )
    if refusal is Refusal.PLAIN:
        return SettingsError(
            f"{what} speaks TLS, and security.protocol is {kafka.security_protocol} ({doing}).",
            remedy="Set security.protocol in kafka.properties: SSL, or SASL_SSL where a user and a "
            "password are needed; and ssl.ca.location.",
        )
    if refusal is Refusal.LOGIN_NOT_TAKEN:
        without = kafka.security_protocol.removeprefix("SASL_")
        return SettingsError(
            f"{what} takes no login here, and security.protocol is {kafka.security_protocol} "
            f"({doing}).",
            remedy=f"Set security.protocol to {without}, without sasl.mechanism and sasl.username; "
            "or use the port that takes a login.",
        )
    return SettingsError(
        f"{what} asks for a login (SASL), and security.protocol is {kafka.security_protocol} "
        f"({doing}).",
        remedy=f"Set security.protocol in kafka.properties: {_with_login(kafka)}, with "
        "sasl.mechanism and sasl.username; and kafka.sasl_password_file.",
    )


def _login_refused(
    refusal: Refusal, kafka: KafkaSettings, doing: str, texts: Iterable[str]
) -> PenstockError:
    mechanism = kafka.properties.get("sasl.mechanism", "none")
    what = (
        f"The broker at {kafka.bootstrap_servers} refused the login of user "
        f"{kafka.properties.get('sasl.username', '')} (SASL mechanism {mechanism}) ({doing})"
    )
    if refusal is Refusal.LOGIN:
        return NotPermittedError(
            f"{what}.",
            remedy="Check sasl.username, the password (kafka.sasl_password_file or "
            "PENSTOCK_KAFKA__SASL_PASSWORD) and sasl.mechanism: a user has a password for each.",
        )
    found = [one for text in texts for one in _SUPPORTED.findall(text)]
    takes = f": it takes {found[0].strip()}" if found else ""
    return NotPermittedError(
        f"{what}{takes}.", remedy="Set sasl.mechanism in kafka.properties to one that it takes."
    )


def _authority_unknown(kafka: KafkaSettings, doing: str) -> PenstockError:
    authority = kafka.properties.get("ssl.ca.location")
    what = f"The certificate of the broker at {kafka.bootstrap_servers} is not signed by"
    if authority is None:
        return SettingsError(
            f"{what} an authority that this machine trusts ({doing}).",
            remedy="Set ssl.ca.location in kafka.properties to the certificate of its authority.",
        )
    return SettingsError(
        f"{what} what ssl.ca.location holds ({authority}), or it is for another host ({doing}).",
        remedy="Name the file with the authority of this Kafka; and in kafka.bootstrap_servers the "
        "host by the name that its certificate has.",
    )


def _client_not_known(kafka: KafkaSettings, doing: str) -> PenstockError:
    what = f"The broker at {kafka.bootstrap_servers}"
    given = kafka.properties.get("ssl.certificate.location")
    if given is None:
        return SettingsError(
            f"{what} asks for a client certificate ({doing}).",
            remedy="Set ssl.certificate.location and ssl.key.location in kafka.properties.",
        )
    return NotPermittedError(
        f"{what} does not accept the client certificate of ssl.certificate.location ({given}) "
        f"({doing}).",
        remedy="Use one that an authority of this Kafka has signed, and that has not expired.",
    )


def _with_login(kafka: KafkaSettings) -> str:
    return "SASL_SSL" if kafka.security_protocol == "SSL" else "SASL_PLAINTEXT"
