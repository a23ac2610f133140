"""A consumer that runs by itself: requests that take their time, records that wait for ``poll``, commits, restarts.

Each request is two moments. The consumer sends it (``send``) and waits; the answer is of a leader, or a coordinator, as
that was when it answered, and it counts only while it is waited for: whoever seeks meanwhile waits for nothing any
more. What has arrived belongs to no position yet: ``poll`` gives it record by record, and the position moves behind it.

A run of reading goes on across a jump where the record before the new position is the one that was read there; by its
offset and leader epoch that can be told. Else a new one begins, ``consumed_from``, and the application knows: it
sought, it restarted, it was told of a truncation, or of an offset that is out of range.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Step, Update, Value, View
from ...core.domains import REPLICA
from ..logs import END_OFFSET, EPOCH
from .actions import exact, larger_epoch_start, nearest, unknown_epoch
from .state import Asking, Awaited, Outcome, is_client, is_elected, is_own, truncation


def _truncated(k: Algebra, s: View, leader: Value) -> Value:
    """The leader's check, as far as its log reaches back: of what retention took, nothing can be said."""
    start = larger_epoch_start(k, s, leader, s.last_epoch)
    larger = k.all(s.last_epoch < s.leader_epoch[leader], start < s.position)
    gone = k.all(0 < start, start <= s.log_start[leader])
    unknown = k.all(k.negate(gone), s.record_epoch[leader, start - 1] != s.last_epoch)
    return k.all(s.last_epoch != -1, k.any(larger, unknown))


def _jump(s: View, position: Value, epoch: Value, seen: Value, begin: Value, **more: Value) -> Update:
    """The consumer goes on from a position, fetching; what was asked and what has arrived is dropped."""
    cells = {
        "placed": 1,
        "position": position,
        "last_epoch": epoch,
        "seen_epoch": seen,
        "consumed_from": begin,
        "outcome": Outcome.fetching,
        "answered_epoch": -1,
        "reported": -1,
        "reported_epoch": -1,
        "told": -1,
        "awaited": Awaited.nothing,
        "asking": Asking.nothing,
        "fetched_end": position,
        "fetched_seen": -1,
    }
    return s.update(**{**cells, **more})


def _begin(k: Algebra, s: View, position: Value, epoch: Value) -> Value:
    """Where the run of reading begins that a position is in."""
    read = k.all(s.consumed_from < position, position <= s.position)
    same = k.all(epoch != -1, s.consumed_epoch[position - 1] == epoch)
    return k.ite(k.all(read, same), s.consumed_from, position)


# What the application does.


@truncation.action(offset=END_OFFSET, present=is_own)
def seek_to(_k: Algebra, s: View, offset: Value) -> Step:
    """The application seeks to any offset; the next fetch names no epoch (-1) and is not checked."""
    yield _jump(s, offset, -1, -1, offset)


@truncation.action(present=is_own)
def seek_to_told(_k: Algebra, s: View) -> Step:
    """The application goes on from the divergence that it was told of, with the epochs that it was told with it."""
    yield "was_told", s.told != -1
    yield _jump(s, s.reported, s.reported_epoch, s.answered_epoch, s.reported)


@truncation.action(target=Asking, present=is_own)
def ask_for(_k: Algebra, s: View, target: Value) -> Step:
    """The application asks for the committed position, the beginning or the end of the log."""
    yield "somewhere", target != Asking.nothing
    yield s.update(awaited=Awaited.nothing, asking=target, fetched_end=s.position, fetched_seen=-1)


@truncation.action(present=is_own)
def take_record(k: Algebra, s: View) -> Step:
    """``poll`` gives the next record that has arrived, and the position moves behind it."""
    at = s.position
    yield "has_arrived", at < s.fetched_end
    yield s.update(
        position=at + 1,
        last_epoch=s.fetched_epoch[at],
        seen_epoch=s.fetched_seen,
        fetched_seen=k.ite(at + 1 == s.fetched_end, -1, s.fetched_seen),
        consumed_id={at: s.fetched_id[at]},
        consumed_epoch={at: s.fetched_epoch[at]},
    )


