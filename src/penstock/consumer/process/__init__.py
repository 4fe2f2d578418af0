"""The shell around a consumer's core: threads, Kafka, Spark, the lake, the disk.

    mailbox thread ---messages-\
    looking thread ---answers---> inbox -> the loop (one thread) -> the core -> effects -> threads
    carrying thread --results--/
    signals ------------------/

The loop never blocks on anything but its inbox, so commands and queries are read while a batch
runs, and nothing sleeps between a command and its effect.
"""

from penstock.consumer.core.shutdown import GraceExceededError
from penstock.consumer.process.loop import ConsumerProcess

__all__ = ["ConsumerProcess", "GraceExceededError"]
