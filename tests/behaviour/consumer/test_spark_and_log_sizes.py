"""When Spark is started again or its loss ends the process, and when log sizes are measured."""

import pytest

from kit.consumer.consumer_script import A, B, Script, passes
from penstock.consumer.core import inputs
from penstock.consumer.core.effects import Fail, ReadEnds, ReadLogSizes, StartSpark
from penstock.errors import SettingsError, UnreachableError
from penstock.messages import ConsumerReport, Wait, WaitsFor


def lose_spark(script: Script) -> None:
    script.batch_ends(failures={A: passes("Spark is lost", is_spark_lost=True)})


def not_started(script: Script) -> None:
    script.take(inputs.SparkNotStarted(script.now_ms, UnreachableError("no server")))


def settled(script: Script) -> Script:
    """The lost batch is looked up in the ledger, so that the next one can begin."""
    script.wait(15_000)
    script.ledger(A, "1.1", 10)
    return script


def test_spark_that_refuses_at_first_ends_the_process() -> None:
    """Its settings are wrong, and nobody waits for that."""
    script = Script()
    assert script.did(StartSpark) == [StartSpark()]
    script.take(inputs.SparkNotStarted(script.now_ms, SettingsError("no such option")))
    (fail,) = script.did(Fail)
    assert str(fail.error) == "no such option"


def test_a_server_that_is_away_at_first_is_waited_for() -> None:
    """It may come; meanwhile the reports say what is waited for."""
    script = Script(restarts_spark=True)
    for _ in range(20):
        not_started(script)
        assert not script.did(Fail)
        assert script.logged() == ["spark_away"]
        (again,) = script.did(StartSpark)
        assert again.after_ms <= 1_000
        script.now_ms += again.after_ms
    (report,) = script.wait(2_000)
    assert isinstance(report, ConsumerReport)
    assert report.waits_for == Wait(what=WaitsFor.SPARK, since_ms_ago=script.now_ms)
    script.spark()
    script.owning(A).carrying(A)


def test_a_lost_server_is_started_again_with_short_pauses() -> None:
    """Nothing is read meanwhile; the failures are forgotten once a batch ends without one."""
    script = Script(restarts_spark=True).owning(A).carrying(A)
    lose_spark(script)
    assert script.did(StartSpark) == [StartSpark(after_ms=0)]
    pauses = []
    for _ in range(3):
        not_started(script)
        assert script.logged() == ["spark_away"]
        pauses += [effect.after_ms for effect in script.did(StartSpark)]
    assert pauses == [1_000, 1_000, 1_000]
    settled(script)
    assert not script.did(ReadEnds)
    script.spark()
    assert script.did(ReadEnds)
    script.carrying(A)
    script.batch_ends({A: 15})
    assert script.state.spark.failures == 0


def test_a_lost_jvm_of_our_own_ends_the_process_after_three_batches() -> None:
    """It cannot be started again in this process; the next incarnation has a new one."""
    script = Script().owning(A).carrying(A)
    for _ in range(2):
        lose_spark(script)
        assert not script.did(Fail)
        assert not script.did(StartSpark)
        settled(script).carrying(A)
    lose_spark(script)
    (fail,) = script.did(Fail)
    assert str(fail.error) == "Spark is lost"


def test_the_failures_that_end_the_process_are_a_setting() -> None:
    """With `spark.local_failures_max: 1` the first lost JVM ends it."""
    script = Script(local_spark_failures_max=1).owning(A).carrying(A)
    lose_spark(script)
    assert script.did(Fail)


def test_failures_of_a_jvm_must_come_in_a_row() -> None:
    """A batch in between shows that it works."""
    script = Script().owning(A, B).carrying(A)
    for _ in range(5):
        lose_spark(script)
        assert not script.did(Fail)
        settled(script).carrying(B)
        script.batch_ends({B: script.own.owned[B].next_offset or 0})
        script.carrying(A)


def test_log_sizes_are_read_again_soon_while_one_is_unknown() -> None:
    """An empty log has no size yet; later half a minute is enough."""
    script = Script().owning(A)
    script.sizes({})
    assert sizes_after_ms(script) == 2_000
    script.sizes({A: 12.5, B: 7.0})
    assert script.state.progress[A].log_bytes_per_offset == pytest.approx(12.5)
    assert sizes_after_ms(script) == 30_000


def test_log_sizes_that_kafka_does_not_tell_are_asked_again_later() -> None:
    """Decoded bytes are used instead, and the log says so."""
    script = Script().owning(A)
    script.take(inputs.LogSizesNotRead(script.now_ms, UnreachableError("not allowed")))
    assert script.logged() == ["log_sizes_unknown"]
    assert sizes_after_ms(script) == 30_000


def sizes_after_ms(script: Script) -> int:
    since = script.now_ms
    while not script.did(ReadLogSizes):
        assert script.now_ms - since < 60_000, "sizes are not read again"
        script.wait_until_due()
    return script.now_ms - since
