"""One example of every message, and the largest one of every kind that can be said."""

from typing import Any

from kit.controller.commit_messages import COMMIT_EXAMPLES, LARGEST_COMMITS, TOPIC_ID
from penstock.messages import (
    PARTITIONS_PER_MESSAGE_MAX,
    ChangeSettings,
    CommandRefusedEvent,
    ConsumerPhase,
    ConsumerReport,
    ControllerHeartbeat,
    CycleMeasurement,
    DeploymentResources,
    Direction,
    DropChanges,
    FailedPartition,
    LeadershipClaim,
    LeadershipEnd,
    Message,
    OwnedPartition,
    PartitionSpeed,
    PartitionToStart,
    PartitionToStop,
    Pause,
    PreviousShutdown,
    RefusalReason,
    RefusedPartition,
    ReportedPartition,
    Resume,
    ServiceAnswer,
    ServiceOutcome,
    SpeedSource,
    StartConsumingCommand,
    StartConsumingEvent,
    StartedPartition,
    StateQuery,
    StateQueryResponse,
    StopConsumingCommand,
    StopConsumingEvent,
    StoppedPartition,
    StopReason,
    TopicCapacity,
    UpdateDeployments,
    Wait,
    WaitsFor,
    Work,
    WorksOn,
    WriteSpeedMeasurement,
)
from penstock.messages.report import TOPIC_CAPACITIES_MAX

EXAMPLES: tuple[Message, ...] = (
    StartConsumingCommand(
        consumer_id=2,
        incarnation=1_700_000_000_000,
        controller_epoch=7,
        plan_number=3,
        partitions=(
            PartitionToStart(topic="orders", partition=0, epoch="7.1", topic_id=TOPIC_ID),
            PartitionToStart(topic="orders", partition=1, epoch="7.2"),
        ),
    ),
    StopConsumingCommand(
        consumer_id=1,
        incarnation=5,
        controller_epoch=7,
        plan_number=3,
        partitions=(PartitionToStop(topic="orders", partition=0, epoch="6.9"),),
    ),
    StateQuery(consumer_id=1, controller_epoch=7, plan_number=1, query_number=1),
    StartConsumingEvent(
        consumer_id=2,
        sequence=11,
        incarnation=5,
        controller_epoch=7,
        plan_number=3,
        partitions=(StartedPartition(topic="orders", partition=0, epoch="7.1", next_offset=42),),
    ),
    StopConsumingEvent(
        consumer_id=1,
        sequence=11,
        incarnation=5,
        controller_epoch=7,
        plan_number=3,
        partitions=(
            StoppedPartition(
                topic="orders",
                partition=0,
                epoch="6.9",
                next_offset=42,
                reason=StopReason.LEDGER_REFUSED,
                detail="the ledger stands at 50",
            ),
        ),
    ),
    CommandRefusedEvent(
        consumer_id=1,
        sequence=11,
        incarnation=5,
        controller_epoch=7,
        plan_number=3,
        refused_event_type="StartConsumingCommand",
        refused_controller_epoch=6,
        refused_plan_number=12,
        reason=RefusalReason.STALE_CONTROLLER_EPOCH,
        partitions=(RefusedPartition(topic="orders", partition=0, epoch="6.1"),),
    ),
    StateQueryResponse(
        consumer_id=1,
        sequence=11,
        incarnation=5,
        controller_epoch=7,
        plan_number=3,
        query_controller_epoch=7,
        query_number=1,
        owned=(OwnedPartition(topic="orders", partition=1, epoch="7.2", next_offset=0),),
    ),
    ConsumerReport(
        consumer_id=1,
        sequence=11,
        incarnation=5,
        controller_epoch=7,
        plan_number=3,
        report_number=9,
        phase=ConsumerPhase.RUNNING,
        previous_shutdown=PreviousShutdown.UNCONTROLLED,
        capacity_log_bytes_per_s=2.5e7,
        at_least_log_bytes_per_s=2.1e7,
        topic_capacities=(
            TopicCapacity(topic="orders", capacity_log_bytes_per_s=3e7),
            TopicCapacity(topic="payments", at_least_log_bytes_per_s=4e6),
        ),
        behind_records=100,
        behind_log_bytes=100_000,
        deployment_version=2,
        cycle=CycleMeasurement(
            batches=2,
            records=100,
            decoded_bytes=100_000,
            log_bytes=60_000,
            read_ms=200,
            transform_ms=10,
            write_ms=150,
            commit_ms=11,
        ),
        waits_for=Wait(what=WaitsFor.LAKE, since_ms_ago=12_000),
        works_on=Work(what=WorksOn.BATCH, since_ms_ago=300),
        owned=(
            ReportedPartition(
                topic="orders",
                partition=1,
                epoch="7.2",
                next_offset=50,
                end_offset=60,
                read_speed_log_bytes_per_s=1e6,
                records_per_s=1000.0,
            ),
        ),
        failed=(
            FailedPartition(
                topic="clicks", partition=0, reason=StopReason.OFFSET_OUT_OF_RANGE, offset=3
            ),
        ),
    ),
    LeadershipClaim(claimed_by="host-1 process 17"),
    ControllerHeartbeat(controller_epoch=7, heartbeat_number=41),
    LeadershipEnd(controller_epoch=7),
    WriteSpeedMeasurement(
        monitor_incarnation=4,
        sequence=100,
        published_at_unix_ms=1_700_000_000_000,
        age_ms=120,
        window_ms=30_000,
        partitions=(
            PartitionSpeed(
                topic="orders",
                partition=0,
                topic_id=TOPIC_ID,
                write_speed_bytes_per_s=1_000_000.5,
                write_speed_raw_bytes_per_s=1_100_000.0,
                records_per_s=1000.0,
                mean_log_bytes_per_record=1000.0,
                start_offset=0,
                end_offset=4_000,
                source=SpeedSource.LOG_DIRS,
            ),
            PartitionSpeed(topic="orders", partition=1),
        ),
    ),
    UpdateDeployments(
        request_id="update-2024-05-01",
        requested_by="ana",
        image="penstock/consumer:1.4",
        transformations={"orders": "company.transformations:orders"},
        spark_settings={"spark.executor.memory": "2g"},
        environment={"APP_REGION": "eu"},
        resources=DeploymentResources(cpu_millicores=500, memory_megabytes=512),
    ),
    ChangeSettings(request_id="r1", capacity_bytes_per_s=5e6, consumers_min=1, consumers_max=9),
    DropChanges(request_id="r4", options=("packing.capacity",)),
    Pause(
        request_id="r2", direction=Direction.DOWN, until_unix_ms=1_700_000_000_000, reason="sale"
    ),
    Resume(request_id="r3"),
    ServiceAnswer(
        request_id="r1",
        controller_epoch=7,
        outcome=ServiceOutcome.DONE,
        detail="done",
        done=3,
        of=3,
    ),
    *COMMIT_EXAMPLES,
)

