"""What is away for all is asked for again soon, and with its return nothing waits any longer."""

import pytest

from kit.consumer.consumer_script import USUAL, A, B, Script, passes
from penstock.consumer.core import inputs
from penstock.consumer.core.effects import ReadEnds, ReadLedger, ReadLogSizes, StartSpark
from penstock.consumer.core.inputs import LedgerEntry, PartitionFailure
from penstock.consumer.core.partition_progress import next_retry
from penstock.errors import UnreachableError
from penstock.messages import WaitsFor
from penstock.model import Epoch

AWAY = UnreachableError("away")
ONE_A, ONE_B = {A: Epoch(1, 1)}, {B: Epoch(1, 2)}


def ledger_away(script: Script, what: WaitsFor) -> None:
    """The whole read fails."""
    (asked,) = [effect.partitions for effect in script.did(ReadLedger)]
    script.take(inputs.LedgerNotRead(script.now_ms, AWAY, asked, what, what))


def until_asked(script: Script) -> int:
    """How long until the ledger is read again."""
    since_ms = script.now_ms
    while not script.did(ReadLedger):
        assert script.now_ms - since_ms < 60_000, "the ledger is not read again"
        script.wait_until_due()
    return script.now_ms - since_ms


def lost(what: WaitsFor) -> PartitionFailure:
    return PartitionFailure(AWAY, is_spark_lost=what is WaitsFor.SPARK, shared=what)


@pytest.mark.parametrize(
    ("what", "longest_ms"),
    [(WaitsFor.KAFKA, 1_000), (WaitsFor.SPARK, 1_000), (WaitsFor.LAKE, 2_000)],
)
def test_what_is_away_for_all_is_asked_for_again_soon(what: WaitsFor, longest_ms: int) -> None:
    """However long it is away; and those failures do not lengthen a later wait of the partition."""
    failures, waits = 0, []
    for _ in range(30):
        failures, wait_ms = next_retry(USUAL, failures, what)
        waits.append(wait_ms)
    assert waits[0] == 500
    assert max(waits) == waits[-1] == longest_ms
    assert next_retry(USUAL, failures, None)[1] <= 2 * longest_ms


def test_a_failure_of_its_own_waits_longer_each_time() -> None:
    """Nobody else is helped by trying it often; what is away meanwhile does not start it anew."""
    failures, waits = 0, []
    for _ in range(7):
        failures, wait_ms = next_retry(USUAL, failures, None)
        waits.append(wait_ms)
    assert waits == [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]
    failures, wait_ms = next_retry(USUAL, failures, WaitsFor.KAFKA)
    assert wait_ms == 1_000
    assert next_retry(USUAL, failures, None)[1] == 15_000


@pytest.mark.parametrize("what", [WaitsFor.KAFKA, WaitsFor.LAKE])
def test_a_start_goes_on_soon_after_an_outage(what: WaitsFor) -> None:
    """After a minute of failures the ledger is read within two seconds of the return."""
    script = Script()
    script.start((A, "1.1"))
    while script.now_ms < 60_000:
        ledger_away(script, what)
        until_asked(script)
    ledger_away(script, what)
    assert until_asked(script) <= 2_000


def an_outage_ends_for_all_at_once() -> None:
    """The law that a planted bug breaks: what was put off for Kafka is due when Kafka is there."""
    script = Script().owning(A).with_spark()
    script.start((B, "1.2"))
    while script.now_ms < 5_000:
        ledger_away(script, WaitsFor.KAFKA)
        until_asked(script)
    ledger_away(script, WaitsFor.KAFKA)
    assert not script.did(ReadLedger)
    script.now_ms += 10
    script.ends({A: 10})
    assert script.did(ReadLedger) == [ReadLedger(ONE_B)], "the start still waits"


def test_an_outage_ends_for_all_at_once() -> None:
    """The ends of the logs are told: the start that waited for Kafka goes on in the same step."""
    an_outage_ends_for_all_at_once()


def test_a_started_partition_does_not_wait_after_an_outage() -> None:
    """It is settled in the step in which Kafka is there again for another."""
    script = Script().owning(A, B).carrying(A)
    script.batch_ends(failures={A: lost(WaitsFor.KAFKA)})
    for _ in range(5):
        until_asked(script)
        ledger_away(script, WaitsFor.KAFKA)
    script.now_ms += 10
    script.ends({B: 10})
    assert script.did(ReadLedger) == [ReadLedger(ONE_A)]


