"""Arguments for the mutants of ``snapshots``' ``kip-630-safe`` that nobody kills; late responses have their own file.

In them, of a follower's fetch: *last* is the epoch of the follower's last record; *end* is where the first epoch larger
than that begins in the leader's log, its LEO if there is none; *known* is the epoch right before end, by the leader's
log or by a snapshot that ends there, -1 where it cannot tell. Whoever *starts over* wipes its log for a snapshot.
"""

from __future__ import annotations

from ...mutants.arguments import Collected

kip_630_safe = Collected()

NOT_BEYOND = "no snapshot that is being fetched ends beyond its owner's log"
NONE_BELOW = "whoever fetches a snapshot has wiped all others: there is none right below it"
END_IN_LOG = (
    "end is not before the log's begin; and where it lies behind that, known is a record's epoch, no larger than last"
)
BEGIN_ONLY = "known is asked at the log's begin only, and is not read from the log there"
LARGER_BELOW = "known is larger than last at the log's begin only, and there the fetch is below it"
NOBODY_LOSES = (
    "whom a log makes start over lacks what a snapshot has in which that log begins, so it is not of the majority that"
    " committed it: whatever else it wipes is below that, and the majority has it, or was never committed"
)

# Elections.

kip_630_safe.more(
    "an observer that stands is elected by a majority of voters, whose logs reach no further than its own; its own vote"
    " and those of other observers are in no majority",
    "become_candidate.is_voter dropped",
    "grant_vote.is_voter dropped",
)
kip_630_safe.more(
    "a leader stands for the next epoch, and leads no more: an election as any other",
    "become_candidate.not_leading dropped",
)
kip_630_safe.same(
    "a log that is nobody's has fewer records than any voter's",
    "grant_vote.candidate_stands dropped",
    beside="up_to_date",
)
kip_630_safe.stutters(
    "whoever is in the newest epoch while nobody leads it has voted, and votes for the same candidate again",
    "grant_vote.epoch_newer dropped",
    "grant_vote.epoch_newer bound +1",
)
kip_630_safe.fewer(
    "a candidate is refused whose last epoch is just one larger than the voter's",
    "grant_vote.up_to_date bound 1 -1",
)
kip_630_safe.fewer(
    "the candidate's last epoch is read at another offset, where it is smaller or not known: fewer votes are granted",
    "grant_vote.up_to_date bound 5 +1",
    "grant_vote.up_to_date bound 5 -1",
    "grant_vote.up_to_date bound 6 +1",
    "grant_vote.up_to_date bound 6 -1",
    "grant_vote.up_to_date bound 7 -1",
)
kip_630_safe.same(NOT_BEYOND, "grant_vote.up_to_date bound 4 +1", "grant_vote.up_to_date bound 7 +1")
kip_630_safe.same(
    "a voter whose last epoch is one smaller grants its vote in any case",
    "grant_vote.up_to_date bound 8 -1",
)
kip_630_safe.more(
    "a replica enters an epoch that nobody leads yet: it has no vote there any more, and waits",
    "become_follower.leader_elected dropped",
)
kip_630_safe.more(
    "a replica hears again of the epoch that it is in, and fetches its snapshot from the first byte again",
    "become_follower.epoch_newer bound +1",
)
kip_630_safe.same(
    "no log has a record of a later epoch than the one that its owner is in",
    "leader_inc_high_watermark.of_own_epoch bound +1",
)

# A fetch that is served.

