"""Writes the condition of a consumer's Deployment whenever it is out of date.

The condition is compared with the watched copy, so that a removed one comes back and a failed write
is repeated.
"""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial

from penstock.deployment.kubernetes.core.conditions import (
    Condition,
    condition_of,
    condition_patch,
    shown_condition,
)
from penstock.deployment.kubernetes.core.repairs import ObservedConsumer
from penstock.deployment.kubernetes.core.status import is_ending
from penstock.deployment.kubernetes.process.api import DEPLOYMENTS, Api, Object
from penstock.deployment.kubernetes.process.background_calls import BackgroundCalls
from penstock.model import ConsumerId

# How long the copy may take to show a written condition before it is written again.
WRITTEN_AGAIN_S = 10.0


class ConditionWriter:
    def __init__(
        self,
        api: Api,
        background_calls: BackgroundCalls,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._background_calls = background_calls
        self._monotonic = monotonic
        self._written: dict[ConsumerId, tuple[str, Condition, float]] = {}

    def write_changed(
        self,
        deployments: Mapping[ConsumerId, Object],
        observed: Mapping[ConsumerId, ObservedConsumer],
    ) -> None:
        for consumer, one in observed.items():
            deployment = deployments[consumer]
            condition = condition_of(deployment, one.trouble)
            if is_ending(deployment) or shown_condition(deployment) == condition:
                self._written.pop(consumer, None)
            elif self._is_due(consumer, deployment["metadata"]["uid"], condition):
                patch = condition_patch(deployment, condition, datetime.now(UTC))
                name = deployment["metadata"]["name"]
                self._background_calls.later(
                    partial(self._api.patch_status, DEPLOYMENTS, name, patch)
                )
        for gone in self._written.keys() - observed.keys():
            del self._written[gone]

    def _is_due(self, consumer: ConsumerId, uid: str, condition: Condition) -> bool:
        now_s = self._monotonic()
        known = self._written.get(consumer)
        is_on_its_way = known is not None and known[:2] == (uid, condition)
        if known is not None and is_on_its_way and now_s - known[2] < WRITTEN_AGAIN_S:
            return False
        self._written[consumer] = (uid, condition, now_s)
        return True
