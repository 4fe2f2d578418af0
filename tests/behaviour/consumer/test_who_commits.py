"""Whether a consumer hands its batches over, by its settings."""

import pytest

from penstock.consumer.process.external_systems import ExternalSystems
from penstock.pipeline import Writer
from penstock.settings import Settings, changed_settings


@pytest.mark.parametrize(
    ("root", "commits", "is_together"),
    [
        ("lake", "auto", False),
        ("s3://bucket/lake", "auto", True),
        ("s3://bucket/lake", "alone", False),
        ("lake", "together", True),
    ],
)
def test_a_consumer_hands_batches_over_where_consumers_commit_together(
    root: str, commits: str, is_together: bool
) -> None:
    """Nothing is opened for it before a table has many writers."""
    changes = {"lake.root": root, "lake.commits": commits}
    settings = changed_settings(Settings(), {**changes, "kafka.bootstrap_servers": "127.0.0.1:1"})
    systems = ExternalSystems(settings, Writer(1, 1), lambda _: None)
    assert (systems._together is not None) is is_together
    assert systems._pipeline._hand_over is systems._together
    systems.end_commits_for_others()
