"""Consumers as Deployments of a Kubernetes cluster.

Kubernetes itself restarts a container that ends. This back-end creates and deletes the objects,
reports incidents with their cause, recreates a Deployment that another client deleted and scales
back one that was scaled. It inspects a watched copy of the objects, and only those with the group's
labels.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.deployment.interface import (
    DeployedConsumer,
    DeploymentError,
    DeploymentTemplate,
    Incident,
    StillEndingError,
    TrialOutcome,
)
from penstock.deployment.kubernetes.core.manifests import (
    PodPlan,
    claim_manifest,
    deployment_manifest,
    template_from_text,
)
from penstock.deployment.kubernetes.core.names import (
    TEMPLATE_ANNOTATION,
    is_ours,
    object_name,
    selector_text,
)
from penstock.deployment.kubernetes.core.pod_plans import plan_of
from penstock.deployment.kubernetes.core.pod_template import CONTAINER
from penstock.deployment.kubernetes.core.refusals import NameTakenError, pause_s
from penstock.deployment.kubernetes.core.repairs import (
    ObservedConsumer,
    PodIncident,
    Repair,
    inspect_consumers,
)
from penstock.deployment.kubernetes.core.status import (
    consumer_of_object,
    deployed,
    is_ending,
    labels_of,
)
from penstock.deployment.kubernetes.process.api import (
    CLAIMS,
    DEPLOYMENTS,
    PODS,
    Api,
    ConflictError,
    Object,
    Resource,
)
from penstock.deployment.kubernetes.process.background_calls import BackgroundCalls
from penstock.deployment.kubernetes.process.condition_writer import ConditionWriter
from penstock.deployment.kubernetes.process.events import EventWriter
from penstock.deployment.kubernetes.process.watched_objects import WatchedObjects
from penstock.model import ConsumerId

# How long a deletion waits for the pod to end before it raises StillEndingError.
END_WAITED_S = 3.0
CONFLICTS_MAX = 5
REPAIRS_AT_ONCE = 20
REPAIR_AGAIN_S = 10.0
_LOGS_AT_ONCE = 5


class KubernetesDeployment:
    """Safe to call from several threads. Calls for the same consumer run one after another."""

    # They may be a little old: they are kept up to date by a watch.
    lists_are_current = False

    def __init__(
        self,
        api: Api,
        plan: PodPlan,
        *,
        instance: str = "",
    ) -> None:
        self._api = api
        self._plan = plan
        self._selector = selector_text(plan.group)
        self._changed = threading.Condition()
        self._deployments = WatchedObjects(api, DEPLOYMENTS, self._selector, on_change=self._notify)
        self._pods = WatchedObjects(api, PODS, self._selector)
        self._background_calls = BackgroundCalls()
        self._events = EventWriter(api, self._background_calls, instance or plan.group)
        self._conditions = ConditionWriter(api, self._background_calls)
        self._wanted: dict[ConsumerId, DeploymentTemplate] = {}
        self._observed: dict[ConsumerId, ObservedConsumer] = {}
        # The Deployment of each consumer that was deleted last: an older list may still show it.
        self._deleted_uids: dict[ConsumerId, str] = {}
        self._repair_not_before_s: dict[ConsumerId, float] = {}
        self._is_trouble_reported = False
        self._locks: dict[ConsumerId, threading.Lock] = {}
        self._guard = threading.Lock()
        self._repairing = threading.Lock()

    def start(self) -> "KubernetesDeployment":
        """Begin to watch. Raises at once when the API server refuses or does not answer."""
        self._deployments.start()
        self._pods.start()
        return self

    def close(self) -> None:
        self._deployments.close()
        self._pods.close()
        self._api.close()

    # The deployment interface

    def list_consumers(self) -> Mapping[ConsumerId, DeployedConsumer]:
        deployments = self._of_consumers(self._api.list_objects(DEPLOYMENTS, self._selector)[0])
        # Which consumers exist is read from the server; their state comes from the watched copy.
        pods = _grouped(self._pods.objects())
        for consumer, found in deployments.items():
            if not is_ending(found):
                self._adopt(consumer, found)
        now_unix_s = time.time()
        return {
            consumer: deployed(consumer, deployments[consumer], pods.get(consumer, ()), now_unix_s)
            for consumer in sorted(deployments)
        }

    def create(self, consumer: ConsumerId, template: DeploymentTemplate) -> None:
        with self._lock(consumer):
            self._make(consumer, template)

    def delete(self, consumer: ConsumerId) -> None:
        with self._lock(consumer):
            with self._guard:
                self._wanted.pop(consumer, None)
                self._observed.pop(consumer, None)
            self._end(consumer)
            if self._plan.settings.remove_volumes:
                self._remove_claim(consumer)

    def try_out(self, template: DeploymentTemplate) -> TrialOutcome:
        """Their image is not this one: what it has can be tried only inside of it."""
        del template
        return TrialOutcome(note="the first consumer of the new version shows whether it carries")

    def repair(self) -> Sequence[Incident]:
        if not self._repairing.acquire(blocking=False):
            return []  # the previous call still runs
        try:
            if self._is_out_of_touch():
                return []
            return self._repair_now()
        finally:
            self._repairing.release()

    # Repairs

    def _is_out_of_touch(self) -> bool:
        """True while the watched copy is outdated. Raises once, when that begins."""
        trouble = self._deployments.trouble or self._pods.trouble
        was_reported, self._is_trouble_reported = self._is_trouble_reported, trouble is not None
        if trouble is not None and not was_reported:
            raise trouble
        return trouble is not None

    def _repair_now(self) -> list[Incident]:
        deployments = self._of_consumers(self._deployments.objects())
        with self._guard:
            wanted, before = sorted(self._wanted), dict(self._observed)
        now = inspect_consumers(
            wanted, deployments, _grouped(self._pods.objects()), before, time.time()
        )
        with self._guard:
            self._observed.update({c: s for c, s in now.observed.items() if c in self._wanted})
        self._conditions.write_changed(deployments, now.observed)
        incidents = self._carry_out(now.repairs)
        last_lines = _LOGS_AT_ONCE
        for one in now.incidents:
            explanation = one.explanation
            if one.is_restart and last_lines:
                last_lines -= 1
                explanation = f"{explanation}{self._last_line(one)}"
            incidents.append(Incident(one.consumer, explanation, has_ended=one.is_down))
            self._events.write(deployments[one.consumer], one.reason, one.explanation)
        return incidents

    def _last_line(self, incident: PodIncident) -> str:
        try:
            lines = self._api.log_lines(incident.pod, CONTAINER, 1, previous=True)
        except DeploymentError:
            return ""  # the incident is reported without it
        return f". Last line: {lines[-1][:300]}" if lines else ""

    def _carry_out(self, repairs: Mapping[ConsumerId, Repair]) -> list[Incident]:
        incidents: list[Incident] = []
        now_s = time.monotonic()
        due = [c for c in repairs if self._repair_not_before_s.get(c, 0.0) <= now_s]
        for consumer in due[:REPAIRS_AT_ONCE]:
            lock = self._lock(consumer)
            if not lock.acquire(blocking=False):
                continue  # it is being created or deleted right now
            try:
                explanation = self._repair_one(consumer, repairs[consumer])
            except DeploymentError as error:
                # One failed repair must not stop the others.
                self._repair_not_before_s[consumer] = now_s + REPAIR_AGAIN_S
                explanation = f"repair failed: {error}"
            finally:
                lock.release()
            if explanation:
                incidents.append(Incident(consumer, explanation))
        return incidents

    def _repair_one(self, consumer: ConsumerId, repair: Repair) -> str:
        with self._guard:
            template = self._wanted.get(consumer)
        if template is None:
            return ""  # deleted by us in between
        found = self._own(DEPLOYMENTS, consumer)
        if repair is Repair.MAKE_AGAIN and found is None:
            has_claim = self._own(CLAIMS, consumer, must_be_ours=True) is not None
            made = self._make(consumer, template, has_claim=has_claim)
            explanation = "its Deployment was deleted by another client and was made again"
            self._events.write(made, "MadeAgain", explanation)
            return explanation
        if repair is Repair.SCALE_TO_ONE and found is not None and not is_ending(found):
            replicas = found["spec"].get("replicas", 1)
            if replicas == 1:
                self._deployments.put(found)
                return ""
            try:
                self._scale_to_one(consumer, found)
            except ConflictError:
                return ""  # the next call inspects it again
            explanation = f"it was scaled to {replicas} by another client and was scaled back to 1"
            self._events.write(found, "ScaledBack", explanation)
            return explanation
        if found is not None:
            self._deployments.put(found)
        return ""

    # Objects

    def _make(
        self, consumer: ConsumerId, template: DeploymentTemplate, *, has_claim: bool = False
    ) -> Object:
        """Create the claim, then the Deployment; existing objects of ours stay unchanged."""
        if not has_claim:
            self._make_one(CLAIMS, claim_manifest(self._plan, consumer), consumer)
        manifest = deployment_manifest(plan_of(template, self._plan), consumer, template)
        made, is_new = self._make_one(DEPLOYMENTS, manifest, consumer)
        self._deployments.put(made)
        with self._guard:
            self._wanted[consumer] = template if is_new else _template_of(made, template)
            if is_new or consumer not in self._observed:
                self._observed[consumer] = ObservedConsumer()
        if is_new:
            explanation = f"consumer {consumer} of version {template.version}"
            self._events.write(made, "Created", explanation, is_warning=False)
        return made

    def _make_one(
        self, resource: Resource, manifest: Mapping[str, Any], consumer: ConsumerId
    ) -> tuple[Object, bool]:
        for attempt in range(CONFLICTS_MAX):
            try:
                return self._api.create(resource, manifest), True
            except ConflictError:
                found = self._own(resource, consumer, must_be_ours=True)
                if found is None:
                    time.sleep(pause_s(attempt, None, 0.5))  # deleted in between: make it soon
                elif is_ending(found):
                    raise StillEndingError(
                        f"{found['metadata']['name']} ({resource[1]}) is still being deleted."
                    ) from None
                else:
                    return found, False
        raise DeploymentError(
            f"Consumer {consumer}: its {resource[1]} keep appearing and vanishing."
        )

    def _scale_to_one(self, consumer: ConsumerId, found: Object) -> None:
        """All else stays as it was made, whatever version that is."""
        made = self._api.replace(DEPLOYMENTS, {**found, "spec": {**found["spec"], "replicas": 1}})
        if made is None:
            raise ConflictError(f"Consumer {consumer} was deleted in between.")
        self._deployments.put(made)

    def _end(self, consumer: ConsumerId) -> None:
        found = self._own(DEPLOYMENTS, consumer)
        if found is None:
            return
        name, uid = found["metadata"]["name"], found["metadata"]["uid"]
        with self._guard:
            self._deleted_uids[consumer] = uid
        try:
            is_there = self._api.delete(DEPLOYMENTS, name, uid)
        except ConflictError:
            is_there = True  # replaced by another of that name: checked again below
        if is_there and not self._is_gone(name, uid):
            again = self._own(DEPLOYMENTS, consumer)
            if again is not None:
                raise StillEndingError(f"Consumer {consumer} is still ending.")
        self._deployments.drop(name, uid)

    def _is_gone(self, name: str, uid: str) -> bool:
        """True once the watched copy no longer has it; False after END_WAITED_S."""

        def gone() -> bool:
            return not any(
                one["metadata"]["name"] == name and one["metadata"]["uid"] == uid
                for one in self._deployments.objects()
            )

        with self._changed:
            return self._changed.wait_for(gone, timeout=END_WAITED_S)

    def _remove_claim(self, consumer: ConsumerId) -> None:
        claim = self._own(CLAIMS, consumer)
        if claim is not None:
            self._api.delete(CLAIMS, claim["metadata"]["name"], claim["metadata"]["uid"])

    def _own(
        self, resource: Resource, consumer: ConsumerId, *, must_be_ours: bool = False
    ) -> Object | None:
        """The consumer's object, read now; None when it does not exist or is not ours."""
        name = object_name(self._plan.group, consumer)
        found = self._api.read(resource, name)
        if found is None:
            return None
        if is_ours(labels_of(found), self._plan.group) and consumer_of_object(found) == consumer:
            return found
        if must_be_ours:
            raise NameTakenError(
                f"{name} ({resource[1]}) exists in namespace {self._api.namespace} and does not "
                f"belong to group {self._plan.group}.",
                remedy="Rename or remove it, or choose another lake.group or namespace.",
                is_retryable=False,
            )
        return None

    def _adopt(self, consumer: ConsumerId, found: Object) -> None:
        with self._guard:
            if self._deleted_uids.get(consumer) != found["metadata"]["uid"]:
                self._wanted.setdefault(consumer, _template_of(found, DeploymentTemplate()))

    def _of_consumers(self, objects: Sequence[Object]) -> dict[ConsumerId, Object]:
        """The objects by consumer. An object whose name contradicts its label is left out."""
        found = {}
        for one in objects:
            consumer = consumer_of_object(one)
            if consumer is not None and one["metadata"]["name"] == object_name(
                self._plan.group, consumer
            ):
                found[consumer] = one
        return found

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _lock(self, consumer: ConsumerId) -> threading.Lock:
        with self._guard:
            return self._locks.setdefault(consumer, threading.Lock())


def _grouped(pods: Sequence[Object]) -> dict[ConsumerId, list[Object]]:
    found: dict[ConsumerId, list[Object]] = {}
    for pod in pods:
        consumer = consumer_of_object(pod)
        if consumer is not None:
            found.setdefault(consumer, []).append(pod)
    return found


def _template_of(found: Object, otherwise: DeploymentTemplate) -> DeploymentTemplate:
    text = (found["metadata"].get("annotations") or {}).get(TEMPLATE_ANNOTATION, "")
    return template_from_text(text) or otherwise
