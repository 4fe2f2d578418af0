"""Delivers messages between controller and consumers: lost, doubled, late or out of order.

While faults are on, each message may suffer any of these; afterwards it arrives once, soon and in
order. While the broker is away nothing passes: what was sent arrives when it is back. Some messages
pass through the real codec as bytes.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from penstock.laboratory.protocol_simulation.virtual_clock import VirtualClock
from penstock.messages import Message, Refusal, decode, encode


@dataclass(frozen=True, slots=True)
class DeliveryFaults:
    """The probability of each fault of a message, while faults are on."""

    lost: float = 0.0
    doubled: float = 0.0
    delayed: float = 0.0
    delay_ms_max: int = 3_000
    through_codec: float = 0.0


NO_FAULTS = DeliveryFaults()
GROUP = "simulated"
TRAVEL_MS = (2, 20)


class LossyTopic:
    """Carries a message and calls `deliver` when it arrives."""

    def __init__(
        self, clock: VirtualClock, chance: random.Random, delivery_faults: DeliveryFaults
    ) -> None:
        self._clock = clock
        self._chance = chance
        self.delivery_faults = delivery_faults
        self.sent = 0
        self.lost = 0
        self.doubled = 0
        self.delayed = 0
        self._last_arrival: dict[object, int] = {}
        self.away_until_ms = 0
        # Called with the lane of every message that is lost or late.
        self.on_harm: Callable[[object], None] = lambda _: None

    def carry(self, message: Message, lane: object, deliver: Callable[[Message], None]) -> None:
        """`lane` is a sender and a receiver; without faults a lane keeps its order."""
        self.sent += 1
        faults, chance = self.delivery_faults, self._chance
        if faults.through_codec and chance.random() < faults.through_codec:
            message = self._through_codec(message)
        copies = 1
        if faults is not NO_FAULTS:
            if chance.random() < faults.lost:
                self.lost += 1
                self.on_harm(lane)
                return
            if chance.random() < faults.doubled:
                self.doubled += 1
                copies = 2
        for _ in range(copies):
            sent_ms = max(self._clock.now_ms, self.away_until_ms)
            arrival = sent_ms + chance.randint(*TRAVEL_MS)
            if faults is not NO_FAULTS and chance.random() < faults.delayed:
                self.delayed += 1
                self.on_harm(lane)
                arrival += chance.randint(1, faults.delay_ms_max)
            else:
                arrival = max(arrival, self._last_arrival.get(lane, 0))
                self._last_arrival[lane] = arrival
            self._clock.at(arrival, lambda sent=message: deliver(sent))  # type: ignore[misc]  # mypy cannot type a lambda's default

    def _through_codec(self, message: Message) -> Message:
        encoded = encode(message, group=GROUP)
        decoded = decode(
            encoded.value,
            encoded.headers,
            group=GROUP,
            topic_role=message.topic_role,
            mailbox=message.mailbox,
        )
        if isinstance(decoded, Refusal):
            raise TypeError(f"our own message was refused: {decoded}")
        return decoded
