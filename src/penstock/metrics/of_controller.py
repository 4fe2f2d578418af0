"""What the controller knows of the group, and what it decides.

A standby tells only that it does not lead.
"""

from functools import partial

from penstock.metrics.definition import (
    STEP_BUCKETS,
    Kind,
    Metric,
    Process,
    counter,
    gauge,
    histogram,
)

_gauge = partial(gauge, Process.CONTROLLER)
_counter = partial(counter, Process.CONTROLLER)

LEADING = _gauge("controller_leading", "1 while this controller leads the group; 0 in a standby.")
STATE = _gauge(
    "controller_state",
    "1 for the state that the controller is in: synchronize, sentinel, reassign, "
    "group_management, superseded.",
    "state",
)
EPOCH = _gauge("controller_epoch", "The epoch of this controller; each new controller has more.")
SILENCE = _gauge("controller_silence_seconds", "How long ago the controller made its last step.")
MEASUREMENT_AGE = _gauge(
    "measurement_age_seconds", "How old the newest whole measurement is. Absent before the first."
)
CONDITION = _gauge(
    "group_condition",
    "1 for what is not well now, as `penstock status` says: blind, unread, stopped, "
    "falling_behind, at_maximum, oversize, held, unsaved.",
    "condition",
)
GROWTH_HELD = _gauge(
    "group_growth_held",
    "1 while the group stays small because its last growth did not carry more.",
)

WANTED = _gauge("consumers_wanted", "Consumers that the group should have now, spares included.")
READY = _gauge("consumers_ready", "Consumers that report and may have partitions.")
STARTING = _gauge(
    "consumers_starting", "Consumers that are deployed or asked for, and do not report yet."
)
ENDING = _gauge(
    "consumers_ending", "Consumers that give up their partitions, or whose end is awaited."
)
MAXIMUM = _gauge("consumers_maximum", "`controller.consumers_max`, or what a request made of it.")
MINIMUM = _gauge("consumers_minimum", "`controller.consumers_min`, or what a request made of it.")

ASSIGNED = _gauge(
    "consumer_assigned_bytes_per_second",
    "The write speed of the partitions that the consumer has.",
    "consumer",
)
CAPACITY = _gauge(
    "consumer_capacity_bytes_per_second",
    "What the consumer can carry of its partitions: as measured, or `packing.capacity`.",
    "consumer",
)
TOPIC_CAPACITY = _gauge(
    "topic_capacity_bytes_per_second",
    "What one consumer carries of the topic alone. `source` says how that is known: set, measured, "
    "together (with other topics), calibrated (before the start) or assumed.",
    "topic",
    "source",
)
TOPIC_CAPACITY_FOUND = _gauge(
    "topic_capacity_found_bytes_per_second",
    "The least and the most that consumers have shown of the topic; `bound` is lowest or highest. "
    "Absent while nothing is measured or calibrated.",
    "topic",
    "bound",
)
UTILISATION = _gauge(
    "consumer_utilisation_ratio", "Assigned speed by capacity; above 1 it falls behind.", "consumer"
)
CONSUMER_PARTITIONS = _gauge("consumer_partitions", "Partitions that the consumer has.", "consumer")
REPORT_AGE = _gauge(
    "consumer_report_age_seconds",
    "How long ago the controller heard from the consumer. Absent before its first message.",
    "consumer",
)
GROUP_WRITE_SPEED = _gauge(
    "group_write_bytes_per_second", "The write speed of all partitions together."
)

_BACKLOG = (
    "Records that are written and not in the lake yet, also of partitions that nobody reads. "
    "Where no offset is known, the whole log counts: the most that can wait"
)
_BACKLOG_BYTES = (
    "The same in bytes of the broker's log. Absent where the size of records is unknown"
)
_BACKLOG_SECONDS = (
    "The same in seconds of writing at the present speed. Absent while records wait and nothing "
    "is written"
)
PARTITION_BACKLOG = _gauge("partition_backlog_records", f"{_BACKLOG}.", "topic", "partition")
PARTITION_BACKLOG_BYTES = _gauge(
    "partition_backlog_bytes", f"{_BACKLOG_BYTES}.", "topic", "partition"
)
PARTITION_BACKLOG_SECONDS = _gauge(
    "partition_backlog_seconds", f"{_BACKLOG_SECONDS}.", "topic", "partition"
)
TOPIC_BACKLOG = _gauge("topic_backlog_records", f"{_BACKLOG}. Of the whole topic.", "topic")
TOPIC_BACKLOG_BYTES = _gauge("topic_backlog_bytes", f"{_BACKLOG_BYTES}.", "topic")
TOPIC_BACKLOG_SECONDS = _gauge("topic_backlog_seconds", f"{_BACKLOG_SECONDS}.", "topic")
GROUP_BACKLOG = _gauge("group_backlog_records", f"{_BACKLOG}. Of all topics.")
GROUP_BACKLOG_BYTES = _gauge("group_backlog_bytes", f"{_BACKLOG_BYTES}.")
GROUP_BACKLOG_SECONDS = _gauge("group_backlog_seconds", f"{_BACKLOG_SECONDS}.")

