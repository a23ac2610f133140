"""What ``controller`` takes for granted of the metadata quorum, as rules of one log, and as a protocol of these alone.

**Why one log will do.** The quorum (KIP-595, ``snapshots``) has a log at each voter. A committed record stays, at its
offset, and whoever is elected has it (``no_committed_record_lost``, ``committed_below_high_watermark``). An epoch has
one leader, and every log is the beginning of the log of some epoch's leader (``logs_match``). A leader writes the
record that begins its epoch at once (KIP-595's LeaderChangeMessage, which is none of the records here), and is active,
and appends others, when that one is committed.

So the log is that of the controller that became active last, up to the end that it has itself. A majority has the
record that began its epoch, so that nobody is elected without it, and whoever is elected later has some of that log and
nothing else as long as it is not active: ``kept``, any end that is not below ``stable``. What is behind that end is not
gone. Epoch 2's leader may lack what epoch 1's has appended; if the record that begins epoch 2 is not committed either,
a third leader may be elected with all of it. And as long as nobody else is active, the controller of epoch 1 may be at
work: it has not heard of epoch 2, and what it appends now may come back, too. All that is over when the next one
becomes active: then a majority has a record of its epoch, no log without that one is elected, and the log ends where
that one's does. What a controller appends after that never becomes stable: it is nothing here.

Nor is it told in which epoch a record was counted. A deposed leader may count late what a majority had before the next
election, and what it counts is in the newest leader's log, too; so it may become active, late, where the record that
begins its epoch was replicated before.

``METADATA_LOG`` has these rules and no other. That each step of ``snapshots`` is one of them, or nothing, is checked by
exploration (``tests/model/test_metadata_log.py``): ``stable`` is what is committed, an epoch is active when its first
record is, and the ends are those of leaders' logs, less the records that begin epochs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from ...core.algebra import Algebra, Step, Value, View
from ...core.domains import Index, integers
from ...core.protocol import ConstantSpec, Protocol
from ...core.terms import Sort
from ..logs import END_OFFSET, LOG_SIZE, OFFSET

Guards: TypeAlias = Iterator[tuple[str, Value]]

CONTROLLER_EPOCH = Index("controller_epoch", Sort.INT, lambda c: c["max_controller_epoch"] + 1)


def may_be_elected(k: Algebra, s: View, kept: Value) -> Guards:
    """Guards: a node may be elected for the next epoch with a log that ends at ``kept``."""
    yield "epoch_available", s.newest_epoch < k.c.max_controller_epoch
    yield "committed_is_kept", s.stable <= kept
    yield "within_log", kept <= s.end


def election(s: View, kept: Value) -> dict[str, Value]:
    """What changes with it."""
    return {"newest_epoch": s.newest_epoch + 1, "leader_end": kept}


def may_activate(s: View, epoch: Value, applied: Value) -> Guards:
    """Guards: the leader of this epoch may become active, whose log ends at ``applied``, and is stable."""
    yield "none_active_since", s.active_epoch < epoch
    yield "caught_up", applied == s.leader_end


def activation(epoch: Value, applied: Value) -> dict[str, Value]:
    """What changes with it: the log ends here, and what that leader lacks is gone for good."""
    return {"active_epoch": epoch, "end": applied}


def may_commit(s: View) -> Guards:
    """Guard: there is a record that the newest leader has, and that is not stable."""
    yield "something_pending", s.stable < s.leader_end


def commitment(s: View) -> dict[str, Value]:
    """What changes with it."""
    return {"stable": s.stable + 1}


def works(s: View, epoch: Value) -> Guards:
    """Guard: nobody is active in a newer epoch than this one, in which a controller is."""
    yield "none_active_since", epoch == s.active_epoch


def has_room(k: Algebra, s: View) -> Guards:
    """Guard: there is an offset for one more record."""
    yield "log_not_full", s.end < k.c.log_size


def appended(k: Algebra, s: View, epoch: Value) -> dict[str, Value]:
    """What changes where the active controller of this epoch appends a record."""
    leader_end = k.ite(epoch == s.newest_epoch, s.end + 1, s.leader_end)
    return {"end": s.end + 1, "leader_end": leader_end}


METADATA_LOG: Final = Protocol(
    "metadata_log",
    "KIP-595",
    constants=(LOG_SIZE, ConstantSpec("max_controller_epoch", 2, 0, "the largest controller epoch")),
)
"""The rules above alone: who leads an epoch is nobody in particular. It is compared with, and is no protocol to run."""

_EPOCHS = integers(-1, lambda c: c["max_controller_epoch"])
_ENDS = integers(0, lambda c: c["log_size"])

METADATA_LOG.variant("kip-595", None, "what the controller takes for granted of the quorum")
METADATA_LOG.variable("newest_epoch", "the newest controller epoch", _EPOCHS, initially=-1)
METADATA_LOG.variable("active_epoch", "the newest one in which a controller became active", _EPOCHS, initially=-1)
METADATA_LOG.variable("end", "the end of the log", _ENDS)
METADATA_LOG.variable("leader_end", "the end of what the newest epoch's leader has of it", _ENDS)
METADATA_LOG.variable("stable", "the last stable offset, as an exclusive end", _ENDS)
METADATA_LOG.variable(
    "record_epoch",
    "the epoch of the record at an offset",
    _EPOCHS,
    per=(OFFSET,),
    initially=-1,
    live=lambda _k, s, offset: offset < s.end,
)


@METADATA_LOG.action(kept=END_OFFSET)
def elect(k: Algebra, s: View, kept: Value) -> Step:
    """A node is elected."""
    yield from may_be_elected(k, s, kept)
    yield s.update(**election(s, kept))


@METADATA_LOG.action(epoch=CONTROLLER_EPOCH)
def activate(_k: Algebra, s: View, epoch: Value) -> Step:
    """The leader of an epoch becomes active: all of its log is stable."""
    yield "epoch_elected", epoch <= s.newest_epoch
    yield from may_activate(s, epoch, s.stable)
    yield s.update(**activation(epoch, s.stable))


@METADATA_LOG.action()
def commit(_k: Algebra, s: View) -> Step:
    """One more record is stable."""
    yield from may_commit(s)
    yield s.update(**commitment(s))


@METADATA_LOG.action()
def append(k: Algebra, s: View) -> Step:
    """The controller that became active last appends a record."""
    yield "is_active", 0 <= s.active_epoch
    yield from has_room(k, s)
    yield s.update(record_epoch={s.end: s.active_epoch}, **appended(k, s, s.active_epoch))