@truncation.action(present=is_own)
def tell_divergence(_k: Algebra, s: View) -> Step:
    """``poll`` raises LogTruncationException, with where to go on from (the reset policy ``none``)."""
    yield "divergence_found", s.outcome == Outcome.divergence_found
    yield "asks_for_nothing", s.asking == Asking.nothing
    yield s.update(told=s.reported)


@truncation.action(present=is_own)
def go_to_divergence(k: Algebra, s: View) -> Step:
    """The consumer goes on from the divergence, unless the application has asked for another position since.

    Below an offset that is only a bound nothing is known.
    """
    yield "divergence_found", s.outcome == Outcome.divergence_found
    yield "asks_for_nothing", s.asking == Asking.nothing
    begin = k.ite(exact(s), _begin(k, s, s.reported, s.reported_epoch), s.reported)
    yield _jump(s, s.reported, s.reported_epoch, s.answered_epoch, begin)


@truncation.action(target=Asking, present=is_own)
def reset_by_policy(k: Algebra, s: View, target: Value) -> Step:
    """Out of range: ``auto.offset.reset`` says where to go on from."""
    yield "out_of_range", s.outcome == Outcome.offset_out_of_range
    yield "asks_for_nothing", s.asking == Asking.nothing
    yield "by_policy", k.any(target == Asking.beginning, target == Asking.end)
    yield s.update(asking=target)


@truncation.action(present=is_own)
def restart_consumer(k: Algebra, s: View) -> Step:
    """The consumer's process ends, and another one begins: all that it knows is the group's name."""
    forgotten = {"metadata_leader": k.NONE, "metadata_epoch": -1, "known": -1}
    yield _jump(s, 0, -1, -1, 0, placed=0, asking=Asking.committed, **forgotten)


# Requests.


@truncation.action(request=Awaited, present=is_own)
def send(k: Algebra, s: View, request: Value) -> Step:
    """The consumer sends the one request that is due, and waits for its answer."""
    yield "awaits_nothing", s.awaited == Awaited.nothing
    yield "nothing_has_arrived", s.fetched_end == s.position
    reads = k.all(s.placed == 1, s.asking == Asking.nothing)
    fetches = k.any(s.outcome == Outcome.fetching, s.outcome == Outcome.unknown_leader_epoch)
    listed = k.any(s.asking == Asking.beginning, s.asking == Asking.end)
    yield (
        "due",
        k.any(
            k.all(request == Awaited.fetch, reads, fetches),
            k.all(request == Awaited.search, reads, s.outcome == Outcome.log_truncation),
            k.all(request == Awaited.list, listed),
            k.all(request == Awaited.committed, s.asking == Asking.committed),
            k.all(request == Awaited.metadata, s.asking != Asking.committed),
        ),
    )
    yield s.update(awaited=request)


@truncation.action(present=is_own)
def give_up(_k: Algebra, s: View) -> Step:
    """No answer came, or one that says nothing: the consumer waits for it no more."""
    yield "awaits_something", s.awaited != Awaited.nothing
    yield s.update(awaited=Awaited.nothing)


@truncation.action(epoch=EPOCH, present=is_own)
def learn_leader(k: Algebra, s: View, epoch: Value) -> Step:
    """Some broker's metadata, of the current epoch or of an older one (KIP-232)."""
    leader = s.epoch_leader[epoch]
    yield "awaits_metadata", s.awaited == Awaited.metadata
    yield "epoch_started", is_elected(k, s, epoch)
    yield "leader_elected", leader != k.NONE
    news = k.any(leader != s.metadata_leader, epoch != s.metadata_epoch)
    retries = k.all(news, s.outcome == Outcome.unknown_leader_epoch)
    yield s.update(
        awaited=Awaited.nothing,
        metadata_leader=leader,
        metadata_epoch=epoch,
        outcome=k.ite(retries, Outcome.fetching, s.outcome),
        answered_epoch=k.ite(retries, -1, s.answered_epoch),
    )


