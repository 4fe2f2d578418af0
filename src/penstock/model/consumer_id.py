"""A consumer's number, which is also its mailbox: partition n of the controller and query topics.

Partition 0 belongs to the controller, so the lowest consumer is 1.
"""

from typing import NewType

ConsumerId = NewType("ConsumerId", int)

CONSUMER_ID_MIN = 1