_ROW: dict[str, Any] = {"topic": "x" * 249, "partition": 2**31 - 1}
_LONG = 10**15 - 1
_EPOCH: dict[str, Any] = {"epoch": f"{_LONG}.{_LONG}"}
_OFFSET = 2**63 - 1
_QUANTITY = 123456789012345.67
_TEXT = "\U0001f600" * 100
_CONSUMER: dict[str, Any] = {
    "consumer_id": 2**31 - 1,
    "incarnation": _LONG,
    "controller_epoch": _LONG,
    "plan_number": _LONG,
}
_MANY = PARTITIONS_PER_MESSAGE_MAX

LARGEST: tuple[Message, ...] = (
    *LARGEST_COMMITS,
    StartConsumingCommand(
        **_CONSUMER,
        partitions=(PartitionToStart(**_ROW, **_EPOCH, topic_id=TOPIC_ID),) * _MANY,
    ),
    StopConsumingCommand(**_CONSUMER, partitions=(PartitionToStop(**_ROW, **_EPOCH),) * _MANY),
    StartConsumingEvent(
        sequence=11,
        **_CONSUMER,
        partitions=(StartedPartition(**_ROW, **_EPOCH, next_offset=_OFFSET),) * _MANY,
    ),
    StopConsumingEvent(
        sequence=11,
        **_CONSUMER,
        partitions=(
            StoppedPartition(
                **_ROW,
                **_EPOCH,
                next_offset=_OFFSET,
                reason=StopReason.TRANSFORMATION_FAILED,
                detail=_TEXT,
            ),
        )
        * _MANY,
    ),
    CommandRefusedEvent(
        sequence=11,
        **_CONSUMER,
        refused_event_type="StartConsumingCommand",
        refused_controller_epoch=_LONG,
        refused_plan_number=_LONG,
        reason=RefusalReason.STALE_CONTROLLER_EPOCH,
        partitions=(RefusedPartition(**_ROW, **_EPOCH),) * _MANY,
    ),
    StateQueryResponse(
        sequence=11,
        **_CONSUMER,
        query_controller_epoch=_LONG,
        query_number=_LONG,
        part=1_000,
        parts=1_000,
        owned=(OwnedPartition(**_ROW, **_EPOCH, next_offset=_OFFSET),) * _MANY,
    ),
    ConsumerReport(
        sequence=11,
        **_CONSUMER,
        report_number=_LONG,
        phase=ConsumerPhase.STARTING,
        previous_shutdown=PreviousShutdown.UNCONTROLLED,
        capacity_log_bytes_per_s=_QUANTITY,
        at_least_log_bytes_per_s=_QUANTITY,
        topic_capacities=(
            TopicCapacity(
                topic=_ROW["topic"],
                capacity_log_bytes_per_s=_QUANTITY,
                at_least_log_bytes_per_s=_QUANTITY,
            ),
        )
        * TOPIC_CAPACITIES_MAX,
        waits_for=Wait(what=WaitsFor.KAFKA, since_ms_ago=_LONG),
        works_on=Work(what=WorksOn.BATCH, since_ms_ago=_LONG),
        owned=(
            ReportedPartition(
                **_ROW,
                **_EPOCH,
                next_offset=_OFFSET,
                end_offset=_OFFSET,
                read_speed_log_bytes_per_s=_QUANTITY,
                records_per_s=_QUANTITY,
            ),
        )
        * _MANY,
        failed=(
            FailedPartition(
                **_ROW,
                reason=StopReason.TRANSFORMATION_FAILED,
                offset=_OFFSET,
                detail=_TEXT,
            ),
        )
        * 100,
    ),
    WriteSpeedMeasurement(
        monitor_incarnation=_LONG,
        sequence=_LONG,
        published_at_unix_ms=_LONG,
        age_ms=_LONG,
        window_ms=_LONG,
        partitions=(
            PartitionSpeed(
                **_ROW,
                topic_id=TOPIC_ID,
                write_speed_bytes_per_s=_QUANTITY,
                write_speed_raw_bytes_per_s=_QUANTITY,
                records_per_s=_QUANTITY,
                mean_log_bytes_per_record=_QUANTITY,
                start_offset=_OFFSET,
                end_offset=_OFFSET,
                source=SpeedSource.LOG_DIRS,
            ),
        )
        * _MANY,
    ),
)
