"""What a cleaner would do later, on a copy: sound ones pass, and what a run is too short for is found."""

from __future__ import annotations

from types import ModuleType

import pytest
from fencepost.conformance.adapters.cluster import PARTITION
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.checks.crash_image import Nowhere
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.protocols.compaction.cleaner_preview import OTHER, Ahead, LateClock, Topic, contents_of
from fencepost.conformance.protocols.compaction.records import HEADER, Sent, made
from fencepost.conformance.protocols.compaction.responses import WrongState
from fencepost.impl.files.simulated import SimulatedFiles
from fencepost.impl.log.batch import encode_batch
from fencepost.impl.log.records import Record
from fencepost.impl.net.clock import SimulatedClock
from fencepost.impl.replica.broker import Broker

CONSTANTS = {"keys": 2, "timestamps": 2, "header_values": 2, "log_size": 8}
STRATEGIES = ("offset", "timestamp", "header")
RETENTION = 300


def look(root: ModuleType | None, seed: int, strategy: str | None = None) -> Broker:
    """One look at a broker with a few records. Raises what it finds."""
    strategy = strategy or STRATEGIES[seed % len(STRATEGIES)]
    parts = Parts.of() if root is None else Parts.of(root)
    configs = {
        "cleanup.policy": "compact",
        "compaction.strategy": strategy,
        "compaction.strategy.header": HEADER,
        "delete.retention.ms": str(RETENTION),
        "min.compaction.lag.ms": "0",
    }
    config = parts.broker_config(
        log=parts.log_config(segment_bytes=260, index_interval_bytes=1),
        compacted={PARTITION.topic: parts.topic_config(configs, {})[1]},
        cleaner=parts.cleaner_config(dedupe_buffer_bytes=1 << 12),
    )
    files, clock = SimulatedFiles(seed), LateClock(SimulatedClock().at(0))
    broker = parts.broker(0, files, Nowhere(), clock, config)
    log = broker.directory.log(*PARTITION)
    for number in range(6):
        sent = Sent(number % 2, int((seed + number) % 5 == 0), number % 2, number % 3, 0)
        log.append_as_leader([made(sent, CONSTANTS, 100 + number)], 0)
    log.flush()
    Ahead(broker, files, clock, Topic(strategy, RETENTION, 0, all_mapped=True), CONSTANTS, log.end, seed).check()
    return broker


def look_often(root: ModuleType) -> None:
    for seed in range(1500):
        look(root, seed)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_sound_cleaner_passes_and_is_asked_everything(strategy: str) -> None:
    met: set[str] = set()
    for seed in range(250):
        broker = look(None, seed, strategy)
        met |= {"other"} if broker.directory.files.exists(str(OTHER)) else set()
        if "other" in met and broker.directory.cleaned(*OTHER):
            found = contents_of(broker.directory.files, OTHER)
            met |= {"clean"} | ({"old"} if any(row.epoch < 0 for row in found.rows.values()) else set())
            met |= {"undecided"} if len(found.committed) + len(found.aborted) < len(found.rows) else set()
            met |= {"horizon"} if any(row.horizon is not None for row in found.rows.values()) else set()
    assert met == {"other", "clean", "old", "undecided", "horizon"}


FAULTS = {
    "the map of a pass that failed is used for the next log": (
        Patch(
            "compaction/cleaner.py",
            "        elif self._map.size:\n            self._map.clear()\n",
            "",
        ),
        Patch(
            "compaction/cleaner.py",
            "        counts.written_bytes = after\n",
            "        counts.written_bytes = after\n        self._map.clear()\n",
        ),
    ),
    "what a tombstone beats is not looked for in the active segment": (
        Patch(
            "compaction/cleaner.py",
            "batches(log.segments, mapped, log.end)",
            "batches(log.segments[:-1], mapped, log.end)",
        ),
    ),
    "an aborted transaction is forgotten by its beginning": (
        Patch("compaction/facts.py", "if each.marker >= cleaned]", "if each.first >= cleaned]"),
    ),
    "a disk that fails is taken for damage": (
        Patch(
            "compaction/manager.py",
            "        except CorruptLog as error:\n            self.uncleanable[what.key]",
            "        except (CorruptLog, OSError) as error:\n            self.uncleanable[what.key]",
        ),
    ),
    "an undecided transaction is cleaned": (
        Patch("compaction/facts.py", "min((high_watermark, *undecided, *self._open.values()))", "high_watermark"),
    ),
    "a marker goes before the records of its transaction": (
        Patch(
            "compaction/retention.py", "        if batch.producer_id in self._with_records:\n", "        if False:\n"
        ),
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", FAULTS)
def test_it_is_found(what: str) -> None:
    with patched(*FAULTS[what]) as root, pytest.raises(WrongState, match=r"is cleaned|the disk failed"):
        look_often(root)


def test_what_is_aborted_or_undecided_is_told_from_what_is_committed() -> None:
    files = SimulatedFiles(1)
    parts = Parts.of()
    log = parts.broker(0, files, Nowhere(), SimulatedClock().at(0)).directory.log(*PARTITION)
    markers = {"abort": b"\0\0\0\0", "commit": b"\0\0\0\1"}

    def append(producer: int, marker: str | None = None) -> None:
        record = Record(b"\0\0\0\0\0\0", markers[marker]) if marker else Record(b"v", b"k%d" % producer)
        control = marker is not None
        log.append_as_follower(
            encode_batch(
                [record],
                base_offset=log.end,
                leader_epoch=0,
                producer_id=producer,
                producer_epoch=0,
                base_sequence=-1 if control else log.end,
                control=control,
                transactional=True,
            )
        )

    for producer, marker in ((1, None), (2, None), (1, "abort"), (1, None), (2, "commit"), (3, None), (1, "commit")):
        append(producer, marker)
    found = contents_of(files, PARTITION)
    assert sorted(found.rows) == [0, 1, 3, 5]
    assert [row.offset for row in found.committed] == [1, 3] and found.aborted == (0,)