kip_630_safe.more(
    "a leader that fetches from itself acknowledges what it counts as having anyway, and takes nothing",
    "follower_fetch.not_leader_itself dropped",
)
kip_630_safe.more(
    "who serves a follower of its own epoch without leading it has a log as any other: what the follower takes goes on"
    " from a record that both have, only what is committed is below its high watermark, and what it knows to be"
    " replicated counts nowhere",
    "follower_fetch.presumes_leadership dropped",
)
kip_630_safe.same(NOT_BEYOND, "follower_fetch.reaches_back bound 6 +1", "follower_fetch.reaches_back bound 10 +1")
kip_630_safe.same(END_IN_LOG, "follower_fetch.reaches_back bound 7 +1", "follower_fetch.reaches_back bound 7 -1")
kip_630_safe.same(BEGIN_ONLY, "follower_fetch.reaches_back bound 8 -1")
kip_630_safe.same(
    "where known is larger than last, or -1, the last record does not match",
    "follower_fetch.reaches_back bound 2 -1",
    "follower_fetch.reaches_back bound 3 -1",
    "follower_fetch.reaches_back bound 11 -1",
    beside="last_record_matches",
)
kip_630_safe.fewer(
    "at its begin the leader takes a fetch for one that it cannot check, and does not serve it, though the last record"
    " matches; it may be told to start over, or has to wait",
    "follower_fetch.reaches_back bound 3 +1",
    "follower_fetch.reaches_back bound 6 -1",
    "follower_fetch.reaches_back bound 8 +1",
    "follower_fetch.reaches_back bound 9 +1",
    "follower_fetch.reaches_back bound 9 -1",
    "follower_fetch.reaches_back bound 10 -1",
    "follower_fetch.reaches_back bound 11 +1",
)
kip_630_safe.same(LARGER_BELOW, "follower_fetch.last_record_matches bound 1 +1", beside="reaches_back")
kip_630_safe.same(NOT_BEYOND, "follower_fetch.last_record_matches bound 5 +1")
kip_630_safe.fewer(
    "at its begin the leader does not look for the epoch in its snapshot, and serves nobody there",
    "follower_fetch.last_record_matches bound 2 +1",
    "follower_fetch.last_record_matches bound 5 -1",
)
kip_630_safe.other(
    "a follower's high watermark lags by one",
    "follower_fetch.hw' bound 2 -1",
)
kip_630_safe.same(
    "a follower takes the LBO that it has",
    "follower_fetch.lbo' bound 1 +1",
)
kip_630_safe.same(NONE_BELOW, "follower_fetch.lbo' bound 4 +1")
kip_630_safe.other(
    "a follower keeps its LBO where it could take the leader's: its log has more records than it must",
    "follower_fetch.lbo' bound 1 -1",
    "follower_fetch.lbo' bound 2 -1",
    "follower_fetch.lbo' bound 3 -1",
    "follower_fetch.lbo' bound 4 -1",
)

# A fetch that finds a divergence.

kip_630_safe.same(
    "no log differs from itself",
    "follower_truncate.not_leader_itself dropped",
    beside="diverges",
)
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
    "follower_truncate.reaches_back bound 11 -1",
)
kip_630_safe.same(
    "below the leader's begin all is committed, and no follower has a record there of a later epoch: where one that has"
    " just reached the begin differs, known is larger than last; one just below differs nowhere, or at the begin",
    "follower_truncate.reaches_back bound 1 +1",
    "follower_truncate.reaches_back bound 1 -1",
)
kip_630_safe.same(
    "only a follower that has more records of an epoch than a leader that begins in the middle of it would start over"
    " and not truncate: that takes a log of three offsets, and costs nothing but the time",
    "follower_truncate.reaches_back bound 3 +1",
)
kip_630_safe.same(NOT_BEYOND, "follower_truncate.reaches_back bound 6 +1", "follower_truncate.reaches_back bound 10 +1")
kip_630_safe.same(END_IN_LOG, "follower_truncate.reaches_back bound 7 +1", "follower_truncate.reaches_back bound 7 -1")
kip_630_safe.same(BEGIN_ONLY, "follower_truncate.reaches_back bound 8 -1")
kip_630_safe.fewer(
    "at its begin the leader takes a fetch for one that it cannot check, and no divergence is told",
    "follower_truncate.reaches_back bound 2 +1",
    "follower_truncate.reaches_back bound 8 +1",
    "follower_truncate.reaches_back bound 9 +1",
    "follower_truncate.reaches_back bound 9 -1",
    "follower_truncate.reaches_back bound 10 -1",
    "follower_truncate.reaches_back bound 11 +1",
)
kip_630_safe.same(LARGER_BELOW, "follower_truncate.diverges bound 1 +1", beside="reaches_back")
kip_630_safe.same(NOT_BEYOND, "follower_truncate.diverges bound 5 +1")
kip_630_safe.stutters(
    "where the last record matches there is nothing to cut",
    "follower_truncate.diverges dropped",
    "follower_truncate.diverges bound 2 +1",
    "follower_truncate.diverges bound 2 -1",
    "follower_truncate.diverges bound 3 +1",
    "follower_truncate.diverges bound 3 -1",
    "follower_truncate.diverges bound 4 +1",
    "follower_truncate.diverges bound 4 -1",
    "follower_truncate.diverges bound 5 -1",
    "follower_truncate.diverges bound 6 -1",
)
kip_630_safe.fewer(
    "a follower whose last record the leader lacks is told nothing: it is not served either, and waits",
    "follower_truncate.diverges bound 1 -1",
    "follower_truncate.diverges bound 6 +1",
)
kip_630_safe.other(
    "a follower keeps a record that the leader lacks, finds that its log still differs, and is not served",
    "follower_truncate.leo' bound 1 +1",
    "follower_truncate.leo' bound 2 -1",
    "follower_truncate.leo' bound 3 -1",
)
kip_630_safe.same(NOT_BEYOND, "follower_truncate.leo' bound 6 +1")

