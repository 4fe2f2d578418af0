"""Writes Kubernetes Events about consumers; `kubectl describe` shows them.

The same text about the same consumer is written at most once in half an hour.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from penstock.deployment.kubernetes.core.conditions import moment_text
from penstock.deployment.kubernetes.process.api import EVENTS, Api, Object
from penstock.deployment.kubernetes.process.background_calls import BackgroundCalls

COMPONENT = "penstock-controller"
REPEATED_AFTER_S = 1_800.0
_REMEMBERED_MAX = 5_000


def event_manifest(
    about: Object, reason: str, explanation: str, *, is_warning: bool, at: datetime, instance: str
) -> dict[str, Any]:
    metadata = about["metadata"]
    moment = moment_text(at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "generateName": f"{metadata['name']}.",
            "namespace": metadata["namespace"],
        },
        "involvedObject": {
            "apiVersion": about.get("apiVersion", "apps/v1"),
            "kind": about.get("kind", "Deployment"),
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
        },
        "reason": reason,
        "message": explanation[:1000],
        "type": "Warning" if is_warning else "Normal",
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": instance,
    }


class EventWriter:
    def __init__(
        self,
        api: Api,
        background_calls: BackgroundCalls,
        instance: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._background_calls = background_calls
        self._instance = instance
        self._monotonic = monotonic
        self._written_at_s: dict[tuple[str, str, str], float] = {}

    def write(
        self, about: Object, reason: str, explanation: str, *, is_warning: bool = True
    ) -> None:
        if not self._is_new((about["metadata"]["uid"], reason, explanation)):
            return
        manifest = event_manifest(
            about,
            reason,
            explanation,
            is_warning=is_warning,
            at=datetime.now(UTC),
            instance=self._instance,
        )
        self._background_calls.later(partial(self._api.create, EVENTS, manifest))

    def _is_new(self, key: tuple[str, str, str]) -> bool:
        now_s = self._monotonic()
        if now_s - self._written_at_s.get(key, -REPEATED_AFTER_S) < REPEATED_AFTER_S:
            return False
        if len(self._written_at_s) >= _REMEMBERED_MAX:
            self._written_at_s.clear()
        self._written_at_s[key] = now_s
        return True
