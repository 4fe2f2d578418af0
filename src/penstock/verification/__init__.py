"""Checks independently that every record of Kafka is in the lake exactly once.

It shares no code with the pipeline: it reads Kafka with a plain client, and the lake's log and
files with its own code, so that a bug in the pipeline is not repeated in the check.
"""

from penstock.verification.check import PartitionVerdict, VerificationResult, carried_so_far, verify

__all__ = ["PartitionVerdict", "VerificationResult", "carried_so_far", "verify"]
