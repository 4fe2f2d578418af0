"""The only package that imports a Kafka client, besides what runs inside Spark's workers.

administration      topics: what exists, with which settings and rights; make, grow, delete
offset_lookup       where logs begin and end, partition by partition
partition_reader    reads partitions from offsets, without a group; under the next four
mailbox             a consumer's commands and queries
followed_topics     a few partitions from now on
committed_records   a stretch of a partition, once
measurement_topic   the monitor's measurements, written and read
producer            records to chosen partitions
leading_producer    the controller's transactions: only the newest controller can write
group_offsets       offsets for the tools that show lag
broker_questions    log sizes and offsets of all partitions, for the monitor
log_sizes           log sizes of a few topics
failures            the clients' errors as errors of Penstock
"""