_FRESHNESS = (
    "How old the newest state of the log is that the lake has whole: all that was in the log this "
    "many seconds ago is in the lake. A partition that is carried to its end stays near 0, also "
    "when nothing is written to it. Measured by the ends of the logs, which the monitor reads, and "
    "the ledger's offsets, which consumers report: it is never better than both periods together, "
    "about two seconds, and record timestamps play no part. A new controller knows it when the "
    "lake has caught up once; until then it is absent, or, once that is longer than the objective, "
    "the time that is certain"
)
PARTITION_FRESHNESS = _gauge("partition_freshness_seconds", f"{_FRESHNESS}.", "topic", "partition")
TOPIC_FRESHNESS = _gauge(
    "topic_freshness_seconds",
    f"The worst of the topic's partitions. {_FRESHNESS}. Absent too while it is unknown of a "
    "partition in which records wait, unless another one is older than the objective.",
    "topic",
)
FRESHNESS_OBJECTIVE = _gauge(
    "freshness_objective_seconds", "`telemetry.freshness_objective`, which alerts compare with."
)

PARTITIONS = _gauge(
    "partitions",
    "Partitions by `state`: owned, starting, stopping, unread (nobody reads it) or stopped (its "
    "consumer had to give it up).",
    "state",
)
PARTITION_STOPPED = _gauge(
    "partition_stopped",
    "1 for a partition that its consumer had to give up, with the `reason`; it is tried again.",
    "topic",
    "partition",
    "reason",
)
STOPPED = _gauge(
    "partitions_stopped", "Partitions that their consumers had to give up.", "topic", "reason"
)
OPEN_MOVES = _gauge(
    "plan_open_moves", "Partitions of the present plan that are not in their place yet."
)
PLAN_NUMBER = _gauge("plan_number", "The number of the newest plan.")

DECISIONS = _counter(
    "decisions_total", "Decisions, by `code`: those of `penstock history`.", "code"
)
PLANS = _counter("plans_total", "Plans that were made, by the `code` of their reason.", "code")
MOVES = _counter("moves_total", "Partitions that plans moved from one consumer to another.")
HANDOVER_SECONDS = histogram(
    Process.CONTROLLER,
    "handover_seconds",
    "How long a partition had no reader when it moved: from the command to stop until its next "
    "consumer has started it.",
)
STARTS = _counter("consumer_starts_total", "Consumers that were asked for.")
ENDS = _counter(
    "consumer_ends_total",
    "Consumers that ended; `how` is removed (no longer needed), fenced (given up), ended (by "
    "itself, with an orderly end) or restarted (a new incarnation of the same one).",
    "how",
)
FENCES = _counter(
    "consumer_fences_total",
    "Consumers that were given up, by `reason`: silent, not_stopping, not_starting, "
    "did_not_come_up, restarts_in_vain, no_answer, shut_down.",
    "reason",
)
EVENTS = _counter(
    "controller_events_total",
    "What the controller met and had no reason to decide on, by `event`, as in the status.",
    "event",
)
STEP_SECONDS = histogram(
    Process.CONTROLLER,
    "controller_step_seconds",
    "How long one step of the controller takes, without its effects.",
    buckets=STEP_BUCKETS,
)

LAG = Metric(
    "kafka_consumergroup_lag",
    Process.CONTROLLER,
    Kind.GAUGE,
    "The backlog of the partition in records, under the name that Kafka exporters use.",
    ("topic", "partition"),
    group_label="consumergroup",
    is_foreign=True,
)
LAG_SECONDS = Metric(
    "kafka_consumergroup_group_lag_seconds",
    Process.CONTROLLER,
    Kind.GAUGE,
    "The backlog of the partition in seconds, under the name that Kafka exporters use.",
    ("topic", "partition"),
    is_foreign=True,
)

METRICS = (
    LEADING,
    STATE,
    EPOCH,
    SILENCE,
    MEASUREMENT_AGE,
    CONDITION,
    GROWTH_HELD,
    WANTED,
    READY,
    STARTING,
    ENDING,
    MAXIMUM,
    MINIMUM,
    ASSIGNED,
    CAPACITY,
    TOPIC_CAPACITY,
    TOPIC_CAPACITY_FOUND,
    UTILISATION,
    CONSUMER_PARTITIONS,
    REPORT_AGE,
    GROUP_WRITE_SPEED,
    PARTITION_BACKLOG,
    PARTITION_BACKLOG_BYTES,
    PARTITION_BACKLOG_SECONDS,
    TOPIC_BACKLOG,
    TOPIC_BACKLOG_BYTES,
    TOPIC_BACKLOG_SECONDS,
    GROUP_BACKLOG,
    GROUP_BACKLOG_BYTES,
    GROUP_BACKLOG_SECONDS,
    PARTITION_FRESHNESS,
    TOPIC_FRESHNESS,
    FRESHNESS_OBJECTIVE,
    PARTITIONS,
    PARTITION_STOPPED,
    STOPPED,
    OPEN_MOVES,
    PLAN_NUMBER,
    DECISIONS,
    PLANS,
    MOVES,
    HANDOVER_SECONDS,
    STARTS,
    ENDS,
    FENCES,
    EVENTS,
    STEP_SECONDS,
    LAG,
    LAG_SECONDS,
)
