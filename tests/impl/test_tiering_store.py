"""The object store: a folder, an S3-compatible server, and one that is slow, fails, tears and lists late."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from fencepost.impl.files import DiskFiles, SimulatedFiles
from fencepost.impl.log import EpochEntry
from fencepost.impl.net import RealClock
from fencepost.impl.tiering import RemoteStorageError, RemoteStore, ThreadJobs
from fencepost.impl.tiering.filesystem import DurableFileSystem
from fencepost.impl.tiering.parts import SegmentFiles, copy
from fencepost.impl.tiering.segments import INDEX, LOG, PARTS, RemoteSegment
from fencepost.impl.wire.errors import ErrorCode

from .rack import PowerLoss
from .s3_server import s3_server
from .tiering_rack import TieredRack, values_of


def use(store: RemoteStore) -> None:
    """Everything that a store does."""
    big = [b"x" * (6 << 20), b"y" * (6 << 20)]
    assert store.put("a/b", [b"12", b"345"])[0] == 5
    assert store.put("big", big)[0] == 12 << 20
    assert store.get("a/b") == b"12345" and store.get("a/b", 1, 3) == b"23" and store.get("a/b", 3, 99) == b"45"
    assert store.get("big", (6 << 20) - 1, (6 << 20) + 1) == b"xy"
    assert (store.size("a/b"), store.size("big"), store.size("none")) == (5, 12 << 20, -1)
    store.delete("a/b")
    store.delete("a/b")
    assert store.size("a/b") == -1
    with pytest.raises(RemoteStorageError, match="reading failed"):
        store.get("a/b")
    assert store.counts.puts == 2 and store.counts.put_bytes == (12 << 20) + 5 and store.counts.failures == 1


def test_a_folder(tmp_path: Path) -> None:
    use(RemoteStore.at(tmp_path / "store"))
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["big"]


def test_a_simulated_disk_keeps_what_was_written_when_it_crashes() -> None:
    files = SimulatedFiles(1)
    store = RemoteStore.in_files(files, "bucket")
    store.put("a/b", [b"123"])
    store.put("a/c", [b"456"])
    store.delete("a/c")
    for seed in range(20):
        copy = RemoteStore.in_files(files.crashed_copy(seed), "bucket")
        assert copy.get("a/b") == b"123" and copy.size("a/c") == -1


def test_what_another_was_removing_as_it_died_is_removed_for_good() -> None:
    """Its name is gone, and not synced: who removes it again finds nothing, and says that it is gone."""
    files = SimulatedFiles(1)
    store, another = (RemoteStore.in_files(files, "bucket") for _ in range(2))
    store.put("a/b", [b"123"])

    def dies(operation: str, _path: str) -> None:
        if operation == "fsync_dir":
            raise PowerLoss(())

    files.hook = dies
    with pytest.raises(PowerLoss):
        another.delete("a/b")
    files.hook = None
    left = [RemoteStore.in_files(files.crashed_copy(seed), "bucket").size("a/b") for seed in range(20)]
    assert set(left) == {-1, 3}, "it may come back"
    store.delete("a/b")
    left = [RemoteStore.in_files(files.crashed_copy(seed), "bucket").size("a/b") for seed in range(20)]
    assert set(left) == {-1}


@pytest.mark.parametrize("url", ["nosuchscheme://x/y", "s4://bucket"])
def test_a_url_that_nothing_is_for(url: str) -> None:
    with pytest.raises(RemoteStorageError, match="give a folder, or install what the URL needs"):
        RemoteStore.at(url)


def test_an_s3_server_as_a_process_and_one_that_has_gone_away() -> None:
    with s3_server() as (url, options):
        use(RemoteStore.at(url, **options))
        store = RemoteStore.at(url, **options)
        rack = TieredRack(2, store=lambda _: store)
        rack.begin()
        rack.write(0, 8)
        rack.run()
        assert rack.log(0).local_start > 4
        assert values_of(rack.consume(0, 0)) == list(range(8))
        assert store.counts.puts == len(PARTS) * len(rack.segments())
    once = {"retries": {"max_attempts": 0}, "connect_timeout": 1}
    gone = RemoteStore.at(url, config_kwargs=once, **options)
    with pytest.raises(RemoteStorageError, match="failed"):
        gone.get("a")
    with pytest.raises(RemoteStorageError, match="failed"):
        gone.put("b", [b"1"])
    assert gone.counts.failures == 2


def test_jobs_in_threads_tell_when_they_are_done() -> None:
    clock = RealClock()
    jobs = ThreadJobs(clock, threads=2)
    job, bad = jobs.submit(lambda: 7), jobs.submit(lambda: [][0])
    while not (job.done() and bad.done()):
        assert job.due() <= clock.now() + 2
    assert job.result() == 7
    with pytest.raises(IndexError):
        bad.result()
    jobs.close()


# -- a store with faults --------------------------------------------------------------------------------------------


class Faulty(DurableFileSystem):
    """Fails, tears what it writes, gives other bytes than were written, and lists what was there long ago."""

    cachable = False

    def __init__(self, files: SimulatedFiles, seed: int, **rates: float) -> None:
        super().__init__(files)
        self.chance = random.Random(seed)
        self.rates = rates
        self.happened: dict[str, int] = {}

    def _happens(self, what: str) -> bool:
        if self.chance.random() >= self.rates.get(what, 0):
            return False
        self.happened[what] = self.happened.get(what, 0) + 1
        return True

    def open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        if self._happens("put"):
            raise TimeoutError("the store does not answer")
        writer = super().open(path, mode, **more)
        if self._happens("tear"):
            whole = writer.write
            writer.write = lambda data: whole(data[: len(data) // 2]) and len(data)
        return writer

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **more: Any) -> bytes:
        if self._happens("get"):
            raise OSError(errno.EIO, "the store fails")
        data = super().cat_file(path, start, end, **more)
        return data[:-1] + bytes([data[-1] ^ 1]) if data and self._happens("flip") else data

    def rm_file(self, path: str) -> None:
        if self._happens("delete"):
            raise ConnectionError("the store is gone")
        super().rm_file(path)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        raise AssertionError("nobody may go by a listing: it may be late")


@pytest.mark.parametrize("fault", ["put", "tear", "get", "flip", "delete"])
def test_a_store_that_fails_delays_and_changes_nothing(fault: str) -> None:
    files = SimulatedFiles(5)
    system = Faulty(files, 3, **{fault: 0.3})
    rack = TieredRack(2, store=lambda _: RemoteStore(system, "bucket"))
    rack.bucket = files
    rack.begin()
    rack.write(0, 20)
    rack.until(lambda: rack.log(0).local_start == rack.log(0).segment_bases[-1] > 15)
    assert values_of(rack.consume(0, 0, 200)) == list(range(20))
    system.rates["delete"] = 0.0 if fault != "delete" else 0.3
    rack.until(lambda: len(rack.objects()) == len(PARTS) * len(rack.segments()))
    if fault == "delete":
        rack.log(0).delete_before(10)
        rack.until(lambda: rack.segments()[0].end_offset >= 10 and len(rack.objects()) == 4 * len(rack.segments()))
    assert system.happened[fault] > 0


@pytest.mark.parametrize("part", [LOG, INDEX])
def test_a_copy_that_the_store_breaks_off_leaves_no_file_open(part: str) -> None:
    """Whoever waits for it keeps what was raised, and all that this refers to."""

    class Breaks:
        def put(self, name: str, chunks: Iterable[bytes]) -> tuple[int, int]:
            size = len(next(iter(chunks)))
            if name.endswith(part):
                raise RemoteStorageError("it is away", name)
            return size, 0

    files = SimulatedFiles()
    for name in ("00.log", "00.index"):
        file = files.open(name, create=True)
        file.append(b"a" * 100)
        file.close()
    segment = RemoteSegment("t", UUID(int=0), 0, UUID(int=1), 0, 1, 0, 0, 0, (EpochEntry(0, 0),), 100)
    store: Any = Breaks()
    with pytest.raises(RemoteStorageError) as kept:
        copy(store, segment, SegmentFiles(files, "00.log", "00.index", segment.epochs, b""))
    assert files.open_files == 0, kept


def test_an_object_that_is_damaged_for_good_is_never_served() -> None:
    rack = TieredRack(1)
    rack.begin()
    rack.write(0, 12)
    rack.run()
    name = "bucket/" + rack.segments()[1].object_name(LOG)
    file = rack.bucket.open(name)
    data = bytearray(file.pread(0, file.size))
    data[-3] ^= 4
    file.truncate(0)
    file.append(bytes(data))
    bad = rack.segments()[1]
    answer = rack.fetch(0, bad.end_offset)
    assert (answer.error, answer.records) == (ErrorCode.REQUEST_TIMED_OUT, b"")
    assert rack.fetch(0, bad.end_offset + 1).error is ErrorCode.NONE


def test_a_segment_that_is_damaged_on_the_leaders_disk_is_not_copied() -> None:
    rack = TieredRack(1, latency=(500, 500))
    rack.begin()
    rack.write(0, 12)
    log = rack.log(0)
    base = next(each.base_offset for each in log.sealed if each.base_offset > 0)
    file = rack.disks[0].open(f"{log.folder}/{base:020d}.log")
    data = bytearray(file.pread(0, file.size))
    data[-3] ^= 4
    file.truncate(0)
    file.append(bytes(data))
    rack.latency = (0, 0)
    rack.run(8_000)
    assert [each.end_offset + 1 for each in rack.segments()] == [base]
    assert log.local_start <= base and rack.managers[0].metrics.copy_errors is not None


def test_objects_on_real_files_are_synced_before_they_have_their_names(tmp_path: Path) -> None:
    store = RemoteStore.in_files(DiskFiles(tmp_path), "b")
    writer = store._fs.open("b/x", "wb")
    writer.write(b"1")
    assert not (tmp_path / "b" / "x").exists()
    writer.close()
    assert (tmp_path / "b" / "x").read_bytes() == b"1"
