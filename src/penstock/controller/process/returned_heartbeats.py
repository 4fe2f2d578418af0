"""Which heartbeats have come back through both logs that consumers' messages can be in.

Consumers write to the consumer topic; those of a former release write to partition 0 of the
controller topic, beside the claims. A heartbeat is written to both. Only when it came back through
both, everything that was written before it has been read, whichever release wrote it. Who may write
to one of the two topics alone cannot forge one.
"""

from collections import deque

from penstock.messages import ControllerHeartbeat

# A heartbeat that comes back later than this many others says nothing any more.
_REMEMBERED = 64


class ReturnedHeartbeats:
    def __init__(self, controller_epoch: int) -> None:
        self._epoch = controller_epoch
        self._of_consumers: deque[int] = deque(maxlen=_REMEMBERED)
        self._of_controllers: deque[int] = deque(maxlen=_REMEMBERED)

    def is_complete(self, heartbeat: ControllerHeartbeat, *, is_in_controllers_log: bool) -> bool:
        """Whether it is news now: our own after both logs, another controller's from its log."""
        if heartbeat.controller_epoch != self._epoch:
            return is_in_controllers_log
        here, there = self._of_consumers, self._of_controllers
        if is_in_controllers_log:
            here, there = there, here
        number = heartbeat.heartbeat_number
        is_first_here = number not in here
        here.append(number)
        return is_first_here and number in there
