"""An independent look: is every record of Kafka in the lake, exactly once?

Shares no code with the pipeline. It reads Kafka with a plain client, and the lake's log and files
by itself, so that a mistake in the one is not repeated in the other.
"""

from penstock.verification.check import PartitionVerdict, VerificationResult, carried_so_far, verify

__all__ = ["PartitionVerdict", "VerificationResult", "carried_so_far", "verify"]
