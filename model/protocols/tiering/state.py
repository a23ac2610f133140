"""The state and the rules of ``tiering``: one partition's replicas, and the segments that its leaders have uploaded.

**A replica's log** is what it says of the offsets from its log start to its LEO: the leader epoch of the record at each
(its leader epoch checkpoint). From the local log start on it has the records; below that they are in remote storage, as
far as it knows. A record is told by its offset and its leader epoch: only the leader of an epoch writes in it, each
offset once. An empty replica's LEO is 0.

**The remote log** has segments, each told by the leader epoch in which it was uploaded and its first offset. Segments
of one leader epoch come from one log, so that what they say of offsets is kept once for each leader epoch
(``remote_epoch``): the records in them, and the leader epoch checkpoint that is uploaded along with them (KIP-405),
which reaches down to the uploader's log start. There is one step for each of the three parts of an upload; a leader
that crashes, or is deposed, is one that takes no further step.

**What is taken for granted.** How replicas agree on who leads, and on records, is ``fencing``: here the controller's
leader takes office at once, others hear of it late, and a follower in its leader's epoch has cut off what differs. A
leader's ISR is the controller's, and a leader counts on its followers' logs as they are.

``replication.py`` has roles and records, ``remote_log.py`` the remote log manager of a leader, ``bootstrap.py`` what a
follower does whose fetch offset is not on its leader, ``impl_invariants.py`` what is promised.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from ...core.algebra import Algebra, Value, View
from ...core.domains import OPTIONAL_REPLICA, REPLICA, REPLICA_SET, Constants, all_replicas, integers
from ...core.enumeration import enumeration
from ...core.protocol import ConstantSpec, Protocol
from ..logs import EPOCH, OFFSET

NOT_LOOKED: Final = -2
"""What a leader knows of the highest offset in remote storage before its remote log manager has run."""

Segment = enumeration("segment", "none", "copy_started", "copied", "copy_finished")
"""How far the upload of a segment is. Of a segment that is deleted there is none."""

tiering = Protocol(
    "tiering",
    "KIP-1023",
    constants=(
        ConstantSpec("replicas", 2, 1, "the number of replicas"),
        ConstantSpec("log_size", 2, 1, "the number of offsets in each log"),
        ConstantSpec("max_leader_epoch", 1, 0, "the largest leader epoch"),
        ConstantSpec("last_tiered_offset", 1, 0, "follower.fetch.last.tiered.offset.enable"),
        ConstantSpec("unclean", 1, 0, "unclean.leader.election.enable"),
        ConstantSpec("transactions", 1, 0, "1 where the last stable offset may be below the high watermark"),
        ConstantSpec("switches", 1, 0, "1 where tiering is switched off and on for the topic"),
        ConstantSpec("expires", 1, 0, "1 where retention, or whoever deletes records, moves the log start"),
    ),
)


class Upload(Enum):
    """Up to where a leader uploads."""

    STABLE = "its last stable offset"
    COMMITTED = "its high watermark"
    WRITTEN = "its LEO"


class LogStart(Enum):
    """Where the log of a new leader begins when its remote log manager has run."""

    ITS_OWN = "where it did: the text has the leader learn of the highest offset alone"
    FIRST = "at the first offset of its lineage in remote storage, or locally where there is none there (shipped Kafka)"
    CONTIGUOUS = "at the first offset from which on remote storage has all of its lineage up to the highest offset"


@dataclass(frozen=True)
class Rules:
    """In what a variant differs; the defaults are those of the safe one.

    Of the follower. ``waits_for_leader``: an EPUO that is unknown is taken for the local log start only where that is
    the log start. ``heeds_log_start``: an EPUO below the log start is not begun at. ``builds_to_target``: epochs are
    built up to the offset that the follower begins at, and not only to the leader's local log start.
    ``heeds_flag``: it is done only where the flag is set. ``only_empty``: a follower that has data does not do it.
    ``drops_uncompared``: what lies below its new leader's log start, and cannot be compared, is below its own.
    ``epochs_first``: the epochs are stored before the offsets, so that no crash comes between.
    ``from_checkpoint``: the log start is no lower than where the epochs begin that were found.

    Of the leader. ``uploads``: up to where. ``by_lineage``: a segment counts where its epochs are those of the log.
    ``log_start``: where its log begins when it has looked in remote storage.
    ``after_commit``: what is deleted locally is in segments whose metadata is committed. ``looks_anew``: who is
    elected does not go by what it knew of the remote log before. ``fences_deletion``: no segment is deleted by
    who is deposed. ``whole_isr``: tiering is switched off only where all of the ISR have what the leader has locally,
    and nobody else joins it then. ``isr_hears_start``: where it is switched off, the log of all of the ISR begins where
    the leader's does from then on, and so does that of who joins it while it is off.

    Of what brokers do otherwise. ``looks_once``: a leader looks in remote storage once in its epoch, and not again and
    again. ``highest_stands``: the highest offset stands for all below it, which are not looked for one by one.
    ``forgets_remote``: where a log is cut below its local log start, nothing is left of it, remote or not.
    ``keeps_older``: a segment of leader epochs before all of the log's is not deleted for that.
    """

    waits_for_leader: bool = True
    heeds_log_start: bool = True
    builds_to_target: bool = True
    heeds_flag: bool = True
    only_empty: bool = True
    drops_uncompared: bool = True
    epochs_first: bool = True
    from_checkpoint: bool = True
    uploads: Upload = Upload.STABLE
    by_lineage: bool = True
    after_commit: bool = True
    log_start: LogStart = LogStart.CONTIGUOUS
    looks_anew: bool = True
    fences_deletion: bool = True
    whole_isr: bool = True
    isr_hears_start: bool = True
    looks_once: bool = True
    highest_stands: bool = True
    forgets_remote: bool = True
    keeps_older: bool = True


AS_WRITTEN = Rules(
    drops_uncompared=False,
    from_checkpoint=False,
    log_start=LogStart.ITS_OWN,
    fences_deletion=False,
    whole_isr=False,
    isr_hears_start=False,
)
"""The text's own rules, where it has one, and none where it says nothing."""

