"""How the controller leads the group: its bounds, its waits, and where it keeps its state."""

from typing import Literal, Self

from pydantic import field_validator, model_validator

from penstock.model.consumer_id import CONSUMER_ID_MAX
from penstock.settings.sections.base import Section, checked_patterns, listed_patterns, option
from penstock.settings.units import Duration

# The most consumers where nothing else bounds them: not set, and not on one machine.
CONSUMERS_MAX_ELSE = 100
HEARTBEATS_BEFORE_TAKEOVER = 7


class ControllerSection(Section):
    """How the controller leads the group: its bounds, its waits, and where it keeps its state."""

    directory: str = option(
        "group",
        "Where the controller keeps its state and the local consumers have their folders.",
    )
    deployment: Literal["local", "kubernetes"] = option(
        "local",
        "What runs the consumers: processes of this machine, or Deployments of a Kubernetes "
        "cluster (see `kubernetes`).",
    )
    allowed_images: list[str] = option(
        [],
        "Images that a request may roll out beside `kubernetes.image`: regular expressions, each "
        "for a whole name.",
    )
    allowed_transformations: list[str] = option(
        [],
        "Transformations, as module:function, that a request may roll out beside those of "
        "`lake.tables`: regular expressions, each for a whole name.",
    )
    consumers_min: int = option(1, "The fewest consumers that are kept.", ge=0, le=CONSUMER_ID_MAX)
    consumers_max: int | None = option(
        None,
        "The most consumers. When they cannot carry the load, the overload is spread evenly. Left "
        "out, it is four for each core of the machine where consumers are local, and else 100.",
        ge=1,
        le=CONSUMER_ID_MAX,
    )
    spare_consumers: int = option(
        1,
        "Consumers kept warm without partitions, so that growth need not wait for a start. Follows "
        "`objective` unless set.",
        ge=0,
    )
    catch_up: Duration = option(
        120.0,
        "The time in which a backlog should be gone; it adds to the load that is planned for, up "
        "to `catch_up_share`. 0s leaves backlogs out. Follows `objective` unless set.",
    )
    catch_up_share: float = option(
        0.5,
        "The most that all backlogs add to the load that is planned for, as a share of what is "
        "written. While nothing is written, a backlog starts no consumer.",
        ge=0,
        le=100,
    )
    behind_tolerated: Duration = option(
        5.0,
        "A group that would be further behind than this with one consumer fewer is not made "
        "smaller. Follows `objective` unless set.",
    )
    growth_settle: Duration = option(
        60.0,
        "How long new consumers have, while the group is behind, before what all of them carry is "
        "compared with what was carried before; at least five heartbeats.",
        gt=0,
    )
    growth_gain_min: float = option(
        0.1,
        "Growth has helped when all consumers together carry at least this share more than before "
        "it; else the group returns to its former size.",
        ge=0,
    )
    growth_retry: Duration = option(
        600.0, "How long a group whose growth did not help does not grow again."
    )
    growth_load_change: float = option(
        0.2,
        "A group whose growth did not help may grow before `growth_retry` when the load has "
        "changed by this share.",
        ge=0,
    )
    creations_per_minute_max: int = option(
        20, "The most consumers created in a minute, whatever the monitor measures.", ge=1
    )
    starts_at_once_max: int = option(
        0,
        "How many local consumers may be starting at the same time; the others wait in order. 0 is "
        "one for each core.",
        ge=0,
    )
    start_counts_for: Duration = option(
        20.0,
        "How long a local start counts among `starts_at_once_max`; one that takes longer waits for "
        "something else than the processor. It is `creation_slack` times what the starts of the "
        "running consumers took in the middle, if that is more, up to `creation_timeout`.",
        gt=0,
    )
    creation_timeout: Duration = option(
        90.0, "How long a new consumer may take to report, if recent starts were quick.", gt=0
    )
    creation_slack: float = option(
        3.0,
        "A new consumer may take this many times as long as the slowest of the recent starts, if "
        "that is more than `creation_timeout`.",
        ge=1,
    )
    trial_timeout: Duration = option(
        600.0,
        "How long the trial of the lake and the transformations may take, before the group starts "
        "and before a roll-out.",
        gt=0,
        le=7200,
    )
    restarts_max: int = option(
        5,
        "How often in a row a consumer may start again without having carried anything or having "
        "been up for `patience`; then it is given up, and another number takes its place.",
        ge=1,
    )
    creation_retry: Duration = option(
        10.0, "How long to wait after a consumer could not be created before creating another."
    )
    number_retry: Duration = option(
        600.0,
        "How long the number of a consumer that could not be created, or did not come up, is not "
        "used again while others are free.",
    )
    consumer_grace: Duration = option(
        40.0,
        "How long a local consumer may take to end before it is killed; must be longer than "
        "`consumer.grace`.",
        gt=0,
    )
    idle_grace: Duration = option(
        30.0, "How long a consumer beyond the spares stays without partitions before it is removed."
    )
    delete_resend: Duration = option(
        5.0, "How often a deletion that is not confirmed is asked for again.", gt=0
    )
    list_period: Duration = option(
        30.0, "How often the deployed consumers are listed and compared with the known ones.", gt=0
    )
    list_retry: Duration = option(
        2.0,
        "How long to wait after the deployed consumers could not be listed before listing again.",
        gt=0,
    )
    plan_interval: Duration = option(
        3.0, "Two plans are at least this far apart, unless a partition has no reader."
    )
    packing_timeout: Duration = option(
        30.0, "How long the packing algorithm may take before the plan is given up.", gt=0
    )
    overtake_after: Duration = option(
        2.0,
        "A plan under way for this long is replaced when another consumer is over capacity.",
    )
    heartbeat_period: Duration = option(
        1.0,
        "How often the controller sends a heartbeat through its own partition; one that comes back "
        "counts as this much time in `silence`, `acknowledge`, `synchronise` and "
        "`creation_timeout`.",
        gt=0,
    )
    takeover_after: Duration = option(
        8.0,
        "A standby controller takes the lead when the leading one's heartbeats stop for this long "
        "while Kafka answers; at least seven heartbeats.",
        gt=0,
    )
    silence: Duration = option(
        8.0,
        "A consumer that sends nothing for this long, counted only while heartbeats return, is "
        "fenced and replaced.",
        gt=0,
    )
    silent_share_max: float = option(
        0.3,
        "When more than this share of the consumers is silent together, what they share is at "
        "fault: they are not given up at once. One silent consumer always is.",
        ge=0,
        le=1,
    )
    give_up_period: Duration = option(
        30.0,
        "While too many consumers are silent together, `give_up_at_once` of them are given up "
        "each time this long has passed.",
        gt=0,
    )
    give_up_at_once: int = option(
        1, "How many of the consumers that are silent together are given up at once.", ge=1
    )
    patience: Duration = option(
        900.0,
        "The longest wait for a consumer that reports what it waits for, or that the deployment "
        "still starts.",
        gt=0,
    )
    command_resend: Duration = option(
        1.0, "How often a query, stop or start that is not answered is sent again.", gt=0
    )
    acknowledge: Duration = option(
        20.0,
        "How long a stop or start may stay unacknowledged, without an explanation from its "
        "consumer, before that consumer is fenced. With one, no plan waits longer for a start "
        "while others carry.",
        gt=0,
    )
    synchronise: Duration = option(
        8.0,
        "How long a restarted controller waits for answers of consumers that say nothing.",
        gt=0,
    )
    failed_partition_retry: Duration = option(
        60.0, "How long a partition that its consumer could not read or write stays stopped."
    )
    speeds_stale: Duration = option(
        10.0, "Measurements older than this do not trigger a repack.", gt=0
    )
    vanish_after_measurements: int = option(
        3, "A partition is gone when this many measurements in a row do not name it.", ge=1
    )

    @field_validator("consumers_max", mode="before")
    @classmethod
    def _somebody_reads(cls, value: object) -> object:
        if str(value).strip() == "0":
            raise ValueError(
                "with 0 consumers nobody would read; set 1 or more, or leave it out: then it is "
                f"four for each core of this machine, and on Kubernetes {CONSUMERS_MAX_ELSE}"
            )
        return value

    @field_validator("allowed_images", "allowed_transformations", mode="before")
    @classmethod
    def _are_lists(cls, value: object) -> object:
        return listed_patterns(value)

    @field_validator("allowed_images", "allowed_transformations")
    @classmethod
    def _are_patterns(cls, value: list[str]) -> list[str]:
        return checked_patterns(value)

    @model_validator(mode="after")
    def _a_lost_heartbeat_is_no_reason_to_take_over(self) -> Self:
        """The next one after a lost heartbeat comes after five periods."""
        if self.takeover_after < HEARTBEATS_BEFORE_TAKEOVER * self.heartbeat_period:
            raise ValueError(
                f"takeover_after {self.takeover_after:g} s is less than "
                f"{HEARTBEATS_BEFORE_TAKEOVER} times heartbeat_period "
                f"{self.heartbeat_period:g} s: a standby would take the lead from a healthy "
                "controller"
            )
        return self

    @model_validator(mode="after")
    def _minimum_is_within_maximum(self) -> Self:
        most = self.consumers_max or CONSUMERS_MAX_ELSE
        if self.consumers_min > most:
            raise ValueError(f"consumers_min {self.consumers_min} is above consumers_max {most}")
        return self
