"""Arguments for those mutants of ``kip-630-safe`` that nobody kills which hold a response back, or deliver it late.

A response that is held is the one of an exchange (``arguments.py`` has the words and the reasons for those).
It is taken only in the epoch in which it was given, by whoever would send the same request again.
"""

from __future__ import annotations

from .arguments import (
    BEGIN_ONLY,
    END_IN_LOG,
    LARGER_BELOW,
    NO_LEADER_FETCHES,
    NOBODY_LOSES,
    NONE_BELOW,
    NOT_BEYOND,
    kip_630_safe,
)

__all__ = ["kip_630_safe"]

OTHER_REQUEST = (
    "the request names another last epoch than the follower has, and the response is dropped when it comes, as it"
    " answers no request of its"
)

# Records.

kip_630_safe.more(
    "a leader that fetches from itself acknowledges what it counts as having anyway, and takes nothing",
    "hold_records.not_leader_itself dropped",
)
kip_630_safe.more(
    "who serves a follower of its own epoch without leading it has a log as any other: what the follower takes goes on"
    " from a record that both have, only what is committed is below its high watermark, and what it knows to be"
    " replicated counts nowhere",
    "hold_records.presumes_leadership dropped",
)
kip_630_safe.more(
    "the response is dropped in another epoch; what the fetch acknowledges the follower has: in an older epoch that is"
    " no record of the leader's own, and in a newer one it had it when that one's leader was elected, of whose majority"
    " some have told so",
    "hold_records.epoch_not_fenced dropped",
    "hold_records.epoch_not_fenced bound +1",
    "hold_records.epoch_not_fenced bound -1",
)
kip_630_safe.same(NOT_BEYOND, "hold_records.reaches_back bound 6 +1", "hold_records.reaches_back bound 10 +1")
kip_630_safe.same(END_IN_LOG, "hold_records.reaches_back bound 7 +1", "hold_records.reaches_back bound 7 -1")
kip_630_safe.same(BEGIN_ONLY, "hold_records.reaches_back bound 8 -1")
kip_630_safe.same(
    "where known is larger than last, or -1, the last record does not match",
    "hold_records.reaches_back bound 2 -1",
    "hold_records.reaches_back bound 3 -1",
    "hold_records.reaches_back bound 11 -1",
    beside="last_record_matches",
)
kip_630_safe.fewer(
    "the leader takes a fetch for one below its log, or for one that it cannot check, and no response is held",
    "hold_records.reaches_back bound 1 +1",
    "hold_records.reaches_back bound 2 +1",
    "hold_records.reaches_back bound 3 +1",
    "hold_records.reaches_back bound 4 +1",
    "hold_records.reaches_back bound 4 -1",
    "hold_records.reaches_back bound 5 +1",
    "hold_records.reaches_back bound 5 -1",
    "hold_records.reaches_back bound 6 -1",
    "hold_records.reaches_back bound 8 +1",
    "hold_records.reaches_back bound 9 +1",
    "hold_records.reaches_back bound 9 -1",
    "hold_records.reaches_back bound 10 -1",
    "hold_records.reaches_back bound 11 +1",
)
kip_630_safe.same(LARGER_BELOW, "hold_records.last_record_matches bound 1 +1", beside="reaches_back")
kip_630_safe.same(NOT_BEYOND, "hold_records.last_record_matches bound 5 +1")
kip_630_safe.fewer(
    "the last record is looked for where it is not, and does not match",
    "hold_records.last_record_matches bound 2 +1",
    "hold_records.last_record_matches bound 2 -1",
    "hold_records.last_record_matches bound 3 +1",
    "hold_records.last_record_matches bound 3 -1",
    "hold_records.last_record_matches bound 4 +1",
    "hold_records.last_record_matches bound 4 -1",
    "hold_records.last_record_matches bound 5 -1",
    "hold_records.last_record_matches bound 6 -1",
)
kip_630_safe.other(
    "a held response brings no record, and the follower asks again",
    "hold_records.response_offset' bound 2 -1",
)
kip_630_safe.more(
    "the record of an older leader goes on from the follower's last one as it did then, and the follower's log is one"
    " as any other: it has no record of the newer leader's own yet, so nothing that it acknowledged counts so far",
    "late_records.epoch_not_fenced dropped",
    "late_records.epoch_not_fenced bound -1",
)
kip_630_safe.same(
    "no response is of a later epoch than its follower, which was in that epoch when it asked",
    "late_records.epoch_not_fenced bound +1",
    "late_divergence.epoch_not_fenced bound +1",
    "late_snapshot.epoch_not_fenced bound +1",
    "late_chunk.epoch_not_fenced bound +1",
)
kip_630_safe.same(
    "below an offset at which it was served, a follower's log stays as it is in that epoch, so it has the same last"
    " epoch there",
    "late_records.answers_request bound 2 +1",
    "late_records.answers_request bound 2 -1",
)
kip_630_safe.fewer(
    "a follower that misreads its own last epoch drops a response that it could take",
    "late_records.answers_request bound 3 +1",
    "late_records.answers_request bound 3 -1",
    "late_records.answers_request bound 4 +1",
    "late_records.answers_request bound 4 -1",
    "late_records.answers_request bound 5 -1",
    "late_divergence.answers_request bound 3 -1",
    "late_divergence.answers_request bound 4 +1",
    "late_snapshot.answers_request bound 3 +1",
    "late_snapshot.answers_request bound 3 -1",
    "late_snapshot.answers_request bound 4 +1",
    "late_snapshot.answers_request bound 4 -1",
    "late_snapshot.answers_request bound 5 -1",
)
kip_630_safe.same(
    NOT_BEYOND,
    "late_records.answers_request bound 5 +1",
    "late_divergence.answers_request bound 5 +1",
    "late_snapshot.answers_request bound 5 +1",
)
kip_630_safe.other("a follower's high watermark lags by one", "late_records.hw' bound 2 -1")
kip_630_safe.same("a follower takes the LBO that it has", "late_records.lbo' bound 1 +1")
kip_630_safe.same(NONE_BELOW, "late_records.lbo' bound 4 +1")
kip_630_safe.other(
    "a follower keeps its LBO where it could take the leader's: its log has more records than it must",
    "late_records.lbo' bound 1 -1",
    "late_records.lbo' bound 2 -1",
    "late_records.lbo' bound 3 -1",
    "late_records.lbo' bound 4 -1",
)

