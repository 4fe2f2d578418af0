"""The consumer's only door to the outside world: threads, Kafka, Spark, the lake, the disk.

    mailbox thread ---letters--\
    looking thread ---answers---> inbox -> the loop (one thread, owns all state) -> asks the threads
    carrying thread --results--/                 |
    signals ------------------/                  +-> says messages to the controller

The loop never blocks on anything but its inbox, so a command or a query is heard while a batch
runs, and nothing sleeps between a command and its effect.
"""

from penstock.consumer.process.loop import ConsumerProcess, GraceExceededError

__all__ = ["ConsumerProcess", "GraceExceededError"]
