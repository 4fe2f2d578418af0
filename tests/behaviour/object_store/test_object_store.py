"""Files in an object store: what is put there comes back, whole or in parts; a real S3 server."""

import io
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from kit.lake.faulty_store import FaultyStore, faulty_store
from kit.lake.s3_server import BUCKET, S3Server, s3_for_tests
from penstock.object_store.client import ObjectStore
from penstock.object_store.limits import ObjectStoreError, with_time_limits
from penstock.object_store.streams import PART_BYTES


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_for_tests(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def between(s3: S3Server) -> Iterator[FaultyStore]:
    with faulty_store(s3) as store:
        yield store


@pytest.fixture
def store(between: FaultyStore, tmp_path: Path) -> ObjectStore:
    return ObjectStore(f"s3://{BUCKET}/{tmp_path.name}", between.behind.storage_options)


def _write(store: ObjectStore, path: str, content: bytes = b"content") -> None:
    with store.open_writer(path) as file:
        file.write(content)


def test_objects_are_found_by_their_folders(store: ObjectStore) -> None:
    """With size and tag; names that contain other names are told apart."""
    for path in ("a/b/one", "a/b/two", "a/bb/three", "a/date=2026-01-31/x%3Ay", "four"):
        _write(store, path)
    assert [one.path for one in store.objects_below("a/b")] == ["a/b/one", "a/b/two"]
    folders, files = store.in_folder("a")
    assert (folders, files) == (["b", "bb", "date=2026-01-31"], [])
    assert [one.path for one in store.in_folder("a/date=2026-01-31")[1]] == [
        "a/date=2026-01-31/x%3Ay"
    ]
    content, described = store.read("four")
    assert (content, described.size_bytes) == (b"content", 7)
    assert store.look_at("four") == described
    assert described.e_tag
    assert store.look_at("a") is None
    assert list(store.objects_below("nowhere")) == []
    store.delete(["four", "never-there", "a/b/one"])
    assert store.look_at("four") is None
    with pytest.raises(FileNotFoundError):
        store.read("four")
    with pytest.raises(FileNotFoundError):
        store.open_reader("four")


def test_an_object_is_created_once(store: ObjectStore) -> None:
    """The second one is refused, and the first one stays; its mark is the one that was told."""
    made = store.create("entry", b"first")
    assert made is not None
    with pytest.raises(FileExistsError):
        store.create("entry", b"second")
    content, described = store.read("entry")
    assert content == b"first"
    assert described.e_tag == made.e_tag


def test_parquet_is_read_by_its_parts(store: ObjectStore, between: FaultyStore) -> None:
    """A footer is one request, and a column is not the whole file."""
    noise = [os.urandom(100).hex() for _ in range(20_000)]
    with store.open_writer("rows.parquet") as file:
        pa.parquet.write_table(pa.table({"noise": noise, "n": range(20_000)}), file)
    between.seen.clear()
    with store.open_reader("rows.parquet") as opened:
        assert pa.parquet.read_metadata(opened).num_rows == 20_000
    assert len(between.seen) == 1
    with store.open_reader("rows.parquet") as opened:
        assert pa.parquet.read_table(opened, columns=["n"])["n"].to_pylist()[-1] == 19_999
        opened.seek(-4, io.SEEK_END)
        assert opened.read() == b"PAR1"
        opened.seek(0)
        assert opened.read(4) == b"PAR1"
        assert opened.tell() == 4


def test_a_large_object_is_sent_in_parts(
    store: ObjectStore, between: FaultyStore, s3: S3Server
) -> None:
    """It is whole at its end, and nothing is left of one that is given up."""
    content = os.urandom(PART_BYTES * 2 + 12_345)
    with store.open_writer("large") as file:
        for start in range(0, len(content), 1_000_000):
            file.write(content[start : start + 1_000_000])
        assert store.look_at("large") is None
    assert any(method == "POST" and "uploads" in path for method, path in between.seen)
    assert store.read("large")[0] == content
    file = store.open_writer("given-up")
    file.write(content)
    file.abandon()
    assert file.write(b"more") == 4
    with pytest.raises(ObjectStoreError):
        file.finish()
    assert store.look_at("given-up") is None
    assert any(method == "DELETE" and "given-up" in path for method, path in between.seen)


def test_what_the_store_refuses_is_an_error_of_one_line(
    store: ObjectStore, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what only deltalake knows among the options does no harm."""
    options = {**s3.storage_options, "AWS_S3_ALLOW_UNSAFE_RENAME": "true", "max_retries": "1"}
    assert ObjectStore(f"s3://{BUCKET}", options).look_at("nothing") is None
    with pytest.raises(ObjectStoreError, match="not an object store") as refused:
        ObjectStore("ftp://somewhere", {})
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    other = replace(s3, endpoint=s3.endpoint.replace("127.0.0.1", "localhost"))
    with pytest.raises(ObjectStoreError, match="403") as refused:
        ObjectStore(f"s3://{BUCKET}", other.storage_options).read("anything")
    assert "\n" not in str(refused.value)


def test_options_keep_their_own_time_limits() -> None:
    """Whatever their case; the others are ours."""
    assert with_time_limits({"TIMEOUT": "1s"}) == {
        "TIMEOUT": "1s",
        "connect_timeout": "5s",
        "max_retries": "3",
        "retry_timeout": "30s",
    }