# Divergences.

kip_630_safe.same("no log differs from itself", "hold_divergence.not_leader_itself dropped", beside="diverges")
kip_630_safe.more(
    "the response is dropped in another epoch than the leader's; in that one the leader's log has only grown, and gives"
    " the same answer to the same last epoch",
    "hold_divergence.epoch_not_fenced dropped",
    "hold_divergence.epoch_not_fenced bound +1",
    "hold_divergence.epoch_not_fenced bound -1",
)
kip_630_safe.more(
    "a follower truncates where it should start over. " + NOBODY_LOSES,
    "hold_divergence.reaches_back dropped",
    "hold_divergence.reaches_back bound 2 -1",
    "hold_divergence.reaches_back bound 3 -1",
    "hold_divergence.reaches_back bound 11 -1",
)
kip_630_safe.more(
    OTHER_REQUEST,
    "hold_divergence.reaches_back bound 4 +1",
    "hold_divergence.reaches_back bound 6 -1",
)
kip_630_safe.other(
    OTHER_REQUEST,
    "hold_divergence.reaches_back bound 4 -1",
    "hold_divergence.reaches_back bound 5 +1",
    "hold_divergence.reaches_back bound 5 -1",
)
kip_630_safe.same(
    "below the leader's begin all is committed, and no follower has a record there of a later epoch: where one that has"
    " just reached the begin differs, known is larger than last; one just below differs nowhere, or at the begin",
    "hold_divergence.reaches_back bound 1 +1",
    "hold_divergence.reaches_back bound 1 -1",
)
kip_630_safe.same(
    "only a follower that has more records of an epoch than a leader that begins in the middle of it would start over"
    " and not truncate: that takes a log of three offsets, and costs nothing but the time",
    "hold_divergence.reaches_back bound 3 +1",
)
kip_630_safe.same(NOT_BEYOND, "hold_divergence.reaches_back bound 6 +1", "hold_divergence.reaches_back bound 10 +1")
kip_630_safe.same(END_IN_LOG, "hold_divergence.reaches_back bound 7 +1", "hold_divergence.reaches_back bound 7 -1")
kip_630_safe.same(BEGIN_ONLY, "hold_divergence.reaches_back bound 8 -1")
kip_630_safe.fewer(
    "a leader with all its records takes itself for one that cannot check the fetch, and no divergence is told",
    "hold_divergence.reaches_back bound 2 +1",
)
kip_630_safe.same(
    "known matters at the log's begin only, where a divergence takes a log of two offsets: then none is told",
    "hold_divergence.reaches_back bound 8 +1",
    "hold_divergence.reaches_back bound 9 +1",
    "hold_divergence.reaches_back bound 9 -1",
    "hold_divergence.reaches_back bound 10 -1",
    "hold_divergence.reaches_back bound 11 +1",
)
kip_630_safe.same(LARGER_BELOW, "hold_divergence.diverges bound 1 +1", beside="reaches_back")
kip_630_safe.fewer(
    "a follower whose last record the leader lacks is told nothing: it is not served either, and waits",
    "hold_divergence.diverges bound 1 -1",
)
kip_630_safe.same(
    "a follower with one record more than the leader has of an epoch: that takes a log of two offsets; it is told"
    " nothing, and waits",
    "hold_divergence.diverges bound 6 +1",
)
kip_630_safe.same(NOT_BEYOND, "hold_divergence.diverges bound 5 +1")
kip_630_safe.more(
    "a response that tells of no divergence is held: there is nothing to cut when it comes",
    "hold_divergence.diverges dropped",
    "hold_divergence.diverges bound 2 +1",
    "hold_divergence.diverges bound 2 -1",
    "hold_divergence.diverges bound 3 +1",
    "hold_divergence.diverges bound 3 -1",
    "hold_divergence.diverges bound 4 +1",
    "hold_divergence.diverges bound 4 -1",
    "hold_divergence.diverges bound 5 -1",
    "hold_divergence.diverges bound 6 -1",
)
kip_630_safe.other(
    "a follower keeps a record that the leader lacks, finds that its log still differs, and is not served",
    "hold_divergence.response_offset' bound -1",
    "late_divergence.leo' bound 1 +1",
    "late_divergence.leo' bound 2 -1",
)
kip_630_safe.same(NOT_BEYOND, "hold_divergence.response_offset_epoch' bound 3 +1")
kip_630_safe.more(
    "a leader's word comes when its follower is in a newer epoch, with the same last record: what it truncates is of"
    " older epochs, and a leader counts what is acknowledged only with a record of its own behind it",
    "late_divergence.epoch_not_fenced dropped",
    "late_divergence.epoch_not_fenced bound -1",
)
kip_630_safe.same(
    "a follower that has been told of a divergence truncates in that epoch, and has no record of its last epoch more,"
    " or less, before it has fetched one of a later epoch; what would be cut is cut already",
    "late_divergence.answers_request bound 1 +1",
    "late_divergence.answers_request bound 1 -1",
)
kip_630_safe.stutters(
    "a follower that has been told of a divergence truncates in that epoch; while its last epoch is an older one than"
    " when it asked, what would be cut is cut already",
    "late_divergence.answers_request bound 2 +1",
)
kip_630_safe.same(
    "who is told of a divergence has a record, and knows its epoch by its log",
    "late_divergence.answers_request bound 3 +1",
    "late_divergence.answers_request bound 5 -1",
)