# A follower that starts over.

kip_630_safe.same(
    "a log does not begin behind its own end, and its owner knows the epoch before that",
    "follower_start_over.not_leader_itself dropped",
    beside="begins_later",
)
kip_630_safe.more(
    "a follower starts over by the word of who does not lead, or leads another epoch. " + NOBODY_LOSES,
    "follower_start_over.presumes_leadership dropped",
    "follower_start_over.epoch_not_fenced dropped",
    "follower_start_over.epoch_not_fenced bound +1",
    "follower_start_over.epoch_not_fenced bound -1",
)
kip_630_safe.more(
    "a follower with no record that the leader has starts over by a snapshot though it could fetch from offset 0",
    "follower_start_over.begins_later bound 2 +1",
)
kip_630_safe.fewer(
    "a follower is not told to start over: it is not served either, and waits",
    "follower_start_over.begins_later bound 1 -1",
    "follower_start_over.begins_later bound 2 -1",
    "follower_start_over.begins_later bound 3 -1",
    "follower_start_over.begins_later bound 11 -1",
)
kip_630_safe.same(
    NOT_BEYOND, "follower_start_over.begins_later bound 6 +1", "follower_start_over.begins_later bound 10 +1"
)
kip_630_safe.same(
    END_IN_LOG, "follower_start_over.begins_later bound 7 +1", "follower_start_over.begins_later bound 7 -1"
)
kip_630_safe.same(BEGIN_ONLY, "follower_start_over.begins_later bound 8 -1")
NO_LEADER_FETCHES = (
    "no leader's snapshot is incomplete: where there is a snapshot something is committed, a majority has it, and"
    " elects nobody whose log counts as empty; and a leader whose log does not begin at 0 has a snapshot"
)
kip_630_safe.same(
    NO_LEADER_FETCHES,
    "follower_start_over.snapshot_exists dropped",
    "follower_start_over.snapshot_exists bound 1 +1",
    "follower_start_over.snapshot_exists bound 2 +1",
    "follower_start_over.lbo' bound 3 +1",
)

# The chunks of a snapshot.

kip_630_safe.same(
    "who fetches no snapshot names none that is there",
    "fetch_snapshot.is_fetching dropped",
    beside="snapshot_found",
)
kip_630_safe.same(NO_LEADER_FETCHES, "fetch_snapshot.not_leader_itself dropped")
kip_630_safe.same(
    "a snapshot that is not there has no epoch that one could ask for",
    "fetch_snapshot.snapshot_found bound +1",
    "rediscover_snapshot.fetch_refused bound 2 +1",
)
kip_630_safe.fewer(
    "snapshots of one chunk are not found",
    "fetch_snapshot.snapshot_found bound -1",
)
kip_630_safe.same(
    "the last chunk makes a snapshot whole, and all chunks are of one epoch's leader, whose file does not change: the"
    " position is smaller than the file",
    "fetch_snapshot.position_in_range dropped",
    "fetch_snapshot.position_in_range bound +1",
    "fetch_snapshot.position_in_range bound -1",
    "rediscover_snapshot.fetch_refused bound 3 +1",
    "rediscover_snapshot.fetch_refused bound 3 -1",
    "fetch_snapshot.snapshot_records' bound +1",
    "fetch_snapshot.snapshot_records' bound -1",
)
kip_630_safe.same(
    "no chunk ends behind its file",
    "fetch_snapshot.snapshot_size' bound 1 +1",
)
kip_630_safe.more(
    "a follower gives a snapshot up that it could have fetched; while it fetches, nobody counts it as having anything",
    "rediscover_snapshot.fetch_refused dropped",
    "rediscover_snapshot.fetch_refused bound 2 -1",
)
kip_630_safe.fewer(
    "a follower whose leader has just gone on to the next epoch waits until it hears of that epoch",
    "rediscover_snapshot.fetch_refused bound 1 +1",
)
kip_630_safe.same(
    "who was elected in an epoch is never in an older one",
    "rediscover_snapshot.fetch_refused bound 1 -1",
)

