"""A start that fails by itself, what it leaves open and lying about, and a loss of power amid any event."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.checks.crash_image import NotFound, Nowhere, joined
from fencepost.conformance.checks.file_inventory import Folder, Unaccounted, check_open, folder_of, folders_of
from fencepost.conformance.checks.recovery import Mishap, Plan, plan_of, started
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.protocols.compaction.plan import PLAN as COMPACTION
from fencepost.conformance.protocols.compaction.system import RunningCompaction
from fencepost.conformance.protocols.fencing.plan import PLAN as FENCING
from fencepost.conformance.protocols.fencing.system import RunningCluster
from fencepost.conformance.protocols.snapshots.plan import PLAN as SNAPSHOTS
from fencepost.conformance.protocols.snapshots.system import FreeQuorum
from fencepost.conformance.protocols.tiering.plan import PLAN as TIERING
from fencepost.conformance.protocols.tiering.system import FreeTiering
from fencepost.conformance.protocols.truncation.plan import PLAN as TRUNCATION
from fencepost.conformance.protocols.truncation.system import RunningConsumer
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.impl.files.simulated import SimulatedFiles
from fencepost.impl.log import Record
from fencepost.impl.log.config import LogConfig
from fencepost.impl.log.directory import DataDirectory
from fencepost.impl.log.log import Log
from fencepost.impl.net.clock import SimulatedClock
from fencepost.impl.replica.broker import Broker
from fencepost.impl.wire.messages import TopicPartition

from .freely import Freely

HERE = TopicPartition("t", 0)
SYSTEMS: dict[str, tuple[Freely, Sequence[str]]] = {
    "fencing": (Freely("fencing", RunningCluster, RunningCluster.implemented), FENCING.free),
    "truncation": (Freely("truncation", RunningConsumer, RunningConsumer.implemented), TRUNCATION.free),
    "snapshots": (Freely("snapshots", FreeQuorum, FreeQuorum.implemented), SNAPSHOTS.free),
    "compaction": (Freely("compaction", RunningCompaction), COMPACTION.free),
    "tiering": (Freely("tiering", FreeTiering), TIERING.free),
}
FAULTS = {
    "a swap that is completed leaves the index that it has opened": (
        "compaction",
        Patch("log/swap.py", "for old in (own, *(each for each in names if each != own)):", "for old in names:"),
        ".index.swap is left over",
    ),
    "the epochs are cut before the disk knows where the log starts": (
        "truncation",
        Patch(
            "log/log.py",
            "            self._store.store_log_start(offset)\n            self._log_start = offset\n            kept",
            "            self._epochs.truncate_from_start(offset)\n"
            "            self._store.store_log_start(offset)\n            self._log_start = offset\n            kept",
        ),
        "the leader epoch cache has",
    ),
    "segments go before the disk knows where the log starts": (
        "fencing",
        Patch(
            "log/log.py",
            "            self._store.store_log_start(offset)\n            self._log_start = offset\n"
            "            kept = self._slot(offset)\n            self._drop(self._segments[:kept])\n",
            "            kept = self._slot(offset)\n            self._drop(self._segments[:kept])\n"
            "            self._store.store_log_start(offset)\n            self._log_start = offset\n",
        ),
        "after a loss of power",
    ),
    "a segment that is gone is left open": (
        "tiering",
        Patch("log/log.py", "            segment.close()\n            stem", "            stem"),
        "files are open",
    ),
    "a snapshot that is given up is left open": (
        "snapshots",
        Patch(
            "quorum/snapshots.py",
            "                self._closed_at = self._file.size\n            self._file.close()\n",
            "                self._closed_at = self._file.size\n",
        ),
        "files are open",
    ),
}


SEEDS = {"segments go before the disk knows where the log starts": 1}
"""Of what takes a deletion of whole segments."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", FAULTS)
def test_it_is_found(what: str) -> None:
    protocol, patch, word = FAULTS[what]
    system, portfolio = SYSTEMS[protocol]
    found = system.first_divergence(portfolio, SimulationPlan(runs=150, seed=SEEDS.get(what, 0)), patch)
    assert found is not None and word in found.headline, found


# -- starts by themselves ------------------------------------------------------------------------------------------


def broker_on(root: ModuleType | None, files: SimulatedFiles) -> Broker:
    parts = Parts.of() if root is None else Parts.of(root)
    config = parts.broker_config(log=parts.log_config(segment_bytes=160, index_interval_bytes=1))
    return parts.broker(0, files, Nowhere(), SimulatedClock().at(0), config)