# Snapshot ids.

kip_630_safe.same(
    "a log does not begin behind its own end, and its owner knows the epoch before that",
    "hold_snapshot.not_leader_itself dropped",
    beside="begins_later",
)
kip_630_safe.more(
    "a follower starts over by the word of who does not lead, or leads another epoch. " + NOBODY_LOSES,
    "hold_snapshot.presumes_leadership dropped",
    "hold_snapshot.epoch_not_fenced dropped",
    "hold_snapshot.epoch_not_fenced bound +1",
    "hold_snapshot.epoch_not_fenced bound -1",
    "late_snapshot.epoch_not_fenced dropped",
    "late_snapshot.epoch_not_fenced bound -1",
)
kip_630_safe.more(
    "a follower with no record that the leader has starts over by a snapshot though it could fetch from offset 0",
    "hold_snapshot.begins_later bound 2 +1",
)
kip_630_safe.other(
    OTHER_REQUEST,
    "hold_snapshot.begins_later bound 4 +1",
    "hold_snapshot.begins_later bound 4 -1",
    "hold_snapshot.begins_later bound 5 +1",
    "hold_snapshot.begins_later bound 5 -1",
    "hold_snapshot.begins_later bound 6 -1",
)
kip_630_safe.fewer(
    "a follower is not told to start over: it is not served either, and waits",
    "hold_snapshot.begins_later bound 1 -1",
    "hold_snapshot.begins_later bound 2 -1",
    "hold_snapshot.begins_later bound 3 -1",
    "hold_snapshot.begins_later bound 11 -1",
    "hold_snapshot.snapshot_exists bound 1 -1",
    "hold_snapshot.snapshot_exists bound 2 -1",
)
kip_630_safe.same(NOT_BEYOND, "hold_snapshot.begins_later bound 6 +1", "hold_snapshot.begins_later bound 10 +1")
kip_630_safe.same(END_IN_LOG, "hold_snapshot.begins_later bound 7 +1", "hold_snapshot.begins_later bound 7 -1")
kip_630_safe.same(BEGIN_ONLY, "hold_snapshot.begins_later bound 8 -1")
kip_630_safe.same(
    NO_LEADER_FETCHES,
    "hold_snapshot.snapshot_exists dropped",
    "hold_snapshot.snapshot_exists bound 1 +1",
    "hold_snapshot.snapshot_exists bound 2 +1",
    "hold_snapshot.response_offset' bound 2 +1",
    "hold_chunk.not_leader_itself dropped",
)
kip_630_safe.other(
    "the leader does not count a snapshot of one chunk, or of the first record, and names an older one, or offset -1:"
    " the follower begins with an empty log, and asks again. " + NOBODY_LOSES,
    "hold_snapshot.response_offset' bound 1 -1",
    "hold_snapshot.response_offset' bound 2 -1",
)
kip_630_safe.more(
    "a follower that was below its leader's log has one record more in that epoch only by having started over, and does"
    " so again: what it has is in the leader's snapshot, and was committed without it",
    "late_snapshot.answers_request bound 1 -1",
)
kip_630_safe.same(
    "a follower that is below its leader's log changes that, in this epoch, only by starting over: then it has more"
    " records than before, or a later last epoch",
    "late_snapshot.answers_request bound 1 +1",
    "late_snapshot.answers_request bound 2 +1",
)

