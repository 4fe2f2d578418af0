"""Carries out the core's effects and puts their results into the inbox.

Deploying, ending a consumer and packing may take long, so they run on worker threads and the loop
never waits for them. Creating and deleting may be repeated, so a controller that crashed in between
repeats them.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from penstock.controller.core.effects import (
    CreateConsumer,
    DeleteConsumer,
    Effect,
    ListDeployments,
    Pack,
    RestoreDeploymentTemplate,
    SetDeploymentTemplate,
    TryDeployment,
)
from penstock.controller.core.inputs import (
    ConsumerDeleted,
    ConsumerIncident,
    CreationFailed,
    Deployed,
    DeploymentsListed,
    DeploymentTried,
    Input,
    ListingFailed,
    NewSettings,
    Packed,
    PackingFailed,
)
from penstock.controller.process.inbound import Inbox
from penstock.controller.process.template_changes import updated, without_overtaken
from penstock.deployment import (
    DeploymentBackend,
    DeploymentError,
    DeploymentTemplate,
    StillEndingError,
    TrialOutcome,
)
from penstock.errors import PenstockError
from penstock.messages import UpdateDeployments
from penstock.model import ConsumerId
from penstock.packing import algorithm_named
from penstock.settings import Settings

# Creations and deletions mostly wait for other processes: a few at once keep a large plan quick.
WORKERS = 8


class EffectRunner:
    def __init__(
        self,
        deployment: DeploymentBackend,
        inbox: Inbox,
        log: Any,
        *,
        template: DeploymentTemplate,
        make_mailboxes: Callable[[ConsumerId], None],
        former: DeploymentTemplate | None = None,
        chosen: Callable[[], Settings] = Settings,
    ) -> None:
        """`former` is the template that a roll-back restores; `chosen` gives the settings now."""
        self._deployment = deployment
        self._inbox = inbox
        self._log = log
        self._make_mailboxes = make_mailboxes
        self._chosen = chosen
        self.template = template
        self.former = former or DeploymentTemplate()
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="effects")
        self._actions: dict[type[Effect], Callable[[Any], None]] = {
            ListDeployments: self._list,
            CreateConsumer: self._create,
            DeleteConsumer: self._delete,
            Pack: self._pack,
            TryDeployment: self._try,
        }

    def do(self, effect: Effect) -> None:
        """Start an effect; its result comes through the inbox."""
        if isinstance(effect, SetDeploymentTemplate):
            self.former = self.template
            self.template = self._updated(effect.version, effect.request, effect.new_settings)
            return
        if isinstance(effect, RestoreDeploymentTemplate):
            failed = self.template.settings_digest
            self.template = replace(self.former, version=effect.version, failed_digest=failed)
            return
        self._workers.submit(self._guarded, self._actions[type(effect)], effect)

    def _updated(
        self, version: int, request: UpdateDeployments, new: NewSettings | None
    ) -> DeploymentTemplate:
        """The template as a roll-out changes it."""
        chosen = self._chosen() if new is None else new.settings
        template = updated(self.template, version, request, chosen)
        if new is None:
            return template
        template = replace(
            template,
            settings_file=new.consumers_file,
            settings_digest=new.consumers_digest,
            pod_plan=new.pod_plan,
            failed_digest="",
        )
        template, told = without_overtaken(template, chosen)
        for line in told:
            self._log.warning("change_dropped", explanation=line)
        return template

    def repair(self) -> None:
        """Let the back-end restart what died; incidents go to the log and the history."""
        self._workers.submit(self._guarded, self._repair_now, None)

    def close(self) -> None:
        self._workers.shutdown(wait=True, cancel_futures=True)

    def _guarded(self, action: Callable[[Any], None], effect: Any) -> None:
        try:
            action(effect)
        except Exception as error:  # noqa: BLE001 -- handed to the loop, which ends with it
            self._inbox.put(error)

    def _say(self, made: Callable[[int], Input]) -> None:
        self._inbox.put(made)

    def _list(self, _: ListDeployments) -> None:
        try:
            found = self._deployment.list_consumers()
        except DeploymentError as error:
            reason = str(error)
            self._log.warning("list_failed", error=reason)
            self._say(lambda now_ms: ListingFailed(now_ms, reason))
            return
        consumers = {c: Deployed(one.version, one.is_starting) for c, one in found.items()}
        is_current = self._deployment.lists_are_current
        self._say(lambda now_ms: DeploymentsListed(now_ms, consumers, is_current))

    def _create(self, effect: CreateConsumer) -> None:
        consumer = effect.consumer
        try:
            self._make_mailboxes(consumer)
            self._deployment.create(consumer, self.template)
        except (PenstockError, OSError) as error:  # Kafka away, no such right, a full disk
            reason = str(error)
            self._log.error("create_failed", consumer=consumer, error=reason)
            self._say(lambda now_ms: CreationFailed(now_ms, consumer, reason))
        else:
            self._log.info("consumer_created", consumer=consumer, version=self.template.version)

    def _delete(self, effect: DeleteConsumer) -> None:
        consumer = effect.consumer
        try:
            self._deployment.delete(consumer)
        except StillEndingError:
            self._log.info("consumer_still_ending", consumer=consumer)
            return  # the core asks again; the number is not reused before it is gone
        except DeploymentError as error:
            self._log.error("delete_failed", consumer=consumer, error=str(error))
            return  # the core asks again
        self._log.info("consumer_deleted", consumer=consumer)
        self._say(lambda now_ms: ConsumerDeleted(now_ms, consumer))

    def _try(self, effect: TryDeployment) -> None:
        """What cannot be tried is rolled out: its first consumer shows whether it carries."""
        version = effect.version
        try:
            found = self._deployment.try_out(
                self._updated(version, effect.request, effect.new_settings)
            )
        except (PenstockError, OSError) as error:
            found = TrialOutcome(note=str(error))
        # A start goes on with a doubt, because the newest records may be bad ones; what runs well
        # is not replaced by it.
        refusal = found.refusal or found.doubt
        self._log.info("deployment_tried", version=version, refusal=refusal, note=found.note)
        self._say(lambda now_ms: DeploymentTried(now_ms, version, refusal, found.note))

    def _repair_now(self, _: None) -> None:
        try:
            incidents = self._deployment.repair()
        except DeploymentError as error:
            self._log.warning("repair_failed", error=str(error))
            return
        for one in incidents:
            self._log.warning(
                "consumer_incident", consumer=one.consumer, explanation=one.explanation
            )
            self._say(
                partial(
                    ConsumerIncident,
                    consumer=one.consumer,
                    explanation=one.explanation,
                    has_ended=one.has_ended,
                )
            )

    def _pack(self, effect: Pack) -> None:
        try:
            packing = algorithm_named(effect.algorithm).pack(effect.problem)
        except ValueError as error:
            reason = str(error)
            self._say(lambda now_ms: PackingFailed(now_ms, effect.number, reason))
        else:
            self._say(lambda now_ms: Packed(now_ms, effect.number, packing))
