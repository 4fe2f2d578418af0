"""What one consumer does: batches, commits, dead letters, and the tables it writes.

A table's figures are told by every consumer that writes it: take the largest.
"""

from functools import partial

from penstock.metrics.definition import Process, counter, gauge, histogram

_OF = Process.CONSUMER
_counter = partial(counter, _OF)
_gauge = partial(gauge, _OF)

STAGE_SECONDS = histogram(
    _OF,
    "batch_stage_seconds",
    "Where the time of a batch goes, by `stage`. Spark reads, transforms and writes in one pass, "
    "which is write; read and transform are the time to prepare that pass, and are not observed "
    "where records pass through without a transformation; commit is the Delta commits.",
    "consumer",
    "stage",
)
BATCH_SECONDS = histogram(_OF, "batch_seconds", "How long a whole batch takes.", "consumer")
BATCHES = _counter(
    "batches_total",
    "Batches, by `outcome`: carried (all of it), partly (some partitions failed) or failed.",
    "consumer",
    "outcome",
)
RETRIES = _counter(
    "batch_retries_total",
    "Partitions of batches that failed in a way that passes, and are read again.",
    "consumer",
)
RECORDS = _counter("carried_records_total", "Records that were carried into the lake.", "consumer")
BYTES = _counter(
    "carried_bytes_total", "Keys and values of these records, in bytes, uncompressed.", "consumer"
)
FILES = _counter("written_files_total", "Data files that were committed.", "consumer")
FILE_BYTES = _counter("written_file_bytes_total", "The size of these files.", "consumer")
COMMITS = _counter(
    "commits_total",
    "Batches of the consumer that were committed to the table, by itself or by another one.",
    "consumer",
    "table",
)
CONFLICTS = _counter(
    "commit_conflicts_total",
    "How often another writer was quicker with a version of the table, so that the commit was "
    "checked and tried again. Some are ordinary when several consumers write one table.",
    "consumer",
    "table",
)
COMMIT_ROUND = _gauge(
    "commit_round_seconds",
    "How long all writers of a table need to commit one after another, where that is longest. "
    "Without a backlog batches begin at least twice that apart, up to "
    "`consumer.batch_period_longest`.",
    "consumer",
)
REFUSED = _counter(
    "commits_refused_total",
    "Partitions of batches that the ledger refused: another consumer has carried them.",
    "consumer",
)
DEAD_LETTERS = _counter(
    "dead_letters_total", "Records that were kept in the table of dead letters.", "consumer"
)
FAILED = _counter(
    "partitions_failed_total",
    "How often the consumer had to give up a partition, by `reason`.",
    "consumer",
    "reason",
)
SESSIONS_STARTED = _counter("spark_sessions_started_total", "Spark sessions begun.", "consumer")
SESSIONS_LOST = _counter("spark_sessions_lost_total", "Spark sessions that were lost.", "consumer")
OWNED = _gauge("consumer_owned_partitions", "Partitions that the consumer owns.", "consumer")

TABLE_FILES = _gauge(
    "table_files",
    "Data files of the table, counted when it was last kept up. Absent before, and some minutes "
    "after another consumer has begun to keep the table up.",
    "consumer",
    "table",
)
TABLE_VERSION = _gauge(
    "table_version",
    "The version of the table that this consumer committed last. Absent some minutes after it has "
    "given the table up, and an hour after the commit.",
    "consumer",
    "table",
)
TABLE_LOG_ENTRIES = _gauge(
    "table_log_entries",
    "Versions of the table since its newest checkpoint, as seen at this consumer's last commit: "
    "what a reader has to read. Absent when the version is.",
    "consumer",
    "table",
)
UPKEEPS = _counter(
    "table_upkeeps_total",
    "How often tables were kept up; `outcome` is done, left_alone or failed.",
    "consumer",
    "outcome",
)
UPKEEP_SECONDS = _counter(
    "upkeep_processor_seconds_total",
    "Processor time of the child processes that keep tables up: what compaction costs. Its rate is "
    "a share of a core, about `lake.compact_share` at most.",
    "consumer",
)
FILES_JOINED = _counter(
    "compaction_files_removed_total", "Small files that compaction replaced.", "consumer", "table"
)
BYTES_REWRITTEN = _counter(
    "compaction_rewritten_bytes_total", "Bytes that compaction wrote again.", "consumer", "table"
)
JOINS_REFUSED = _counter(
    "compaction_conflicts_total",
    "Compactions that were given up because another writer changed their files.",
    "consumer",
    "table",
)
FILES_VACUUMED = _counter(
    "vacuumed_files_total",
    "Replaced files that were removed after their time.",
    "consumer",
    "table",
)
ORPHANS_REMOVED = _counter(
    "orphans_removed_total", "Files that no commit names and none will, removed.", "consumer"
)

METRICS = (
    STAGE_SECONDS,
    BATCH_SECONDS,
    BATCHES,
    RETRIES,
    RECORDS,
    BYTES,
    FILES,
    FILE_BYTES,
    COMMITS,
    CONFLICTS,
    COMMIT_ROUND,
    REFUSED,
    DEAD_LETTERS,
    FAILED,
    SESSIONS_STARTED,
    SESSIONS_LOST,
    OWNED,
    TABLE_FILES,
    TABLE_VERSION,
    TABLE_LOG_ENTRIES,
    UPKEEPS,
    UPKEEP_SECONDS,
    FILES_JOINED,
    BYTES_REWRITTEN,
    JOINS_REFUSED,
    FILES_VACUUMED,
    ORPHANS_REMOVED,
)
