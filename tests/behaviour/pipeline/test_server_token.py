"""Where the token of a Spark Connect server is kept, and who finds it."""

import stat
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.pipeline.server_token import forget_token, make_token, token_file, token_for
from penstock.settings import Secret
from penstock.settings.sections import SparkSettings

PORT = 15002
HERE = SparkSettings(master=f"sc://127.0.0.1:{PORT}")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache and a temporary folder of the test's own."""
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    return tmp_path / "cache"


def test_clients_of_the_same_user_find_it(cache: Path) -> None:
    """By the port, in a file for this user alone; a token that is set wins; forgotten is gone."""
    made = make_token(PORT)
    file = token_file(PORT)
    assert file.is_relative_to(cache)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = token_for(HERE)
    assert found is not None
    assert found.reveal() == made.reveal() == file.read_text(encoding="utf-8")
    own = Secret("mine")
    assert token_for(HERE.model_copy(update={"token": own})) is own
    assert token_for(SparkSettings(master=f"sc://spark.example:{PORT}")) is None
    assert make_token(PORT).reveal() != made.reveal(), "each start has its own"
    forget_token(PORT)
    assert token_for(HERE) is None


def test_a_cache_that_cannot_be_written_is_no_hindrance(cache: Path) -> None:
    """As in an image: then the token is in a temporary folder, and found there."""
    cache.write_text("a file, so that no folder can be made", encoding="utf-8")
    made = make_token(PORT)
    found = token_for(HERE)
    assert found is not None
    assert found.reveal() == made.reveal()
    assert "temporary" in str(token_file(PORT))


def test_a_folder_that_others_can_read_is_not_used(cache: Path) -> None:
    """Neither to write a token nor to find one: somebody else may have made the folder."""
    make_token(PORT)
    folder = token_file(PORT).parent
    folder.chmod(0o755)
    assert token_for(HERE) is None
    temporary = cache.parent / "temporary"
    temporary.rmdir()
    temporary.write_text("a file, so that no folder can be made", encoding="utf-8")
    with pytest.raises(PenstockError, match="could not be written") as refused:
        make_token(PORT)
    assert str(folder) in refused.value.message
