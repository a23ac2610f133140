"""Arguments for those mutants of ``snapshots``' ``kip-630-safe`` that nobody kills and of which z3 shows nothing.

In them, of a follower's fetch: *last* is the epoch of the follower's last record; *known* is the largest epoch up to
that one which the leader knows, by its log or by a snapshot, -1 where it cannot tell. Whoever *starts over* wipes its
log for a snapshot. A response that is *held* comes late, or more than once, and is taken only in the epoch in which it
was given, by whoever would send the same request again.
"""

from __future__ import annotations

from ...mutants.arguments import Collected

kip_630_safe = Collected()

NOBODY_LOSES = (
    "whom a log makes start over lacks what a snapshot has in which that log begins, so it is not of the majority that"
    " committed it: whatever else it wipes is below that, and the majority has it, or was never committed"
)

# Elections.

kip_630_safe.more(
    "a leader stands for the next epoch, and leads no more: an election as any other",
    "become_candidate.not_leading dropped",
)
kip_630_safe.more(
    "a replica enters an epoch that nobody leads yet: it has no vote there any more, and waits",
    "become_follower.leader_elected dropped",
)

# Records.

kip_630_safe.more(
    "who serves a follower of its own epoch without leading it has a log as any other: what the follower takes goes on"
    " from a record that both have, only what is committed is below its high watermark, and what it knows to be"
    " replicated counts nowhere",
    "follower_fetch.presumes_leadership dropped",
    "hold_records.presumes_leadership dropped",
)
kip_630_safe.more(
    "a leader that fetches from itself acknowledges what it counts as having anyway, and takes nothing",
    "hold_records.not_leader_itself dropped",
)
kip_630_safe.more(
    "the response is dropped in another epoch; what the fetch acknowledges the follower has: in an older epoch that is"
    " no record of the leader's own, and in a newer one it had it when that one's leader was elected, of whose majority"
    " some have told so",
    "hold_records.epoch_not_fenced dropped",
    "hold_records.epoch_not_fenced bound +1",
    "hold_records.epoch_not_fenced bound -1",
)
kip_630_safe.more(
    "the record of an older leader goes on from the follower's last one as it did then, and the follower's log is one"
    " as any other: it has no record of the newer leader's own yet, so nothing that it acknowledged counts so far",
    "late_records.epoch_not_fenced dropped",
    "late_records.epoch_not_fenced bound -1",
)
kip_630_safe.same(
    "below an offset at which it was served, a follower's log stays as it is in that epoch, so it has the same last"
    " epoch there",
    "late_records.answers_request bound 2 +1",
    "late_records.answers_request bound 2 -1",
)

# Divergences.