def _fetch_answered(k: Algebra, s: View, leader: Value) -> Step:
    yield "awaits_fetch", s.awaited == Awaited.fetch
    yield "leads", s.leading[leader] == 1
    yield "epoch_known", k.negate(unknown_epoch(k, s, leader))
    yield "not_truncated", k.negate(_truncated(k, s, leader))
    yield "in_range", k.all(s.log_start[leader] <= s.position, s.position <= s.leo[leader])


@truncation.action(leader=REPLICA, present=is_own)
def fetch_record(k: Algebra, s: View, leader: Value) -> Step:
    """One more record of the answer to a fetch: below the high watermark, behind those before it."""
    yield from _fetch_answered(k, s, leader)
    at = s.fetched_end
    yield "of_one_answer", k.any(at == s.position, s.fetched_seen == s.leader_epoch[leader])
    yield "below_high_watermark", at < s.hw[leader]
    yield s.update(
        fetched_end=at + 1,
        fetched_id={at: s.record_id[leader, at]},
        fetched_epoch={at: s.record_epoch[leader, at]},
        fetched_seen=s.leader_epoch[leader],
    )


@truncation.action(leader=REPLICA, present=is_own)
def end_fetch(k: Algebra, s: View, leader: Value) -> Step:
    """All of the answer to a fetch has arrived."""
    yield from _fetch_answered(k, s, leader)
    yield s.update(awaited=Awaited.nothing, outcome=Outcome.fetching, answered_epoch=-1)


@truncation.action(leader=REPLICA, present=is_own)
def refuse_unknown_epoch(k: Algebra, s: View, leader: Value) -> Step:
    """The leader knows no epoch as large as the consumer's, which has to refresh its metadata (KIP-232)."""
    yield "awaits_fetch", s.awaited == Awaited.fetch
    yield "leads", s.leading[leader] == 1
    yield "epoch_unknown", unknown_epoch(k, s, leader)
    yield s.update(awaited=Awaited.nothing, outcome=Outcome.unknown_leader_epoch, answered_epoch=s.leader_epoch[leader])


@truncation.action(leader=REPLICA, present=is_own)
def refuse_truncated(k: Algebra, s: View, leader: Value) -> Step:
    """The leader finds that the record before the fetch offset is not the one that the consumer fetched."""
    yield "awaits_fetch", s.awaited == Awaited.fetch
    yield "leads", s.leading[leader] == 1
    yield "epoch_known", k.negate(unknown_epoch(k, s, leader))
    yield "truncated", _truncated(k, s, leader)
    yield s.update(awaited=Awaited.nothing, outcome=Outcome.log_truncation, answered_epoch=s.leader_epoch[leader])


@truncation.action(leader=REPLICA, present=is_own)
def refuse_out_of_range(k: Algebra, s: View, leader: Value) -> Step:
    """The fetch offset is not within the leader's log, whose start moves up."""
    yield "awaits_fetch", s.awaited == Awaited.fetch
    yield "leads", s.leading[leader] == 1
    yield "epoch_known", k.negate(unknown_epoch(k, s, leader))
    yield "not_truncated", k.negate(_truncated(k, s, leader))
    yield "not_in_range", k.any(s.position < s.log_start[leader], s.leo[leader] < s.position)
    yield s.update(awaited=Awaited.nothing, outcome=Outcome.offset_out_of_range, answered_epoch=-1)


@truncation.action(leader=REPLICA, present=is_own)
def learn_divergence(k: Algebra, s: View, leader: Value) -> Step:
    """OffsetsForLeaderEpoch, after LOG_TRUNCATION: where to go on from."""
    yield "awaits_search", s.awaited == Awaited.search
    yield "leads", s.leading[leader] == 1
    yield "epoch_known", k.negate(unknown_epoch(k, s, leader))
    offset, epoch = nearest(k, s, leader, s.position, s.last_epoch)
    yield s.update(
        awaited=Awaited.nothing,
        outcome=Outcome.divergence_found,
        answered_epoch=s.leader_epoch[leader],
        reported=offset,
        reported_epoch=epoch,
    )