def with_records() -> SimulatedFiles:
    """A disk with a log of a few segments, of which the last record is not synced."""
    files = SimulatedFiles(1)
    config = LogConfig(segment_bytes=160, index_interval_bytes=1)
    directory = DataDirectory(files, node_id=0, cluster_id=_cluster(), config=config)
    log = directory.log(*HERE)
    for number in range(5):
        log.append_as_leader([Record(b"%d" % number, timestamp=0)], number // 2)
    log.flush()
    directory.store_recovery_points()
    log.append_as_leader([Record(b"5", timestamp=0)], 2)
    return files


def _cluster() -> str:
    return Parts.of().broker_config().cluster_id


def looks(root: ModuleType | None, copies: Callable[[int], SimulatedFiles], seeds: range) -> dict[Mishap | None, int]:
    """Start on a copy for each seed; how often each mishap was drawn."""
    met: dict[Mishap | None, int] = {}
    for seed in seeds:
        plan = plan_of(seed)
        broker, files = started(partial(broker_on, root), copies(seed), plan, folders_of)
        met[plan.mishap] = met.get(plan.mishap, 0) + 1
        assert HERE not in broker.partitions or 5 <= broker.state(HERE).end <= 6
        assert files.hook is None
    return met


def test_every_start_comes_to_the_same_whatever_befell_the_one_before() -> None:
    files = with_records()
    met = looks(None, files.crashed_copy, range(300))
    assert set(met) == {None, Mishap.FAILS, Mishap.POWER} and min(met.values()) > 50


def test_a_topic_is_there_or_gone_whenever_power_fails_in_its_deletion() -> None:
    copies = amid_deletion()
    looks(None, lambda seed: copies[seed % len(copies)].crashed_copy(seed), range(300))


_LINES_STAY = Patch("log/directory.py", "        self._forget_gone()\n", "")
_OPEN_AFTER_FAILURE = Patch(
    "log/recovery.py", "        close_all(recovery.result.segments)\n        raise\n", "        raise\n"
)
_TAKEN_FOR_DAMAGE = Patch(
    "log/recovery.py",
    "    try:\n        return recovery.run()\n    except BaseException:\n",
    "    try:\n        return recovery.run()\n    except OSError as error:\n"
    "        raise CorruptLog(str(error), folder, None, REPLACE) from error\n    except BaseException:\n",
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("patch", "word"),
    [
        (_OPEN_AFTER_FAILURE, "a start that failed has left"),
        (_TAKEN_FOR_DAMAGE, "could not be opened: CorruptLog"),
        (_LINES_STAY, "has a line of t-0, which is not there"),
    ],
)
def test_a_start_that_does_otherwise_is_told(patch: Patch, word: str) -> None:
    copies = [with_records(), *amid_deletion()]
    with patched(patch) as root, pytest.raises(NotFound, match=word):
        looks(root, lambda seed: copies[seed % len(copies)].crashed_copy(seed), range(600))


def amid_deletion() -> list[SimulatedFiles]:
    """Disks before each effect of the deletion of a topic, and after it."""
    files = with_records()
    broker = broker_on(None, files)
    broker._store_high_watermarks()
    copies: list[SimulatedFiles] = []

    def hook(operation: str, _path: str) -> None:
        if operation not in ("open", "pread", "list"):
            copies.append(files.crashed_copy(len(copies)))

    files.hook = hook
    broker.delete(HERE)
    files.hook = None
    return [*copies, files.crashed_copy(0)]


def test_a_log_that_cannot_be_begun_leaves_no_file_open() -> None:
    """What comes after recovery may fail as well."""
    files = with_records()
    config = LogConfig(segment_bytes=160, index_interval_bytes=1)
    directory = DataDirectory(files.crashed_copy(1), node_id=0, cluster_id=_cluster(), config=config)
    directory.files.open("t-0/remote-part.begun", create=True).close()

    def hook(operation: str, path: str) -> None:
        if operation == "remove" and path.endswith(".begun"):
            raise OSError(5, "Input/output error", path)

    disk: Any = directory.files
    disk.hook = hook
    with pytest.raises(OSError, match="Input/output"):
        directory.log(*HERE)
    assert disk.open_files == 0


def test_what_is_open_is_counted() -> None:
    files = SimulatedFiles(1)
    log = DataDirectory(files, node_id=0, cluster_id="c").log(*HERE)
    there: Mapping[str, Folder] = {str(HERE): folder_of(log)}
    check_open(files, there)
    forgotten = files.open("t-0/00000000000000000000.log")
    with pytest.raises(Unaccounted, match="3 files are open, and there are 2"):
        check_open(files, there)
    forgotten.close()
    forgotten.close()
    check_open(files, there)
    files.crash(1)
    assert files.open_files == 0
    forgotten.close()
    assert files.open_files == 0


def test_a_log_that_grows_and_is_deleted_from_below_in_one_event_is_both() -> None:
    old, new = [(0, 0, b"a"), (1, 0, b"b")], [(1, 0, b"b"), (2, 0, b"c")]
    assert joined(old, new) == [*old, new[1]]
    assert joined(old, []) == old


def test_a_plan_says_when() -> None:
    files = with_records()
    with pytest.raises(NotFound, match=r"Input/output|could not be opened"):
        started(_refuses, files.crashed_copy(1), Plan(None), lambda _: None)
    node, disk = started(partial(broker_on, None), files.crashed_copy(1), Plan(Mishap.POWER, 0), folders_of)
    assert isinstance(node, Broker) and isinstance(node.partitions[HERE].log, Log) and disk.open_files == 6


def _refuses(_files: SimulatedFiles) -> None:
    raise OSError(5, "Input/output error")
