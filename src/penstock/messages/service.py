"""Operators' requests to the controller, and its answers: the service topic.

Anyone who can write to this topic steers the group, so a request can ask only for what is listed
here. Connection options of Kafka or Spark, paths and class names never come from a message: only
the operator's settings file has them. An image or a transformation must be one that it allows.
"""

from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from penstock.messages.fields import (
    AnswerText,
    Count,
    Message,
    Quantity,
    RequestName,
    Sentence,
    TopicName,
    Value,
)
from penstock.model.consumer_id import CONSUMER_ID_MAX

SparkTuning = Literal[
    "spark.driver.memory",
    "spark.executor.memory",
    "spark.executor.cores",
    "spark.executor.instances",
    "spark.cores.max",
    "spark.default.parallelism",
    "spark.sql.shuffle.partitions",
    "spark.sql.files.maxRecordsPerFile",
]
TuningValue = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,10}[kmgKMG]?$")]
# Variables for the user's transformation; none that the loader, Python or Java would read.
EnvironmentName = Annotated[str, StringConstraints(pattern=r"^APP_[A-Z0-9_]{1,60}$")]
ImageName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-zA-Z0-9._/:@-]{0,254}$", max_length=255)
]
TransformationName = Annotated[
    str,
    StringConstraints(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$",
        max_length=200,
    ),
]
# A name of the packing catalogue, with or without its knob: `CHAIN`, `mwf`, `CHAIN@0.3`.
AlgorithmName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9@.-]{1,64}$")]


# The settings that a request may change, by the names they have in the settings file.
ChangeableOption = Literal[
    "packing.capacity",
    "packing.target_utilisation",
    "packing.algorithm",
    "packing.knob",
    "controller.consumers_min",
    "controller.consumers_max",
    "controller.spare_consumers",
    "controller.catch_up",
]
# As a settings file has it: `700kB/s`, `5m`, 3.
OptionValue = Sentence | int | float


class Direction(StrEnum):
    """What a pause holds back."""

    BOTH = "both"
    UP = "up"
    DOWN = "down"


class ServiceOutcome(StrEnum):
    """How far a request has come. Only done, refused and failed are final."""

    ACCEPTED = "accepted"
    IN_PROGRESS = "in_progress"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


class ServiceRequest(Message):
    """A request has an id of its own, so that its answers can be found."""

    topic_role: ClassVar[str] = "service"
    header_fields: ClassVar[tuple[str, ...]] = ("request_id",)

    request_id: RequestName
    requested_by: Sentence = ""


class DeploymentResources(Value):
    cpu_millicores: Annotated[int, Field(ge=50, le=256_000)] | None = None
    memory_megabytes: Annotated[int, Field(ge=128, le=4_194_304)] | None = None


class UpdateDeployments(ServiceRequest):
    """Replace every consumer in turn by one that is deployed differently.

    A request without any change is a roll-out too: it restarts every consumer in turn. With
    `from_settings` the controller first reads its own settings again, file, environment and flags,
    and goes on with them. With `drop_changes` consumers are deployed as the settings have it,
    without what earlier requests of this kind changed.
    """

    from_settings: bool = False
    drop_changes: bool = False
    image: ImageName | None = None
    transformations: Annotated[dict[TopicName, TransformationName], Field(max_length=100)] = Field(
        default_factory=dict
    )
    spark_settings: Annotated[dict[SparkTuning, TuningValue], Field(max_length=20)] = Field(
        default_factory=dict
    )
    environment: Annotated[dict[EnvironmentName, Sentence], Field(max_length=100)] = Field(
        default_factory=dict
    )
    resources: DeploymentResources | None = None


class ChangeSettings(ServiceRequest):
    """Change settings of the running controller. What is absent stays.

    `changes` has the names and the units of the settings file. The other fields are those of
    earlier releases, with their unit in their name.

    The controller checks the values like those of the settings file and refuses what the file could
    not have. A change of `consumers_min`, `consumers_max` or `spare_consumers` is done when the
    group has followed it.
    """

    changes: dict[ChangeableOption, OptionValue] = Field(default_factory=dict)
    capacity_bytes_per_s: Annotated[Quantity, Field(gt=0)] | None = None
    target_utilisation: Annotated[float, Field(gt=0, le=1)] | None = None
    algorithm: AlgorithmName | None = None
    algorithm_knob: Quantity | None = None
    consumers_min: Annotated[int, Field(ge=0, le=CONSUMER_ID_MAX)] | None = None
    consumers_max: Annotated[int, Field(ge=1, le=CONSUMER_ID_MAX)] | None = None
    spare_consumers: Annotated[int, Field(ge=0, le=100)] | None = None
    catch_up_ms: Count | None = None

    @model_validator(mode="after")
    def _minimum_is_below_maximum(self) -> Self:
        low, high = self.consumers_min, self.consumers_max
        if low is not None and high is not None and low > high:
            raise ValueError(f"consumers_min {low} is above consumers_max {high}")
        return self


class DropChanges(ServiceRequest):
    """Take back what requests changed: these settings, or all of them when none is named.

    The settings file, the environment and the flags of the controller count again.
    """

    options: Annotated[tuple[ChangeableOption, ...], Field(max_length=100)] = ()


class Pause(ServiceRequest):
    """Hold plans back: those that grow the group, those that shrink it, or both.

    Repairs go on: a partition without a reader is always started, and a dead consumer's partitions
    always get another one.
    """

    direction: Direction = Direction.BOTH
    until_unix_ms: Count | None = None
    reason: Sentence = ""


class Resume(ServiceRequest):
    """End a pause, or that side of it."""

    direction: Direction = Direction.BOTH


class ServiceAnswer(Message):
    """What became of a request. One that takes time is answered more than once."""

    topic_role: ClassVar[str] = "service"
    header_fields: ClassVar[tuple[str, ...]] = ("request_id", "controller_epoch")

    request_id: RequestName
    controller_epoch: Count
    outcome: ServiceOutcome
    detail: AnswerText = ""
    done: Count | None = None
    of: Count | None = None
