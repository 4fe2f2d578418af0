"""Who commits to a table, by the setting and by where the lake is."""

import pytest

from penstock.settings.sections import LakeSettings


@pytest.mark.parametrize(
    ("root", "is_together"),
    [
        ("lake", False),
        ("/data/lake", False),
        ("~/lake", False),
        ("file:///data/lake", False),
        ("s3://bucket/lake", True),
        ("gs://bucket/lake", True),
        ("az://container/lake", True),
    ],
)
def test_consumers_commit_together_where_the_lake_is_an_object_store(
    root: str, is_together: bool
) -> None:
    """That is the default; what is set wins."""
    assert LakeSettings(root=root).commits == "auto"
    assert LakeSettings(root=root).commits_together is is_together
    assert LakeSettings(root=root, commits="together").commits_together
    assert not LakeSettings(root=root, commits="alone").commits_together