@truncation.action(leader=REPLICA, present=is_own)
def learn_beginning(_k: Algebra, s: View, leader: Value) -> Step:
    """ListOffsets gives the log start offset; there is no record before it to check by."""
    yield "awaits_list", s.awaited == Awaited.list
    yield "asks_for_beginning", s.asking == Asking.beginning
    yield "leads", s.leading[leader] == 1
    start = s.log_start[leader]
    yield _jump(s, start, -1, s.leader_epoch[leader], start)


@truncation.action(leader=REPLICA, present=is_own)
def learn_end(_k: Algebra, s: View, leader: Value) -> Step:
    """ListOffsets gives the high watermark, with the epoch of the record before it."""
    yield "awaits_list", s.awaited == Awaited.list
    yield "asks_for_end", s.asking == Asking.end
    yield "leads", s.leading[leader] == 1
    end = s.hw[leader]
    yield _jump(s, end, s.record_epoch[leader, end - 1], s.leader_epoch[leader], end)


# Commits.


def _position_settled(k: Algebra, s: View) -> Step:
    yield "has_position", k.all(s.placed == 1, s.asking == Asking.nothing)
    if k.rules.shipped:
        yield "not_in_doubt", s.validating == 0
        return
    yield "not_in_doubt", k.any(s.outcome == Outcome.fetching, s.outcome == Outcome.unknown_leader_epoch)


@truncation.action(present=is_client)
def store_commit(k: Algebra, s: View) -> Step:
    """The coordinator has the position in its log, and says so."""
    yield from _position_settled(k, s)
    yield s.update(
        committed=s.position,
        committed_epoch=s.last_epoch,
        committed_seen=s.seen_epoch,
        acknowledged=s.position,
        acknowledged_epoch=s.last_epoch,
        acknowledged_seen=s.seen_epoch,
        refused=-1,
        refused_epoch=-1,
        refused_seen=-1,
        found_again=0,
    )


@truncation.action(present=is_client)
def refuse_commit(k: Algebra, s: View) -> Step:
    """The coordinator cannot tell whether the position is in its log: its disk failed it, or it crashed."""
    yield from _position_settled(k, s)
    yield s.update(refused=s.position, refused_epoch=s.last_epoch, refused_seen=s.seen_epoch)


@truncation.action(present=is_client)
def find_commit(k: Algebra, s: View) -> Step:
    """A coordinator that starts finds in its log what it did not acknowledge."""
    yield "was_refused", s.refused != -1
    same = k.all(
        s.refused == s.acknowledged,
        s.refused_epoch == s.acknowledged_epoch,
        s.refused_seen == s.acknowledged_seen,
    )
    yield s.update(
        committed=s.refused,
        committed_epoch=s.refused_epoch,
        committed_seen=s.refused_seen,
        refused=-1,
        refused_epoch=-1,
        refused_seen=-1,
        found_again=k.ite(same, 0, 1),
    )


@truncation.action(present=is_client)
def miss_commit(_k: Algebra, s: View) -> Step:
    """A coordinator that starts does not find it."""
    yield "was_refused", s.refused != -1
    yield s.update(refused=-1, refused_epoch=-1, refused_seen=-1)


@truncation.action(present=is_own)
def hear_commit(_k: Algebra, s: View) -> Step:
    """The consumer hears that its commit is stored."""
    yield "committed", s.committed != -1
    yield s.update(known=s.committed)


@truncation.action(present=is_own)
def learn_commit(k: Algebra, s: View) -> Step:
    """OffsetFetch gives the committed position and its epochs back, and what came after is read again."""
    yield "awaits_committed", s.awaited == Awaited.committed
    yield "committed", s.committed != -1
    begin = _begin(k, s, s.committed, s.committed_epoch)
    yield _jump(s, s.committed, s.committed_epoch, s.committed_seen, begin, known=s.committed)


@truncation.action(target=Asking, present=is_own)
def learn_no_commit(_k: Algebra, s: View, target: Value) -> Step:
    """OffsetFetch finds nothing: ``auto.offset.reset`` says where to begin, and with ``none`` the application."""
    yield "awaits_committed", s.awaited == Awaited.committed
    yield "nothing_committed", s.committed == -1
    yield "by_policy", target != Asking.committed
    yield s.update(awaited=Awaited.nothing, asking=target)
