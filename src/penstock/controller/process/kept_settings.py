"""The settings of a running controller: what it was started with, and what it reads again later."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.controller.core.decisions import Code
from penstock.controller.core.inputs import Input, NewSettings, Requested
from penstock.controller.core.state import State
from penstock.controller.process.saved_states import Remembered
from penstock.controller.process.settings_in_force import (
    IN_FORCE_NAME,
    GroupSettings,
    settings_in_force,
)
from penstock.controller.process.status_file import write_status
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

    # At the start

    def template(self, remembered: DeploymentTemplate) -> DeploymentTemplate:
        """Consumers are started with the settings of this start, and what requests changed."""
        template, told = without_overtaken(remembered, self._now.settings)
        for line in told:
            self._log.warning("change_dropped", explanation=line)
        self._dropped += told
        return replace(
            template,
            settings_file=self._now.consumers_file,
            settings_digest=self._now.consumers_digest,
        )

    def roll_out_of(self, remembered: Remembered, epoch: int) -> UpdateDeployments | None:
        """What replaces the consumers that outlived the last controller with other settings."""
        before, now = remembered.template.settings_digest, self._now.consumers_digest
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
        return Requested(given.now_ms, request, NewSettings(new.settings, file, digest))

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
        write_status(self._folder / IN_FORCE_NAME, content, self._log)
