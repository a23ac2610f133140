"""What is left over on a disk, what never comes of snapshots, and what clients are told: planted faults are found."""

from __future__ import annotations

from uuid import UUID

import pytest
from fencepost.conformance.checks.file_inventory import Folder, Unaccounted, check_accounted, folder_of
from fencepost.conformance.harness import plan_of
from fencepost.conformance.mutants.patched import Patch
from fencepost.conformance.protocols.compaction.system import RunningCompaction
from fencepost.conformance.protocols.controller.metadata_log import Entry, Prefix, WrongState
from fencepost.conformance.protocols.controller.plan import PLAN as CONTROLLER
from fencepost.conformance.protocols.controller.system import FreeControllers
from fencepost.conformance.protocols.fencing.system import RunningCluster
from fencepost.conformance.protocols.snapshots.plan import PLAN as SNAPSHOTS
from fencepost.conformance.protocols.snapshots.system import FreeQuorum
from fencepost.conformance.protocols.tiering.system import FreeTiering
from fencepost.conformance.protocols.truncation.system import RunningConsumer
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.impl.files.simulated import SimulatedFiles
from fencepost.impl.log import Record
from fencepost.impl.log.config import LogConfig
from fencepost.impl.log.directory import DataDirectory
from fencepost.impl.metadata import changes
from fencepost.impl.metadata.codec import encode
from fencepost.impl.metadata.image import Image
from fencepost.impl.wire.controller import ResourceType
from fencepost.model.core.registry import PROTOCOLS

from .freely import Freely

QUORUM = Freely("snapshots", FreeQuorum, FreeQuorum.implemented)
CLUSTER = Freely("controller", FreeControllers)
BROKERS = {
    "fencing": Freely("fencing", RunningCluster, RunningCluster.implemented),
    "truncation": Freely("truncation", RunningConsumer, RunningConsumer.implemented),
    "compaction": Freely("compaction", RunningCompaction),
    "tiering": Freely("tiering", FreeTiering),
}
"""Those whose disks hold replicas and nothing else."""

_INDEX_STAYS = Patch(
    "log/log.py",
    "            for path in (stem + LOG_SUFFIX, stem + INDEX_SUFFIX):\n                self.removing",
    "            for path in (stem + LOG_SUFFIX,):\n                self.removing",
)
OF_A_QUORUM = {
    "snapshots from before the LBO stay": (
        Patch(
            "quorum/node.py",
            '        """The LBO has risen: there may be snapshots to delete."""\n        self.set_timer(CLEAN, 0)',
            "        pass",
        ),
        "has a snapshot up to",
    ),
    "the index of a segment that is gone stays": (_INDEX_STAYS, "is left over"),
    "a leader's log never begins later": (
        Patch(
            "quorum/leader.py",
            "            if self.may_begin_at(snapshot.end_offset) and",
            "            if self.may_begin_at(snapshot.end_offset + 1) and",
        ),
        "could begin at",
    ),
    "a snapshot waits for more records than it must": (
        Patch("quorum/replica.py", "latest_end > minimum_records", "latest_end > minimum_records + 2"),
        "its snapshots end at",
    ),
    "a single record is not committed": (
        Patch("quorum/leader.py", "if end > replica.high_watermark and", "if end > replica.high_watermark + 1 and"),
        "has committed its log",
    ),
}
OF_A_CLUSTER = {
    "the folder of a topic that is gone stays": (
        Patch(
            "replica/broker.py",
            "                self.directory.delete(*partition)\n",
            "                pass\n",
        ),
        "nobody accounts for it",
    ),
    "the checkpoints keep the lines of a topic that is gone": (
        Patch(
            "log/directory.py",
            "        self._in_doubt.discard(key)\n        for name in _MENDS:\n            self.forget(name, key)\n",
            "        self._in_doubt.discard(key)\n",
        ),
        "which is not there",
    ),
    "clients are told of another leader, and not of another ISR": (
        Patch(
            "kraft/publisher.py",
            "        self._tell(UpdateMetadataRequest(",
            "        if known is None or known[1].leader != state.leader:\n"
            "            self._tell(UpdateMetadataRequest(",
        ),
        "tells clients of",
    ),
    "who asks for an ISR is told another leader epoch": (
        Patch(
            "kraft/alter_partition.py",
            "state.leader, state.leader_epoch, isr",
            "state.leader, state.leader_epoch + 1, isr",
        ),
        "who asks for an ISR is told",
    ),
    "who asks in vain for an ISR is told of nobody in it": (
        Patch(
            "kraft/alter_partition.py",
            "    isr = frozenset(state.isr)\n",
            "    isr = frozenset(state.isr if error is ErrorCode.NONE else ())\n",
        ),
        "who asks for an ISR is told",
    ),
    "a broker that is fenced is offline to nobody": (
        Patch(
            "kraft/publisher.py",
            "for key, partition in image.partitions.items() if not brokers.isdisjoint(partition.replicas)}",
            "for key in image.partitions if not image.brokers}",
        ),
        "tells clients of",
    ),
}

