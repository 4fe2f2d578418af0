"""Every call to the Kubernetes API server goes through this module.

The official client handles addresses, certificates and tokens. Bodies stay plain JSON values:
converting 500 Deployments into the client's classes takes seconds, and the pure modules work on
plain values. Temporary failures are retried here; core/refusals.py decides which ones those are.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import urllib3
from kubernetes.client.exceptions import ApiException

from penstock.deployment.interface import DeploymentError
from penstock.deployment.kubernetes.core.answers import read_change, read_list, read_object
from penstock.deployment.kubernetes.core.refusals import (
    ATTEMPTS_MAX,
    ApiAnswer,
    ApiUnavailableError,
    Meaning,
    MissingRightError,
    Right,
    error_of,
    meaning,
    pause_s,
)
from penstock.deployment.kubernetes.process.credentials import Access

Object = dict[str, Any]
CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 20.0
# The server sends a bookmark on a quiet watch every minute; a longer silence means it is broken.
WATCH_SILENCE_S = 100.0
# Objects on one page of a list, so that no answer is huge.
PAGE = 500
# For this long after an outage a refusal is treated as temporary.
OUTAGE_REMEMBERED_S = 60.0
# How long a missing right is remembered before the call is tried again.
REFUSAL_REMEMBERED_S = 300.0

DEPLOYMENTS = ("apis/apps/v1", "deployments")
CLAIMS = ("api/v1", "persistentvolumeclaims")
PODS = ("api/v1", "pods")
EVENTS = ("api/v1", "events")
Resource = tuple[str, str]


class ConflictError(DeploymentError):
    """The object was created or changed by another client in between."""


class GoneError(DeploymentError):
    """The server no longer has the changes since the version that the watch asked for."""


class Api:
    """Safe to use from several threads."""

    def __init__(
        self,
        access: Access,
        *,
        on_call: Callable[[Right], None] = lambda _: None,
        sleep: Callable[[float], None] = time.sleep,  # between attempts, on the caller's thread
        attempts_max: int = ATTEMPTS_MAX,
    ) -> None:
        self._access = access
        self._on_call = on_call
        self._sleep = sleep
        self._attempts_max = attempts_max
        self._chance = random.Random()
        self._refused: dict[Right, tuple[float, DeploymentError]] = {}
        # Rights that worked before. A restarted server refuses them until it has read its roles.
        self._granted: set[Right] = set()
        self._last_outage_s = -OUTAGE_REMEMBERED_S
        self._lock = threading.Lock()

    @property
    def namespace(self) -> str:
        return self._access.namespace

    def close(self) -> None:
        self._access.client.close()

    # Calls

    def read(self, resource: Resource, name: str) -> Object | None:
        answer = self._asked(_right("get", resource), "GET", self._path(resource, name))
        return None if answer is None else read_object(answer.body)

    def list_objects(self, resource: Resource, selector: str) -> tuple[list[Object], str]:
        """All objects with the labels, and the list's resource version; never from a cache."""
        items: list[Object] = []
        query = {"labelSelector": selector, "limit": str(PAGE)}
        while True:
            right = _right("list", resource)
            answer = self._asked(right, "GET", self._path(resource), query)
            if answer is None:
                raise error_of(right, ApiAnswer(404), self.namespace)
            page = read_list(answer.body)
            items += page.get("items") or []
            query["continue"] = page["metadata"].get("continue") or ""
            if not query["continue"]:
                return items, str(page["metadata"]["resourceVersion"])

    def create(self, resource: Resource, body: Mapping[str, Any]) -> Object:
        """ConflictError when the name exists, even if an earlier attempt of ours created it."""
        answer = self._asked(_right("create", resource), "POST", self._path(resource), body=body)
        return {} if answer is None else read_object(answer.body)

    def replace(self, resource: Resource, body: Mapping[str, Any]) -> Object | None:
        """ConflictError when a newer resource version exists; None when the object is gone."""
        path = self._path(resource, body["metadata"]["name"])
        answer = self._asked(_right("update", resource), "PUT", path, body=body)
        return None if answer is None else read_object(answer.body)

    def patch_status(self, resource: Resource, name: str, body: Mapping[str, Any]) -> None:
        """Merge this into its status; Kubernetes merges the lists."""
        right = _right("patch", (resource[0], f"{resource[1]}/status"))
        path = self._path(resource, f"{name}/status")
        self._asked(right, "PATCH", path, body=body)

    def delete(self, resource: Resource, name: str, uid: str) -> bool:
        """Delete exactly this object, after the objects it owns. False when it is already gone."""
        body = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Foreground",
            "preconditions": {"uid": uid},
        }
        path = self._path(resource, name)
        return self._asked(_right("delete", resource), "DELETE", path, body=body) is not None

    def log_lines(self, pod: str, container: str, lines: int, *, previous: bool) -> list[str]:
        """The last lines of a container's log; empty when there is none yet."""
        query = {"container": container, "tailLines": str(lines)}
        if previous:
            query["previous"] = "true"
        right = Right("get", "pods/log")
        try:
            # Tried once: a node that does not answer must not delay the caller.
            path = self._path(PODS, f"{pod}/log")
            answer = self._asked(right, "GET", path, query, attempts_max=1)
        except DeploymentError as error:
            if not isinstance(error, ApiUnavailableError) and error.is_retryable:
                raise
            if right in self._refused:
                raise
            return []
        return [] if answer is None else answer.body.decode(errors="replace").splitlines()

    def watch(
        self, resource: Resource, selector: str, since: str, timeout_s: float
    ) -> Iterator[Object]:
        """Yield changes until the server ends the watch. After a GoneError, list again."""
        query = {
            "labelSelector": selector,
            "watch": "true",
            "resourceVersion": since,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(round(timeout_s)),
        }
        right = _right("watch", resource)
        self._raise_known_refusal(right)
        url = f"{self._path(resource)}?{urlencode(query)}"
        try:
            response = self._sent(right, "GET", url, None, WATCH_SILENCE_S)
        except (ApiException, urllib3.exceptions.HTTPError, OSError) as error:
            self._last_outage_s = time.monotonic()
            raise _broken(resource, error) from None
        try:
            if response.status != 200:
                raise self._watch_error(right, ApiAnswer(response.status, response.data))
            for line in _lines(response):
                change = read_change(line)
                if change["type"] == "ERROR":
                    raise self._watch_error(
                        right, ApiAnswer(int(change["object"].get("code", 500)))
                    )
                yield change
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise _broken(resource, error) from None
        finally:
            response.close()

    def _watch_error(self, right: Right, answer: ApiAnswer) -> DeploymentError:
        if meaning(answer.status) is Meaning.GONE:
            return GoneError("The watch is too far behind.")
        return self._final(right, answer)

    # Requests

    def _path(self, resource: Resource, name: str = "") -> str:
        base, kind = resource
        below = f"/{name}" if name else ""
        return f"/{base}/namespaces/{self.namespace}/{kind}{below}"

    def _asked(
        self,
        right: Right,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: Mapping[str, Any] | None = None,
        attempts_max: int | None = None,
    ) -> ApiAnswer | None:
        """Call the server, with retries. None when the object does not exist; else an error."""
        self._raise_known_refusal(right)
        given = {name: value for name, value in (query or {}).items() if value}
        url = f"{path}?{urlencode(given)}" if given else path
        attempts = attempts_max or self._attempts_max
        for attempt in range(attempts):
            answer = self._once(right, method, url, body)
            match meaning(answer.status):
                case Meaning.DONE:
                    self._granted.add(right)
                    return answer
                case Meaning.NOT_FOUND:
                    return None
                case Meaning.CONFLICT:
                    raise ConflictError(str(error_of(right, answer, self.namespace)))
                case Meaning.TRY_AGAIN if attempt + 1 < attempts:
                    self._sleep(pause_s(attempt, answer.retry_after_s, self._chance.random()))
                case Meaning.FORBIDDEN if self._may_be_granted(right) and attempt + 1 < attempts:
                    self._sleep(pause_s(attempt, None, self._chance.random()))
                case _:
                    break
        raise self._final(right, answer)

    def _once(
        self, right: Right, method: str, url: str, body: Mapping[str, Any] | None
    ) -> ApiAnswer:
        response: urllib3.BaseHTTPResponse | None = None
        try:
            response = self._sent(right, method, url, body, ANSWER_TIMEOUT_S)
            content = response.data
        except (ApiException, urllib3.exceptions.HTTPError, OSError) as error:
            # The call may have succeeded; every call here is safe to repeat.
            self._last_outage_s = time.monotonic()
            if response is not None:
                response.close()
            explanation = json.dumps({"message": f"no answer ({type(error).__name__})"})
            return ApiAnswer(503, explanation.encode())
        after = response.headers.get("Retry-After", "")
        return ApiAnswer(response.status, content, float(after) if after.isdecimal() else None)

    def _sent(
        self, right: Right, method: str, url: str, body: Any, answer_timeout_s: float
    ) -> urllib3.BaseHTTPResponse:
        self._on_call(right)
        client = self._access.client
        method, address, headers, content, _ = client.param_serialize(
            method,
            url,
            header_params={"Accept": "application/json", "Content-Type": _content_type(method)},
            body=body,
            auth_settings=["BearerToken"],
        )
        if url.startswith("/api") and "watch=true" not in url and "/log?" in url:
            headers["Accept"] = "text/plain, application/json"
        response = client.call_api(
            method,
            address,
            headers,
            content,
            _request_timeout=(CONNECT_TIMEOUT_S, answer_timeout_s),
        )
        found: urllib3.BaseHTTPResponse = response.response
        return found

    def _raise_known_refusal(self, right: Right) -> None:
        with self._lock:
            since_s, error = self._refused.get(right, (0.0, None))
        if error is not None and time.monotonic() - since_s < REFUSAL_REMEMBERED_S:
            raise error

    def _had_outage(self) -> bool:
        return time.monotonic() - self._last_outage_s < OUTAGE_REMEMBERED_S

    def _may_be_granted(self, right: Right) -> bool:
        return self._had_outage() or right in self._granted

    def _final(self, right: Right, answer: ApiAnswer) -> DeploymentError:
        """The error after the last attempt. A missing right is remembered."""
        error = error_of(right, answer, self.namespace)
        if isinstance(error, MissingRightError):
            if self._had_outage():
                return ApiUnavailableError(f"Kubernetes refuses after an outage: {error.message}")
            with self._lock:
                self._refused[right] = (time.monotonic(), error)
        return error


def _right(verb: str, resource: Resource) -> Right:
    base, kind = resource
    return Right(verb, kind, "apps" if base.startswith("apis/apps") else "")


def _content_type(method: str) -> str:
    return f"application/{'strategic-merge-patch+' if method == 'PATCH' else ''}json"


def _broken(resource: Resource, error: Exception) -> ApiUnavailableError:
    return ApiUnavailableError(f"The watch of {resource[1]} broke ({type(error).__name__}).")


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    for chunk in response.stream(2**16, decode_content=True):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line for line in whole if line.strip())