tiering.variant("kip-1023", AS_WRITTEN, "the KIP's text as it is written, with KIP-405's where it says nothing")
tiering.variant("jump-unknown", Rules(waits_for_leader=False), "a follower goes by an EPUO that is unknown")
tiering.variant("below-log-start", Rules(heeds_log_start=False), "a follower begins at an EPUO below the log start")
tiering.variant(
    "epochs-to-local-start",
    Rules(builds_to_target=False),
    "the epochs are built until ELO, as the example's step 6 says",
)
tiering.variant("flag-ignored", Rules(heeds_flag=False), "a follower begins at the EPUO with the flag off")
tiering.variant("jump-with-data", Rules(only_empty=False), "a follower that has data begins at the EPUO")
tiering.variant("offsets-first", Rules(epochs_first=False), "a crash comes between a follower's offsets and its epochs")
tiering.variant(
    "short-checkpoint", Rules(from_checkpoint=False), "a checkpoint that begins late is enough: hole 2 alone"
)
tiering.variant(
    "keeps-uncompared", Rules(drops_uncompared=False), "a follower keeps what it could not compare: hole 1 alone"
)
tiering.variant("upload-past-stable", Rules(uploads=Upload.COMMITTED), "records of open transactions are uploaded")
tiering.variant("upload-past-hw", Rules(uploads=Upload.WRITTEN), "records above the high watermark are uploaded")
tiering.variant("deposed-segment", Rules(by_lineage=False), "a segment of another lineage is taken for the log's own")
tiering.variant("deletes-uncommitted", Rules(after_commit=False), "local deletion does not wait for the metadata")
tiering.variant("keeps-highest", Rules(looks_anew=False), "a leader goes by the highest offset of an earlier office")
tiering.variant(
    "highest-alone", Rules(log_start=LogStart.ITS_OWN), "a new leader learns of the highest offset alone: hole 3 alone"
)
tiering.variant(
    "first-on-remote", Rules(log_start=LogStart.FIRST), "a new leader's log begins where remote storage does"
)
tiering.variant("deposed-deletes", Rules(fences_deletion=False), "a deposed leader deletes segments: hole 4 alone")
tiering.variant("disabled-under-isr", Rules(whole_isr=False), "tiering is switched off under an ISR: hole 5 alone")
tiering.variant(
    "disabled-at-leader", Rules(isr_hears_start=False), "tiering is switched off at the leader alone: hole 6 alone"
)
tiering.variant(
    "up-to-gap",
    Rules(log_start=LogStart.ITS_OWN, looks_once=False, highest_stands=False, forgets_remote=False, keeps_older=False),
    "a leader deletes locally up to the first gap on remote, and looks again and again: brokers' mend of hole 3",
)
tiering.variant("kip-1023-safe", Rules(), "the KIP less its holes")

_EPOCHS = integers(-1, lambda c: c["max_leader_epoch"])
_ENDS = integers(0, lambda c: c["log_size"])
_SWITCH = integers(0, lambda _: 1)


def _stable_at_first(constants: Constants) -> int:
    return 0 if constants["transactions"] == 1 else constants["log_size"]