def test_an_outage_of_something_else_cuts_no_wait_short() -> None:
    """The lake is still away when Kafka answers; and so is what failed by itself."""
    script = Script().owning(A).with_spark()
    script.start((B, "1.2"))
    (asked,) = [effect.partitions for effect in script.did(ReadLedger)]
    script.take(inputs.LedgerNotRead(script.now_ms, AWAY, asked, WaitsFor.LAKE, WaitsFor.LAKE))
    script.take(inputs.EndsNotRead(script.now_ms, AWAY))
    script.now_ms += 400
    script.ends({A: 10})
    assert not script.did(ReadLedger)
    assert script.state.lookups[B].not_before_ms == 500


def test_successes_beside_failures_repeat_nothing_at_once() -> None:
    """One partition has no leader while the others are read: it keeps its pauses."""
    script = Script(idle_wait_ms=100).owning(A).with_spark()
    script.start((B, "1.2"))
    reads = 0
    while script.now_ms < 10_000:
        if script.did(ReadLedger):
            reads += 1
            ledger_away(script, WaitsFor.KAFKA)
        script.ends({A: 10})
        script.wait(100)
    assert reads <= 11


def test_a_batch_lost_with_spark_is_settled_before_spark_is_back() -> None:
    """The ledger does not need Spark: nothing but Spark is waited for, however often it is lost."""
    script = Script(restarts_spark=True).owning(A).carrying(A)
    for _ in range(10):
        script.batch_ends(failures={A: lost(WaitsFor.SPARK)})
        assert until_asked(script) <= 1_000
        script.ledger(A, "1.1", 10)
        script.take(inputs.SparkNotStarted(script.now_ms, AWAY))
        (again,) = script.did(StartSpark)
        script.now_ms += again.after_ms
        script.spark()
        assert script.did(ReadEnds)
        script.carrying(A)


def test_nothing_else_is_asked_before_the_first_look_after_an_outage() -> None:
    """Log sizes that are known can wait: they are asked for by the thread that looks."""
    script = Script().owning(A)
    script.sizes({A: 100.0})
    script.carrying(A)
    script.batch_ends(failures={A: lost(WaitsFor.KAFKA)})
    until_asked(script)
    script.ledger(A, "1.1", 10)
    assert script.did(ReadEnds) == [ReadEnds((A,))]
    assert not script.did(ReadLogSizes)
    script.start((B, "1.2"))
    script.ledger(B, "1.2", 10)
    assert script.did(ReadLogSizes) == [ReadLogSizes((A, B))], "a new one is weighed at once"


def test_failures_of_one_table_wait_longer_each_time_whatever_comes_back() -> None:
    """Poison keeps its growing pauses while others are carried."""
    script = Script(batch_period_ms=0).owning(A, B).carrying(A, B)
    pauses = []
    for number in range(4):
        script.batch_ends({B: 15 + number}, {A: passes("poison")})
        began_ms = script.now_ms
        while not script.did(ReadLedger):
            script.ends({A: 20, B: 15 + number})
            script.wait(100)
        pauses.append(script.now_ms - began_ms)
        script.ledger(A, "1.1", 10)
        script.ends({A: 20, B: 16 + number})
    assert pauses == [500, 1_000, 2_000, 4_000]


def test_the_ledger_says_what_is_away_for_all() -> None:
    """Kafka answers for nobody: soon again; it answers for one: the other waits by itself."""
    script = Script()
    script.start((A, "1.1"), (B, "1.2"))
    both = {**ONE_A, **ONE_B}
    for _ in range(4):
        script.take(
            inputs.LedgerRead(
                script.now_ms, both, {}, {A: AWAY, B: AWAY}, WaitsFor.KAFKA, WaitsFor.KAFKA
            )
        )
        assert until_asked(script) <= 1_000
    script.take(inputs.LedgerRead(script.now_ms, both, {A: LedgerEntry("id", 3, 3)}, {B: AWAY}))
    assert script.state.lookups[B].shared is None
    assert until_asked(script) == 2_000
