"""When Spark is started again, and when its loss ends the process."""

from collections.abc import Mapping

from penstock.consumer.core.effects import Fail, LogLevel, StartSpark
from penstock.consumer.core.inputs import PartitionFailure, SparkNotStarted, SparkStarted
from penstock.consumer.core.occupation import begin_wait, end_wait
from penstock.consumer.core.partition_progress import next_retry
from penstock.consumer.core.state import Spark
from penstock.consumer.core.step_draft import StepDraft
from penstock.errors import UnreachableError
from penstock.messages import WaitsFor
from penstock.model import TopicPartition
from penstock.model.changed import changed


def started(draft: StepDraft, _: SparkStarted) -> None:
    draft.spark = changed(draft.spark, is_ready=True)
    batches = draft.batches
    draft.batches = changed(
        batches,
        pace=changed(batches.pace, is_warm=False),
        topic_capacities=batches.topic_capacities.cold(
            draft.now_ms, draft.settings.backlog_batch_time_ms
        ),
    )
    end_wait(draft, WaitsFor.SPARK)
    draft.log(LogLevel.INFO, "spark_ready")


def not_started(draft: StepDraft, given: SparkNotStarted) -> None:
    """A server that does not answer may come back; what else fails at first are the settings."""
    is_away = isinstance(given.error, UnreachableError)
    if draft.batches.ended_ms is None and not is_away:
        draft.do(Fail(given.error))
        return
    failures, wait_ms = next_retry(draft.settings, draft.spark.failures, WaitsFor.SPARK)
    draft.spark = changed(draft.spark, failures=failures)
    draft.log_failure("spark_away", given.error)
    draft.do(StartSpark(after_ms=wait_ms))


def batch_ended(draft: StepDraft, lost: Mapping[TopicPartition, PartitionFailure]) -> None:
    """A batch that lost Spark asks for a new session, or ends the process if there is none."""
    if not lost:
        draft.spark = changed(draft.spark, failures=0)
        return
    failures = draft.spark.failures + 1
    if draft.settings.restarts_spark:
        draft.spark = Spark(is_ready=False, failures=failures)
        begin_wait(draft, WaitsFor.SPARK)
        draft.do(StartSpark())
        return
    draft.spark = changed(draft.spark, failures=failures)
    if failures >= draft.settings.local_spark_failures_max:
        # Its JVM is gone; the next incarnation starts another.
        draft.do(Fail(lost[min(lost)].error))
