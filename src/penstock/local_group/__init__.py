"""The whole group on one machine: broker, topics, Spark, monitor, controller, consumers."""

from penstock.local_group.group import LocalGroup

__all__ = ["LocalGroup"]
