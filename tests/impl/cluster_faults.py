"""Defects of brokers and controller that only a crash can show, each of a real kind, as patches of ``impl``.

One that is not here: a high watermark that is stored late, or never. It is a lower bound, and where every election is
clean and every record has an epoch, a replica that starts with a lower one only learns it again. After an unclean one
it may be too high instead: ``test_the_high_watermark_is_cut_with_the_log_and_stored_lower_first`` is for that.
"""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.conformance.mutants.patched import Patch


@dataclass(frozen=True)
class Fault:
    """What is wrong, the patches that make it so, and the number of a story that shows it."""

    why: str
    story: int
    patches: tuple[Patch, ...]


_SEND = """            if log.recovery_point < log.end:
                log.flush()
            fetch ="""
_ADVANCE = """        if log.recovery_point < end:
            log.flush()
        partition.set_high_watermark(end)"""
_STORE_EPOCH = "            self.runtime.directory.store_leader_epoch(*self.key, request.leader_epoch)\n"
_STORE_ALL = "self.directory.store_high_watermarks({each.key: each.high_watermark for each in online})"

FAULTS: dict[str, Fault] = {
    "follower_fetches_before_it_syncs": Fault(
        "its fetch offset acknowledges what a crash may still take from it",
        0,
        (Patch("replica/follower.py", _SEND, "            fetch ="),),
    ),
    "leader_acknowledges_before_it_syncs": Fault(
        "the high watermark counts the leader's own copy before it is synced",
        0,
        (Patch("replica/leader.py", _ADVANCE, "        partition.set_high_watermark(end)"),),
    ),
    "leader_epoch_not_stored": Fault(
        "a restarted broker takes up an old letter of the controller, and leads again in an epoch that is over",
        10,
        (Patch("replica/partition.py", _STORE_EPOCH, "            pass\n"),),
    ),
    "leader_epoch_stored_later": Fault(
        "it is stored with the high watermarks, long after the replica has begun to act in it",
        120,
        (
            Patch("replica/partition.py", _STORE_EPOCH, "            pass\n"),
            Patch(
                "replica/broker.py",
                f"            {_STORE_ALL}\n",
                f"            {_STORE_ALL}\n            for each in online:\n"
                "                if each.leader_epoch >= 0:\n"
                "                    self.directory.store_leader_epoch(*each.key, each.leader_epoch)\n",
            ),
        ),
    ),
    "high_watermark_stored_early": Fault(
        "what is stored is the log's end: a restarted leader serves what was never committed",
        193,
        (Patch("replica/broker.py", _STORE_ALL, _STORE_ALL.replace("each.high_watermark for", "each.log.end for")),),
    ),
    "checkpoint_renamed_before_it_is_synced": Fault(
        "the name survives, and the content does not",
        3,
        (
            Patch("log/checkpoints.py", "        file.fsync()\n", ""),
            Patch(
                "log/checkpoints.py",
                "    files.rename(temporary, path)\n",
                "    files.rename(temporary, path)\n    file = files.open(path)\n    file.fsync()\n    file.close()\n",
            ),
        ),
    ),
    "checkpoint_folder_not_synced": Fault(
        "the old content comes back after others were told of the new one",
        0,
        (Patch("log/checkpoints.py", '    files.fsync_dir(path.rpartition("/")[0])\n', ""),),
    ),
    "restarted_leader_leads_its_epoch_again": Fault(
        "it has lost its high watermark, and what it had not synced",
        70,
        (
            Patch(
                "replica/partition.py",
                "            if request.leader == here:\n                return ErrorCode.FENCED_REPLICA\n",
                "",
            ),
        ),
    ),
    "controller_tells_before_it_stores": Fault(
        "the next controller gives the same leader epoch to another leader",
        13,
        (
            Patch(
                "zk_controller/controller.py",
                "        try:\n            write_store(self._files, CHECKPOINT, new)\n",
                "        self._contents = new\n        for partition, state in changed.items():\n"
                "            self._announce(partition, old.partitions.get(partition), state)\n"
                "        try:\n            write_store(self._files, CHECKPOINT, new)\n",
            ),
        ),
    ),
    "controller_ignores_a_fast_bounce": Fault(
        "a broker that is back before anyone noticed stays in the ISR with what the crash has left it",
        0,
        (Patch("zk_controller/controller.py", "incarnation > known.incarnation", "False"),),
    ),
    "commit_answered_before_it_is_synced": Fault(
        "the coordinator says yes to what a crash takes back",
        0,
        (Patch("offsets/coordinator.py", "            self._log.flush()\n", ""),),
    ),
    "recovery_point_stored_early": Fault(
        "recovery believes what was never synced, or calls it damaged",
        28,
        (
            Patch(
                "log/directory.py",
                "points = {key: log.recovery_point for",
                "points = {key: log.end for",
            ),
        ),
    ),
    "producers_forgotten": Fault(
        "a new leader does not know what its producers have sent, and takes a repeat for new",
        0,
        (Patch("replica/leader.py", "        producers.catch_up(self._log)\n", ""),),
    ),
}
