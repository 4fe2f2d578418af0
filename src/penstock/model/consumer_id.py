"""A consumer's number, which is also its mailbox: partition n of the controller and query topics.

Partition 0 belongs to the controller, so the lowest consumer is 1.
"""

from typing import NewType

ConsumerId = NewType("ConsumerId", int)

CONSUMER_ID_MIN = 1
# Also the most consumers of a group: each has a number and a mailbox of its own.
CONSUMER_ID_MAX = 100_000
