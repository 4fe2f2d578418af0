"""One commit for many consumers: a writer of a table hands its batch to another, which commits it.

`core` decides who does it, who waits and for how long, and what goes into one commit. The other
modules bring batches and answers over the topic `<prefix>-commit`. Nothing here is needed for
safety: what is in a table is decided by its log (`pipeline/joint_table.py`), so any number may
commit at once, and each message may be lost, late, or read twice.
"""

from penstock.committer.together import CommitsTogether

__all__ = ["CommitsTogether"]