# Chunks.

kip_630_safe.same(
    "who fetches no snapshot names none that is there",
    "hold_chunk.is_fetching dropped",
    beside="snapshot_found",
)
kip_630_safe.more(
    "a chunk of another epoch's leader is dropped when it comes, unless the follower is in that epoch by then, and has"
    " no byte yet, or bytes of that leader's",
    "hold_chunk.epoch_not_fenced dropped",
    "hold_chunk.epoch_not_fenced bound +1",
    "hold_chunk.epoch_not_fenced bound -1",
)
kip_630_safe.same(
    "a snapshot that is not there has no epoch that one could ask for",
    "hold_chunk.snapshot_found bound +1",
)
kip_630_safe.fewer("snapshots of one chunk are not found", "hold_chunk.snapshot_found bound -1")
kip_630_safe.same(
    "the last chunk makes a snapshot whole, and all chunks are of one epoch's leader, whose file does not change: the"
    " position is smaller than the file",
    "hold_chunk.position_in_range dropped",
    "hold_chunk.position_in_range bound +1",
    "hold_chunk.position_in_range bound -1",
    "late_chunk.snapshot_records' bound 1 +1",
    "late_chunk.snapshot_records' bound 1 -1",
)
kip_630_safe.same(
    "a chunk is of some snapshot",
    "late_chunk.is_fetching dropped",
    beside="answers_request",
)
kip_630_safe.same(
    "two snapshots with one last offset have one epoch, that of the committed record there",
    "late_chunk.answers_request bound 1 +1",
    "late_chunk.answers_request bound 1 -1",
)
kip_630_safe.stutters(
    "the same bytes are written again at their position",
    "late_chunk.answers_request bound 2 -1",
)
kip_630_safe.same("no chunk ends behind its file", "late_chunk.snapshot_size' bound 1 +1")
kip_630_safe.other(
    "the follower is wrong about how many chunks it has. No promise of the model is about that: a snapshot's records"
    " are told with its first chunk, and lost by a gap or another leader's bytes; that half a snapshot is seen at all"
    " is asked of both ways of fetching together, and fetch_snapshot goes on as before",
    "late_chunk.snapshot_size' bound 1 -1",
    "late_chunk.snapshot_size' bound 2 -1",
    "late_chunk.snapshot_size' bound 3 +1",
    "late_chunk.snapshot_size' bound 3 -1",
)
kip_630_safe.same(
    "the chunk was asked for at the position at which it is written",
    "late_chunk.snapshot_records' bound 2 +1",
)