# Snapshots, and the log begin offset.

kip_630_safe.same(NONE_BELOW, "generate_snapshot.later_than_latest bound 3 +1")
kip_630_safe.more(
    "a snapshot is taken before there are enough records for it",
    "generate_snapshot.enough_records dropped",
    "generate_snapshot.enough_records bound 1 +1",
    "generate_snapshot.enough_records bound 2 +1",
)
kip_630_safe.same(
    "a log begins no later than its owner's latest snapshot ends, so the state machine lacks nothing",
    "generate_snapshot.snapshot_records' bound 1 +1",
    "generate_snapshot.snapshot_records' bound 3 +1",
)
for _action in ("leader_advance_lbo", "delete_records"):
    kip_630_safe.more(
        "any replica may cut its log as far as a snapshot of its own reaches, whether it leads or not",
        f"{_action}.presumes_leadership dropped",
    )
    kip_630_safe.stutters("the LBO is set to what it is", f"{_action}.increases bound +1")
    kip_630_safe.fewer("the LBO does not advance by one", f"{_action}.increases bound -1")
    kip_630_safe.fewer(
        "the LBO stays one below what a snapshot reaches, or a snapshot of one chunk, or of the first record, does not"
        " count",
        f"{_action}.snapshot_includes bound 1 -1",
        f"{_action}.snapshot_includes bound 2 -1",
        f"{_action}.snapshot_includes bound 3 -1",
    )
    kip_630_safe.same(NO_LEADER_FETCHES, f"{_action}.snapshot_includes bound 3 +1")
    kip_630_safe.more(
        "the LBO does not wait for a replica: that it need not shows wherever max.replication.lag.ms may pass",
        f"{_action}.replicated_or_old dropped",
        f"{_action}.replicated_or_old bound 1 +1",
        f"{_action}.replicated_or_old bound 3 -1",
    )
    kip_630_safe.other(
        "the record before, or behind, the one in question decides whether a replica has the log up to there: the LBO"
        " waits longer, or not as long, and need not wait at all",
        f"{_action}.replicated_or_old bound 4 +1",
        f"{_action}.replicated_or_old bound 4 -1",
    )
    kip_630_safe.same(
        "behind its end a log has no record, and below a leader's high watermark nobody has one of a later epoch",
        f"{_action}.replicated_or_old bound 2 +1",
        f"{_action}.replicated_or_old bound 3 +1",
    )
    kip_630_safe.fewer(
        "the LBO waits for a replica that has the log up to there",
        f"{_action}.replicated_or_old bound 1 -1",
        f"{_action}.replicated_or_old bound 2 -1",
    )
kip_630_safe.stutters(
    "a snapshot is deleted that is not there; one that is being fetched is not below its owner's LBO - 1",
    "delete_snapshot.is_complete dropped",
    "delete_snapshot.is_complete bound 1 +1",
)
kip_630_safe.fewer(
    "an old snapshot is kept: one of a single chunk, the very first, or that right below LBO - 1",
    "delete_snapshot.is_complete bound 1 -1",
    "delete_snapshot.is_complete bound 2 -1",
    "delete_snapshot.below_lbo bound -1",
)
kip_630_safe.same(NONE_BELOW, "delete_snapshot.is_complete bound 2 +1")

# Restarts.

kip_630_safe.fewer(
    "nobody restarts by the high watermark that it knew, but by an older one at most",
    "restart.was_known bound -1",
    "restart_empty.was_known bound -1",
)
kip_630_safe.fewer(
    "a log with the snapshot that it needs does not count as valid; as it does not count as empty either, its owner"
    " does not crash",
    "restart.log_valid bound 1 -1",
    "restart.log_valid bound 2 -1",
    "restart.log_valid bound 3 -1",
)
kip_630_safe.same(
    NONE_BELOW,
    "restart.log_valid bound 3 +1",
    "restart.hw' bound 4 +1",
    "restart_empty.log_not_valid bound 3 +1",
)
kip_630_safe.more(
    "a log that counts as empty is wiped whatever the high watermark was",
    "restart_empty.was_known dropped",
    "restart_empty.was_known bound +1",
)
kip_630_safe.fewer(
    "a log that counts as empty does not count as such: its owner does not crash",
    "restart_empty.log_not_valid bound 1 +1",
    "restart_empty.log_not_valid bound 2 +1",
)
