"""How the write speed of every partition is measured."""

from typing import Literal

from pydantic import field_validator

from penstock.settings.sections.base import Section, checked_patterns, listed_patterns, option
from penstock.settings.units import Duration


class MonitorSettings(Section):
    """How the write speed of every partition is measured, and which partitions count."""

    period: Duration = option(
        1.0,
        "How often the monitor asks the brokers and publishes a measurement; at most half of "
        "`controller.speeds_stale`.",
        ge=0.1,
        le=30,
    )
    window: Duration = option(
        30.0, "How far back the growth of a partition is remembered; at most 30 s.", ge=1, le=30
    )
    include: list[str] = option(
        [".*"], "Topics to measure: regular expressions, each for a whole topic name."
    )
    exclude: list[str] = option(
        [],
        "Topics to leave out of those included; internal and control topics are always left out.",
    )
    source: Literal["auto", "log_dirs", "offsets"] = option(
        "auto",
        "How speeds are measured: from log sizes, or from offsets times the mean record size; "
        "`auto` uses log sizes unless the cluster refuses them.",
    )
    filter: Literal["step_adapting", "exponential", "window"] = option(
        "step_adapting", "The low-pass filter between the raw and the published speed."
    )
    filter_shortest: Duration = option(
        3.0,
        "`step_adapting`: the shortest time that is averaged, right after a step; it limits how "
        "fast the published speed can change.",
        gt=0,
        le=30,
    )
    filter_tolerance: float = option(
        0.03,
        "`step_adapting`: a change by less than this part of the speed is never a step.",
        ge=0,
        le=1,
    )
    filter_noise: float = option(
        4.0,
        "`step_adapting`: how many times the measured noise a change must exceed to be a step.",
        ge=0,
        le=100,
    )
    filter_time_constant: Duration = option(
        3.0, "`exponential`: after this time, a speed weighs 37 % of a new one.", gt=0, le=30
    )
    layout_refresh: Duration = option(
        5.0,
        "How often topics, partitions and leaders are asked for while nothing hints at a change.",
        ge=0.1,
        le=300,
    )
    unknown_after: Duration = option(
        10.0, "How old a partition's newest sample may be before its speed counts as unknown.", ge=1
    )
    broker_silent_after: Duration = option(
        3.0, "How long a broker may not answer before its silence is logged.", ge=0
    )
    record_sizes_sampled: int = option(
        100,
        "Source `offsets`: in how many partitions per period the size of records is sampled.",
        ge=1,
        le=10_000,
    )

    @field_validator("include", "exclude", mode="before")
    @classmethod
    def _is_list(cls, value: object) -> object:
        return listed_patterns(value)

    @field_validator("include")
    @classmethod
    def _includes_some(cls, value: list[str]) -> list[str]:
        if not value:
            raise ValueError("it is empty, so no topic would count; write ['.*'] for all topics")
        return value

    @field_validator("include", "exclude")
    @classmethod
    def _compile(cls, value: list[str]) -> list[str]:
        return checked_patterns(value)