_FOLDER_STAYS = Patch(
    "replica/broker.py", "                self.directory.delete(*partition)\n", "                pass\n"
)
OF_BROKERS = {
    ("fencing", "the index of a segment that is gone stays"): (_INDEX_STAYS, ".index is left over"),
    ("truncation", "the index of a segment that is gone stays"): (_INDEX_STAYS, ".index is left over"),
    ("compaction", "what was replaced stays"): (
        Patch("log/swap.py", "        files.remove(path + DELETED)", "        pass"),
        ".deleted is left over",
    ),
    ("compaction", "the index of what was replaced stays"): (
        Patch(
            "log/swap.py",
            "    replaced = [stem + kind for stem in stems for kind in (LOG_SUFFIX, INDEX_SUFFIX)]",
            "    replaced = [stem + LOG_SUFFIX for stem in stems]",
        ),
        ".index is left over",
    ),
    ("tiering", "the index of a segment that is gone stays"): (_INDEX_STAYS, ".index is left over"),
    ("tiering", "what was known of producers stays"): (
        Patch(
            "log/remote_part.py",
            "            if name.endswith(PRODUCERS_SUFFIX) and path not in kept:",
            "            if path not in kept and not name:",
        ),
        "what is known of producers",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("protocol", "name"), OF_BROKERS)
def test_a_broker_that_leaves_files_behind_is_found(protocol: str, name: str) -> None:
    patch, word = OF_BROKERS[protocol, name]
    found = BROKERS[protocol].first_divergence(
        plan_of(PROTOCOLS[protocol]).free, SimulationPlan(runs=60, seed=3), patch
    )
    assert found is not None
    assert word in found.headline


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", OF_A_QUORUM)
def test_a_quorum_that_leaves_something_undone_is_found(name: str) -> None:
    patch, word = OF_A_QUORUM[name]
    found = QUORUM.first_divergence(SNAPSHOTS.free, SimulationPlan(runs=100, seed=3), patch)
    assert found is not None
    assert word in found.headline


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", OF_A_CLUSTER)
def test_a_cluster_that_leaves_something_undone_is_found(name: str) -> None:
    patch, word = OF_A_CLUSTER[name]
    found = CLUSTER.first_divergence(CONTROLLER.free, SimulationPlan(runs=60, seed=3), patch)
    assert found is not None
    assert word in found.headline


def a_directory() -> tuple[SimulatedFiles, Folder]:
    """One with a log of three segments, of which the first is deleted."""
    files = SimulatedFiles(1)
    log = DataDirectory(files, node_id=0, cluster_id="c", config=LogConfig(segment_bytes=100)).log("t", 0)
    for number in range(3):
        log.append_as_leader([Record(b"%d" % number, timestamp=0)], 0)
    log.delete_before(1)
    return files, folder_of(log)


def test_a_directory_is_held_to_what_its_process_accounts_for() -> None:
    files, folder = a_directory()
    assert folder.bases == (1, 2)
    check_accounted(files, {"t-0": folder})
    with pytest.raises(Unaccounted, match="begins at 3"):
        check_accounted(files, {"t-0": folder._replace(begin=3)})
    with pytest.raises(Unaccounted, match=r"left over: the log has the segments \[2\]"):
        check_accounted(files, {"t-0": folder._replace(bases=(2,))})
    with pytest.raises(Unaccounted, match="the segment at 3 is missing"):
        check_accounted(files, {"t-0": folder._replace(bases=(1, 2, 3))})
    with pytest.raises(Unaccounted, match="b is missing"):
        check_accounted(files, {"t-0": folder._replace(beside=frozenset("b"))})
    with pytest.raises(Unaccounted, match="u-0 is not in the data directory"):
        check_accounted(files, {"t-0": folder, "u-0": folder})
    with pytest.raises(Unaccounted, match="has a line of t-0, which is not there"):
        check_accounted(files, {})
    for name in files.list(""):
        if name.endswith("-checkpoint"):
            files.remove(name)
    with pytest.raises(Unaccounted, match="t-0 lies in the data directory, and nobody accounts for it"):
        check_accounted(files, {})
    files.open("t-0/x.tmp", create=True).close()
    with pytest.raises(Unaccounted, match=r"x\.tmp is left over"):
        check_accounted(files, {"t-0": folder})


def test_configs_of_a_topic_go_with_it_whatever_an_image_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The image is replayed by the code under test: what it says of configs is held to the records themselves."""
    topic = UUID(int=1)
    records = [
        changes.topic(topic, "t"),
        changes.config(ResourceType.TOPIC, "t", "a", "1"),
        changes.config(ResourceType.TOPIC, "t", "b", "2"),
        changes.config(ResourceType.TOPIC, "t", "a", None),
        changes.remove_topic(topic),
    ]
    prefixes = [Prefix(Image(), {}, {}, {})]
    for offset, record in enumerate(records):
        prefixes.append(prefixes[-1].after(offset, Entry(0, encode(record))))
    assert [sorted(each for values in prefix.configs.values() for each in values) for prefix in prefixes] == [
        [],
        [],
        ["a"],
        ["a", "b"],
        ["b"],
        [],
    ]
    kept = dict(prefixes[-2].image.configs)
    replay = Image.replay

    def keeps(image: Image, record: object) -> None:
        replay(image, record)  # type: ignore[arg-type]
        image.configs = dict(kept)

    monkeypatch.setattr(Image, "replay", keeps)
    with pytest.raises(WrongState, match="after record 4"):
        prefixes[-2].after(4, Entry(0, encode(records[-1])))
