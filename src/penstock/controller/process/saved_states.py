"""What a controller remembers over restarts, in two places: a file of its own and a Kafka record.

The file has all of the state. The record on `<prefix>-state` has what no consumer can tell a new
controller: changed settings, pauses, the deployment template, a roll-out, the history. A controller
on another machine, without the file, goes on with the record. Each save has a number, and of the
two the newer one counts: a file may be old because another machine led since then, and a record may
be old because Kafka was away.

The record travels in the controller's own transactions, so a controller that was fenced cannot
write it. A record outside of a transaction does not count: it says what consumers are made of, so
whoever may write to the topic could otherwise bring code of their own, or an epoch above all.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.controller.core.capacity import Source
from penstock.controller.core.saved_state import (
    lasting_state_as_json,
    read_content,
    state_as_json,
)
from penstock.controller.core.state import State
from penstock.deployment import DeploymentTemplate, template_of
from penstock.kafka_io.committed_records import newest_in_a_transaction
from penstock.kafka_io.control_topics import make_control_topics
from penstock.kafka_io.failures import TopicMissingError
from penstock.kafka_io.followed_topics import AT_THE_END
from penstock.kafka_io.leading_producer import Outgoing
from penstock.model import TopicPartition
from penstock.settings import Settings
from penstock.state_directory import BrokenState, StateDirectory
from penstock.state_directory.directory import STATE_NAME
from penstock.state_directory.state_file import decode_state, encode_state

# The controller's own, in the folder of the group.
FOLDER = "controller"
# They change with nearly every step and matter little: alone they are no reason for a new record.
_NOT_WORTH_A_RECORD = ("counts", "epochs_used", "queries_sent", "phase")


def owner_name(group: str) -> str:
    """Whose the saved state is."""
    return f"{group}/controller"


@dataclass(frozen=True, slots=True)
class Remembered:
    state: State | None = None
    template: DeploymentTemplate = field(default_factory=DeploymentTemplate)
    # What a roll-back restores.
    former_template: DeploymentTemplate = field(default_factory=DeploymentTemplate)
    # The first request on the service topic that was not seen yet.
    service_next_offset: int = AT_THE_END
    # How many saves its controller had made.
    save_number: int = 0

    @property
    def age_order(self) -> tuple[int, int]:
        """The newer of two remembered states has the higher one."""
        return (-1 if self.state is None else self.state.controller_epoch), self.save_number


def newer(in_file: Remembered, in_kafka: Remembered) -> Remembered:
    """Of the same save, the file: it has more, and synchronisation is quicker with it."""
    return in_kafka if in_kafka.age_order > in_file.age_order else in_file


def topics_with_a_capacity(directory: Path, group: str) -> frozenset[str]:
    """Of which the last controller in this folder knew what one consumer carries.

    Read without its lock, for what comes before a controller. A file that cannot be used says
    nothing, as it does to the controller itself.
    """
    try:
        data = (directory / FOLDER / STATE_NAME).read_bytes()
    except OSError:
        return frozenset()
    content = decode_state(owner_name(group), data)
    saved = None if isinstance(content, BrokenState) else content.get("state")
    capacities = saved.get("capacities") if isinstance(saved, dict) else None
    if not isinstance(capacities, dict):
        return frozenset()
    return frozenset(
        topic
        for topic, row in capacities.items()
        if isinstance(row, list) and Source.ASSUMED not in row
    )


class SavedStates:
    def __init__(
        self,
        settings: Settings,
        directory: StateDirectory,
        log: Any,
        *,
        now_ms: Callable[[], int],
        unix_ms: Callable[[], int],
    ) -> None:
        """`now_ms` is the machine's own clock, by which the history is dated."""
        self._settings = settings
        self._now_ms = now_ms
        self._unix_ms = unix_ms
        self._directory = directory
        self._log = log
        self._owner = owner_name(settings.lake.group)
        self._key = settings.lake.group.encode()
        self._partition = TopicPartition(settings.topics.names.state, 0)
        self._saves = 0
        self._recorded: Mapping[str, Any] | None = None

    # Reading

    def in_file(self) -> Remembered:
        return self._read("file", self._directory.read())

    def in_kafka(self) -> Remembered:
        """To be called when this controller leads: then nobody else writes any more."""
        try:
            value = newest_in_a_transaction(
                self._settings.kafka, self._partition, self._key, on_other=self._forged
            )
        except TopicMissingError:  # a group of an older release
            for line in make_control_topics(self._settings):
                self._log.info("topic_changed", explanation=line)
            value = None
        return self._read("topic", None if value is None else decode_state(self._owner, value))

    def _forged(self, offset: int) -> None:
        self._ignored("topic", f"offset {offset} was not written in a transaction")

    def _read(self, place: str, content: dict[str, Any] | BrokenState | None) -> Remembered:
        if content is None:
            return Remembered()
        if isinstance(content, BrokenState):
            return self._ignored(place, content.why)
        saved = read_content(content.get("state", {}), self._settings)
        if isinstance(saved, BrokenState):
            return self._ignored(place, saved.why)
        try:
            return Remembered(
                self._dated_here(saved, content.get("saved_at")),
                template_of(content["template"]),
                template_of(content.get("former_template", {})),
                int(content["service_next_offset"]),
                int(content.get("save_number", 0)),  # absent in the files of older releases
            )
        except (ValueError, KeyError, TypeError) as error:
            return self._ignored(place, str(error))

    def _dated_here(self, saved: State, saved_at: Mapping[str, int] | None) -> State:
        """With times by this machine's clock: the state may be another machine's."""
        if saved_at is None:  # a file of an older release
            return saved
        # A wall clock that was put back must not keep what ends by itself in force for that long.
        age_ms = max(0, self._unix_ms() - saved_at["unix_ms"])
        shift_ms = self._now_ms() - age_ms - saved_at["now_ms"]
        limit, avoided = saved.growth_limit, saved.avoided_numbers
        return replace(
            saved,
            history=tuple(replace(one, at_ms=one.at_ms + shift_ms) for one in saved.history),
            override_origins={
                option: replace(one, at_ms=one.at_ms + shift_ms)
                for option, one in saved.override_origins.items()
            },
            growth_limit=limit and replace(limit, until_ms=limit.until_ms + shift_ms),
            avoided_numbers={c: until_ms + shift_ms for c, until_ms in avoided.items()},
        )

    def _ignored(self, place: str, why: str) -> Remembered:
        """Go on without it: synchronisation brings back what consumers hold."""
        self._log.warning("state_ignored", place=place, why=why)
        return Remembered()

    # Writing

    def save(
        self,
        state: State,
        template: DeploymentTemplate,
        service_next_offset: int,
        former_template: DeploymentTemplate | None = None,
    ) -> Outgoing | None:
        """Write the file; returns the record to send, if what it has to say has changed."""
        self._saves += 1
        beside = {
            "template": asdict(template),
            "former_template": asdict(former_template or DeploymentTemplate()),
            "service_next_offset": service_next_offset,
            "save_number": self._saves,
            "saved_at": {"now_ms": self._now_ms(), "unix_ms": self._unix_ms()},
        }
        self._directory.write({"state": state_as_json(state), **beside})
        lasting = lasting_state_as_json(state)
        worth = {name: lasting[name] for name in lasting if name not in _NOT_WORTH_A_RECORD}
        worth |= {"template": beside["template"], "service_next_offset": service_next_offset}
        if worth == self._recorded:
            return None
        self._recorded = worth
        return Outgoing(
            self._partition.topic,
            self._partition.partition,
            encode_state(self._owner, {"state": lasting, **beside}),
            (("event_type", b"ControllerState"),),
            key=self._key,
        )
