"""Where a corpus may lie: a path, a file: URI, and another file system by URI."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.fs as pafs
import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.corpus import place
from fencepost.traces.corpus.layout import Events
from fencepost.traces.corpus.manifest import MANIFEST, read_corpus
from fencepost.traces.corpus.place import Place

Corpus = Callable[..., Path]


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], str]:
    """A folder as the bucket of another file system."""

    def mount(folder: Path) -> str:
        bucket = pafs.SubTreeFileSystem(str(folder), pafs.LocalFileSystem())

        def from_uri(uri: str) -> tuple[pafs.FileSystem, str]:
            scheme, _, rest = uri.partition("://bucket")
            if scheme != "s3":
                raise ValueError(f"Unrecognized filesystem type in URI: {uri}")
            return bucket, rest.lstrip("/")

        monkeypatch.setattr(place, "_from_uri", from_uri)
        return "s3://bucket"

    return mount


def told(folder: Path | str) -> list[Events]:
    corpus = read_corpus(folder)
    assert corpus.problems == ()
    found = []
    for file in corpus.files:
        with file.open() as opened:
            found += list(opened)
    return found


def test_paths_and_uris_name_the_same_corpus(corpus: Corpus, remote: Callable[[Path], str], events: Events) -> None:
    folder = corpus(3)
    spaced = folder.rename(folder.with_name("a corpus"))
    bucket = remote(spaced)
    for where in (spaced, str(spaced), spaced.as_uri(), f"file:{spaced}", bucket, Path(bucket)):
        assert [part.trace.tolist() for part in told(where)] == [part.trace.tolist() for part in told(spaced)]
    (spaced / MANIFEST).unlink()
    assert sum(map(len, told(bucket))) == len(events)


def test_what_is_wrong_elsewhere_is_named_too(corpus: Corpus, remote: Callable[[Path], str]) -> None:
    folder = corpus(3)
    bucket = remote(folder)
    (folder / "part-00001.parquet").unlink()
    (folder / "part-00002.parquet").write_bytes(b"PAR1")
    assert [str(problem).partition(";")[0] for problem in read_corpus(bucket).problems] == [
        f"{bucket}/part-00001.parquet: the manifest lists it, and it is not there",
        f"{bucket}/part-00002.parquet: it has 4 bytes, and by the manifest "
        + str(read_size(folder, "part-00002.parquet")),
    ]
    (folder / MANIFEST).unlink()
    assert [str(problem).partition(":")[0] for problem in read_corpus(bucket).problems] == ["s3"]
    with pytest.raises(BadInput, match="s3://bucket/none: cannot be read: No such file or directory"):
        read_corpus(f"{bucket}/none")
    with pytest.raises(BadInput, match="gopher://bucket: cannot be read: Unrecognized filesystem type"):
        read_corpus("gopher://bucket")


def read_size(folder: Path, name: str) -> int:
    entries = json.loads((folder / MANIFEST).read_text())["files"]
    return int(next(entry["bytes"] for entry in entries if entry["name"] == name))


def test_a_place_is_a_path_or_a_uri() -> None:
    assert Place.of("/a/b").local and Place.of("a:b").local and Place.of(Path("x")).local
    assert Place.of("file:///a%20b/c") == Place.of("file:/a%20b/c") == Place.of("/a b/c")
    assert str(Place.of("s3:/bucket/a/") / "x") == "s3://bucket/a/x"
    assert str(Place.of("/a\n") / "b") == "'/a\\n/b'"
