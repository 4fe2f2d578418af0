"""The settings of a running controller: what it was started with, and what it reads again later."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.controller.core.decisions import Code
from penstock.controller.core.inputs import Input, NewSettings, Requested
from penstock.controller.core.start_roll_out import AtStart, at_start
from penstock.controller.core.state import State
from penstock.controller.process.saved_states import Remembered
from penstock.controller.process.settings_in_force import (
    IN_FORCE_NAME,
    GroupSettings,
    settings_in_force,
)
from penstock.controller.process.status_file import status_text, write_status
from penstock.controller.process.template_changes import without_overtaken
from penstock.deployment import DeploymentTemplate
from penstock.errors import PenstockError
from penstock.messages import UpdateDeployments


class KeptSettings:
    def __init__(
        self,
        started_with: GroupSettings,
        read_again: Callable[[], GroupSettings] | None,
        folder: Path,
        log: Any,
    ) -> None:
        """`read_again` is None where a running controller cannot read its settings."""
        self._now = started_with
        self._read_again = read_again
        self._folder = folder
        self._log = log
        # Read for a request, and not adopted by the core, or no longer: a roll-out is rolled back.
        self._others: tuple[GroupSettings, ...] = ()
        self._dropped: list[str] = []
        self._shown: object = None
        # What was last written by `show`, as JSON.
        self.shown_text = "null"

    # At the start

    def template(self, remembered: DeploymentTemplate) -> DeploymentTemplate:
        """Consumers are started with the settings of this start, and what requests changed.

        Pods stay as they are until a roll-out: each version has one meaning, and a roll-back a
        deployment to go back to.
        """
        if self._now.pod_plan and self._are_otherwise(remembered):
            return remembered
        template, told = without_overtaken(remembered, self._now.settings)
        for line in told:
            self._log.warning("change_dropped", explanation=line)
        self._dropped += told
        return replace(
            template,
            settings_file=self._now.consumers_file,
            settings_digest=self._now.consumers_digest,
            pod_plan=self._now.pod_plan,
            failed_digest="",
        )

    def _are_otherwise(self, remembered: DeploymentTemplate) -> bool:
        """Of an older release nothing is known, so its pods count as made like ours."""
        before = remembered.settings_digest
        return bool(before) and before != self._now.consumers_digest

    def due(self, remembered: Remembered) -> NewSettings | None:
        """What a roll-out has to bring to the pods that outlived the last controller."""
        now, before = self._now, remembered.template
        if not now.pod_plan or remembered.state is None:
            return None
        found = at_start(
            digest=now.consumers_digest,
            of_consumers=before.settings_digest,
            rolled_back=before.failed_digest,
        )
        new = NewSettings(now.settings, now.consumers_file, now.consumers_digest, now.pod_plan)
        if found is not AtStart.AS_THEY_ARE:
            self._log.warning("consumers_are_otherwise", what=found.value, this_start=new.name)
        return new if found is AtStart.REPLACE_THEM else None

    def roll_out_of(self, remembered: Remembered, epoch: int) -> UpdateDeployments | None:
        """What replaces the consumers that outlived the last controller with other settings."""
        before, now = remembered.template.settings_digest, self._now.consumers_digest
        if self._now.pod_plan:
            return None  # by `due`: it is known what they are made of until then
        if remembered.state is None or not before or not now or before == now:
            return None
        asked_by = "the start with other settings"
        return UpdateDeployments(request_id=f"start-{epoch}", requested_by=asked_by)

    def tell(self, state: State, template: DeploymentTemplate, unix_ms: int) -> None:
        """Log which changes by requests still hold, and which do not."""
        for decision in state.history:
            if decision.code is Code.SETTING_DROPPED and decision.at_ms == state.now_ms:
                self._log.warning("setting_dropped", explanation=decision.explanation)
                self._dropped.append(decision.explanation)
        content = settings_in_force(state, self._now, template, self._dropped, unix_ms)
        for change in content["live_changes"]:
            self._log.info("live_change_holds", **change)

    # Later

    def with_new_settings(self, given: Input) -> Input:
        """A request that asks for it gets the operator's settings, read again."""
        request = given.request if isinstance(given, Requested) else None
        if not (isinstance(request, UpdateDeployments) and request.from_settings):
            return given
        if self._read_again is None:
            return given
        try:
            new = self._read_again()
        except (PenstockError, OSError) as error:
            return Requested(given.now_ms, request, not_read=str(error))
        self._others = (*self._others[-1:], new)
        file, digest = new.consumers_file, new.consumers_digest
        settings = NewSettings(new.settings, file, digest, new.pod_plan)
        return Requested(given.now_ms, request, settings)

    def show(self, state: State, template: DeploymentTemplate, unix_ms: int) -> None:
        """Write what is in force, when something in it has changed."""
        adopted = next((one for one in self._others if state.chosen is one.settings), None)
        if adopted is not None:
            former, self._now = self._now, adopted
            self._others = (former, *(one for one in self._others if one is not adopted))
            adopted.on_adopted()
        shown = (state.chosen, state.overrides, template)
        if shown == self._shown:
            return
        self._shown = shown
        content = settings_in_force(state, self._now, template, self._dropped, unix_ms)
        self.shown_text = status_text(content)
        write_status(self._folder / IN_FORCE_NAME, self.shown_text, self._log)
