"""The controller's own heartbeats, and the heartbeat time that they count."""

from dataclasses import dataclass


@dataclass(frozen=True)
class HeartbeatState:
    """Heartbeat time is the clock by which others are judged.

    It grows by one heartbeat period with every heartbeat that came back, so it stops while the
    controller can read nothing. Heartbeats that come back together count as few: all of them were
    on their way for the same time.
    """

    heartbeat_time_ms: int = 0
    heartbeats_sent: int = 0
    # When the last ones were sent, the newest first.
    last_sent_ms: tuple[int, ...] = ()
    # The newest one that came back, and when heartbeat time passed last.
    returned: int = 0
    passed_ms: int = 0
    # When the newest that came back was sent: what was said until then has been read.
    heard_until_ms: int | None = None

    @property
    def is_awaited(self) -> bool:
        return self.returned < self.heartbeats_sent

    def sent_ms(self, number: int) -> int | None:
        """When that heartbeat was sent; None when that is forgotten."""
        numbers = range(self.heartbeats_sent, 0, -1)
        return dict(zip(numbers, self.last_sent_ms, strict=False)).get(number)