kip_630_safe.more(
    "a follower one epoch behind truncates what the new leader lacks: that was acknowledged in the older epoch, but by"
    " no majority, nor will be, as some of any majority have voted for the new leader",
    "follower_truncate.epoch_not_fenced bound -1",
)
kip_630_safe.more(
    "a follower truncates where it should start over. " + NOBODY_LOSES,
    "follower_truncate.reaches_back dropped",
    "follower_truncate.reaches_back bound 2 -1",
    "follower_truncate.reaches_back bound 3 -1",
    "hold_divergence.reaches_back dropped",
    "hold_divergence.reaches_back bound 2 -1",
    "hold_divergence.reaches_back bound 3 -1",
    "hold_divergence.reaches_back bound 11 -1",
)
kip_630_safe.other(
    "a follower keeps a record that the leader lacks, finds that its log still differs, and is not served",
    "follower_truncate.leo' bound 1 +1",
    "follower_truncate.leo' bound 2 -1",
    "follower_truncate.leo' bound 3 -1",
    "hold_divergence.response_offset' bound -1",
    "late_divergence.leo' bound 1 +1",
    "late_divergence.leo' bound 2 -1",
)
kip_630_safe.more(
    "the response is dropped in another epoch than the leader's; in that one the leader's log has only grown, and gives"
    " the same answer to the same last epoch",
    "hold_divergence.epoch_not_fenced dropped",
    "hold_divergence.epoch_not_fenced bound +1",
)
kip_630_safe.other(
    "the request names another last epoch than the follower has, and the response is dropped when it comes, as it"
    " answers no request of its",
    "hold_divergence.reaches_back bound 5 -1",
)
kip_630_safe.same(
    "known matters at the log's begin only, where a divergence takes a log of two offsets: then none is told",
    "hold_divergence.reaches_back bound 9 -1",
)
kip_630_safe.more(
    "a response that tells of no divergence is held: there is nothing to cut when it comes",
    "hold_divergence.diverges dropped",
    "hold_divergence.diverges bound 2 +1",
    "hold_divergence.diverges bound 2 -1",
    "hold_divergence.diverges bound 3 +1",
    "hold_divergence.diverges bound 4 +1",
    "hold_divergence.diverges bound 4 -1",
    "hold_divergence.diverges bound 5 -1",
    "hold_divergence.diverges bound 6 -1",
)
kip_630_safe.more(
    "a leader's word comes when its follower is in a newer epoch, with the same last record: what it truncates is of"
    " older epochs, and a leader counts what is acknowledged only with a record of its own behind it",
    "late_divergence.epoch_not_fenced dropped",
    "late_divergence.epoch_not_fenced bound -1",
)
kip_630_safe.same(
    "who is told of a divergence has a record, and knows its epoch by its log",
    "late_divergence.answers_request bound 3 +1",
    "late_divergence.answers_request bound 5 -1",
)

# Snapshots.

kip_630_safe.more(
    "a follower starts over by the word of who does not lead, or leads another epoch. " + NOBODY_LOSES,
    "follower_start_over.presumes_leadership dropped",
    "follower_start_over.epoch_not_fenced dropped",
    "follower_start_over.epoch_not_fenced bound +1",
    "follower_start_over.epoch_not_fenced bound -1",
    "hold_snapshot.presumes_leadership dropped",
    "late_snapshot.epoch_not_fenced dropped",
    "late_snapshot.epoch_not_fenced bound -1",
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
kip_630_safe.other(
    "the follower is wrong about how many chunks it has. No promise of the model is about that: a snapshot's records"
    " are told with its first chunk, and lost by a gap or another leader's bytes; that half a snapshot is seen at all"
    " is asked of both ways of fetching together, and fetch_snapshot goes on as before",
    "late_chunk.snapshot_size' bound 1 -1",
    "late_chunk.snapshot_size' bound 2 -1",
    "late_chunk.snapshot_size' bound 3 +1",
    "late_chunk.snapshot_size' bound 3 -1",
)

# Several of these.

kip_630_safe.fewer(
    "an epoch is read one offset off, and does not match: the leader tells nothing, or a response is dropped that could"
    " be taken, and the follower asks again",
    "follower_truncate.reaches_back bound 9 -1",
    "hold_records.reaches_back bound 5 -1",
    "hold_records.last_record_matches bound 4 -1",
    "late_records.answers_request bound 4 -1",
    "late_divergence.answers_request bound 3 -1",
    "late_divergence.answers_request bound 4 +1",
    "late_snapshot.answers_request bound 3 +1",
    "late_snapshot.answers_request bound 3 -1",
    "late_snapshot.answers_request bound 4 +1",
    "late_snapshot.answers_request bound 4 -1",
    "late_snapshot.answers_request bound 5 -1",
)
kip_630_safe.same(
    "no response is of a later epoch than its follower, which was in that epoch when it asked",
    "late_records.epoch_not_fenced bound +1",
    "late_divergence.epoch_not_fenced bound +1",
    "late_snapshot.epoch_not_fenced bound +1",
    "late_chunk.epoch_not_fenced bound +1",
)
