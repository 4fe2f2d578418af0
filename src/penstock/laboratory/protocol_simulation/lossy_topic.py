"""Mailboxes between controller and consumers: messages get lost, doubled, late, out of order.

While faults are on, every message has its chance of each; without them it arrives once, soon and in
order. Some messages pass through the real codec, as bytes.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from penstock.laboratory.protocol_simulation.virtual_clock import VirtualClock
from penstock.messages import Message, Refusal, decode, encode


@dataclass(frozen=True, slots=True)
class MessageFaults:
    """The chances of a message, while faults are on."""

    lost: float = 0.0
    doubled: float = 0.0
    delayed: float = 0.0
    delay_ms_max: int = 3_000
    through_codec: float = 0.0


NO_FAULTS = MessageFaults()
TRAVEL_MS = (2, 20)


class LossyTopic:
    """Carries messages and hands them to `deliver`."""

    def __init__(
        self, clock: VirtualClock, chance: random.Random, message_faults: MessageFaults
    ) -> None:
        self._clock = clock
        self._chance = chance
        self.message_faults = message_faults
        self.sent = 0
        self.lost = 0
        self.doubled = 0
        self.delayed = 0
        self._last_arrival: dict[object, int] = {}

    def carry(self, message: Message, lane: object, deliver: Callable[[Message], None]) -> None:
        """`lane` is a sender and a receiver: without faults, its messages keep their order."""
        self.sent += 1
        message_faults, chance = self.message_faults, self._chance
        if message_faults.through_codec and chance.random() < message_faults.through_codec:
            message = self._through_codec(message)
        copies = 1
        if message_faults is not NO_FAULTS:
            if chance.random() < message_faults.lost:
                self.lost += 1
                return
            if chance.random() < message_faults.doubled:
                self.doubled += 1
                copies = 2
        for _ in range(copies):
            arrival = self._clock.now_ms + chance.randint(*TRAVEL_MS)
            if message_faults is not NO_FAULTS and chance.random() < message_faults.delayed:
                self.delayed += 1
                arrival += chance.randint(1, message_faults.delay_ms_max)
            else:
                arrival = max(arrival, self._last_arrival.get(lane, 0))
                self._last_arrival[lane] = arrival
            self._clock.at(arrival, lambda sent=message: deliver(sent))  # type: ignore[misc]  # mypy cannot type a lambda's default

    def _through_codec(self, message: Message) -> Message:
        encoded = encode(message)
        decoded = decode(
            encoded.value,
            encoded.headers,
            topic_role=message.topic_role,
            mailbox=message.mailbox,
        )
        if isinstance(decoded, Refusal):
            raise TypeError(f"our own message was refused: {decoded}")
        return decoded
