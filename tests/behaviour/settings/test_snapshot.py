"""The copy of the settings with which a group's processes are started."""

from pathlib import Path

import pytest

from penstock.errors import SettingsError
from penstock.settings import load_settings
from penstock.settings.snapshot import consumers_digest, snapshot_text, write_snapshot

FILE = """
kafka: {bootstrap_servers: "kafka:9092", sasl_password_file: secret.txt}
packing: {capacity: 1234567.8B/s}
lake: {tables: {orders: {columns: [id, name]}}}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.txt").write_text("hidden-word")
    path = tmp_path / "penstock.yaml"
    path.write_text(FILE)
    return path


def test_the_copy_says_the_same_whatever_happens_to_the_file(file: Path) -> None:
    """Values, origins and the secret's file; and no secret."""
    secret = {"PENSTOCK_KAFKA__SSL_KEY_PASSWORD": "hidden-key"}
    environment = {"PENSTOCK_LAKE__GROUP": "shop", **secret}
    flags = {"packing.target_utilisation": "0.5"}
    loaded = load_settings(file, flags, environment)
    copy = write_snapshot(file.parent / "group", loaded)
    file.write_text("packing: {capacity: 1MB/s}")
    again = load_settings(copy, {}, secret)
    assert again.settings.model_dump(mode="json") == loaded.settings.model_dump(mode="json")
    password = again.settings.kafka.sasl_password
    assert password is not None
    assert password.reveal() == "hidden-word"
    assert again.origin == loaded.origin
    assert again.is_snapshot
    assert again.snapshot_of == file
    assert not loaded.is_snapshot
    assert "hidden" not in copy.read_text()
    assert snapshot_text(again) == copy.read_text()


def test_a_flag_wins_over_the_copy_and_says_so(file: Path) -> None:
    """As over any file."""
    copy = write_snapshot(file.parent, load_settings(file, {}, {}))
    loaded = load_settings(copy, {"packing.capacity": "2MB/s"}, {})
    assert loaded.settings.packing.capacity == 2e6
    assert loaded.origin["packing", "capacity"] == "flag for packing.capacity"


def test_without_a_file_the_copy_stands_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that appears later is not read."""
    monkeypatch.chdir(tmp_path)
    copy = write_snapshot(tmp_path, load_settings(None, {"lake.group": "shop"}, {}))
    (tmp_path / "penstock.yaml").write_text("lake: {group: other}")
    again = load_settings(copy, {}, {})
    assert again.settings.lake.group == "shop"
    assert again.snapshot_of is None


def test_the_digest_is_of_what_concerns_consumers(file: Path) -> None:
    """Another capacity is none of their business; other columns are."""

    def digest(text: str) -> str:
        file.write_text(text)
        return consumers_digest(load_settings(file, {}, {}))

    assert digest(FILE) == digest(FILE.replace("1234567.8", "9"))
    assert digest(FILE) != digest(FILE.replace("name", "price"))
    assert consumers_digest(load_settings(file, {}, {}), is_compared=False) == "not-compared"


@pytest.mark.parametrize("head", ["{", "[]", '{"file": null}', '{"file": 3, "origins": 3}'])
def test_a_damaged_copy_is_an_error(file: Path, head: str) -> None:
    """It is never taken for the file of a person."""
    file.write_text(f"# penstock-snapshot {head}\n{FILE}")
    with pytest.raises(SettingsError, match="snapshot of the settings is damaged"):
        load_settings(file, {}, {})