def in_lineage(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The replica says something of the record at this offset."""
    return k.all(s.log_start[replica] <= offset, offset < s.leo[replica])


def leads(_k: Algebra, s: View, replica: Value) -> Value:
    """The replica presumes that it leads: it was elected in the epoch that it is in."""
    # No replica leads epoch -1: a read out of range gives NONE.
    return s.epoch_leader[s.leader_epoch[replica]] == replica


def leads_newest(k: Algebra, s: View, replica: Value) -> Value:
    """The replica is the controller's leader."""
    return k.all(leads(k, s, replica), s.leader_epoch[replica] == s.newest_epoch)


def follows(k: Algebra, s: View, leader: Value, follower: Value) -> Value:
    """Both are in one epoch, which the one leads."""
    same = s.leader_epoch[leader] == s.leader_epoch[follower]
    return k.all(leader != follower, leads(k, s, leader), same)


def _knows_remote(k: Algebra, s: View, replica: Value) -> Value:
    return leads(k, s, replica) if k.rules.looks_anew else s.leader_epoch[replica] != -1


def _has_no_data(_k: Algebra, s: View, replica: Value) -> Value:
    return s.local_start[replica] == s.leo[replica]


def _is_segment(_k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    return s.segment_state[epoch, offset] != Segment.none


def _is_in_checkpoint(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    def reaches(start: Value) -> Value:
        state = s.segment_state[epoch, start]
        stored = k.any(state == Segment.copied, state == Segment.copy_finished)
        return k.all(stored, offset < s.segment_end[epoch, start])

    return k.exists(OFFSET, reaches)


# The partition, as the controller has it.
tiering.variable("newest_epoch", "the newest leader epoch", _EPOCHS, initially=-1)
tiering.variable("epoch_leader", "who leads an epoch", OPTIONAL_REPLICA, per=(EPOCH,), initially=-1)
tiering.variable("isr", "the ISR", REPLICA_SET, initially=all_replicas)
tiering.variable("tiered", "1 where the topic has remote.storage.enable", _SWITCH, initially=1)
tiering.variable("stable", "the end below which no transaction is open", _ENDS, initially=_stable_at_first)

# Replicas.
tiering.variable("leader_epoch", "the leader epoch that a replica is in", _EPOCHS, per=(REPLICA,), initially=-1)
tiering.variable("log_start", "log start offset", _ENDS, per=(REPLICA,))
tiering.variable("local_start", "local log start offset", _ENDS, per=(REPLICA,))
tiering.variable("leo", "log end offset, exclusive", _ENDS, per=(REPLICA,))
tiering.variable("hw", "the high watermark that a replica knows, exclusive", _ENDS, per=(REPLICA,))
tiering.variable(
    "record_epoch",
    "the leader epoch of the record at an offset, by a replica's leader epoch checkpoint; -1: it lacks it",
    _EPOCHS,
    per=(REPLICA, OFFSET),
    initially=-1,
    live=in_lineage,
    unset=True,
)
tiering.variable(
    "highest_remote",
    "the highest offset in remote storage that a leader knows; -1: it found none; -2: it has not looked",
    integers(NOT_LOOKED, lambda c: c["log_size"] - 1),
    per=(REPLICA,),
    initially=NOT_LOOKED,
    live=_knows_remote,
    dead=NOT_LOOKED,
    unset=True,
)
tiering.variable(
    "jumped_from",
    "the LEO that a follower had before it began at its leader's EPUO, until it has data; -1: it did not",
    integers(-1, lambda c: c["log_size"] - 1),
    per=(REPLICA,),
    initially=-1,
    live=_has_no_data,
    unset=True,
)

# The remote log.
tiering.variable("segment_state", "how far the upload of a segment is", Segment, per=(EPOCH, OFFSET))
tiering.variable(
    "segment_end",
    "its end, exclusive",
    integers(-1, lambda c: c["log_size"]),
    per=(EPOCH, OFFSET),
    initially=-1,
    live=_is_segment,
)
tiering.variable(
    "remote_epoch",
    "the leader epoch of the record at an offset, by what was uploaded in an epoch; -1: that does not say",
    _EPOCHS,
    per=(EPOCH, OFFSET),
    initially=-1,
    live=_is_in_checkpoint,
    unset=True,
)


def last_stable(k: Algebra, s: View, leader: Value) -> Value:
    """A leader's last stable offset (Ly)."""
    return k.min(s.hw[leader], s.stable)


def is_readable(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    """The record at an offset is in a segment that was uploaded in an epoch, and whose metadata is committed."""

    def has(start: Value) -> Value:
        finished = s.segment_state[epoch, start] == Segment.copy_finished
        return k.all(finished, start <= offset, offset < s.segment_end[epoch, start])

    return k.exists(OFFSET, has)


def is_same_record(k: Algebra, s: View, epoch: Value, replica: Value, offset: Value) -> Value:
    """What was uploaded in an epoch says the same of an offset as the replica's log."""
    known = s.record_epoch[replica, offset] != -1
    return k.all(known, s.remote_epoch[epoch, offset] == s.record_epoch[replica, offset])


def is_tiered(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The replica's record at an offset is in remote storage."""

    def has(epoch: Value) -> Value:
        return k.all(is_readable(k, s, epoch, offset), is_same_record(k, s, epoch, replica, offset))

    return k.exists(EPOCH, has)
