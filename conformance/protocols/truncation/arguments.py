"""Arguments for the mutants of ``truncation``'s ``kip-320-mended`` that nobody kills.

In them, *start* is where the first epoch larger than the consumer's begins in a leader's log, its LEO if there is none.
A consumer *names* no epoch where its last epoch is -1.
"""

from __future__ import annotations

from ...mutants.arguments import Collected

kip_320_mended = Collected()

# The partition.

kip_320_mended.same(
    "before the first election no replica is in an epoch older than the controller's",
    "become_follower.leader_elected dropped",
    beside="epoch_newer",
)
kip_320_mended.same(
    "no replica is in a later epoch than the controller",
    "follower_fetch.epoch_not_fenced bound +1",
    "leader_inc_high_watermark.isr_acknowledges bound 1 +1",
)
kip_320_mended.same(
    "whoever is elected cleanly holds all below its predecessor's high watermark, so that is the smaller of the two",
    "elect_cleanly.hw' bound 2 +1",
    "elect_cleanly.hw' bound 3 +1",
    beside="holds_committed",
)
kip_320_mended.other(
    "what is asked of a new leader's high watermark is that it lies within its log; it may count the rest of its log as"
    " committed at any later time",
    "elect_uncleanly.hw' bound 3 +1",
    "elect_uncleanly.hw' bound 3 -1",
)
kip_320_mended.other(
    "a follower drops its last record though the leader has it: it fetches it again, and until then its election may be"
    " an unclean one, which is said of it",
    "become_follower.leo' bound 2 -1",
)
kip_320_mended.fewer(
    "there is no clean election for the last epoch: the bound is the model's own",
    "elect_cleanly.epoch_available bound -1",
)
kip_320_mended.fewer(
    "a replica counts as holding one record less than it does, so fewer are elected cleanly",
    "elect_cleanly.holds_committed bound 2 -1",
)
kip_320_mended.fewer(
    "a replica whose log is at least as long as the leader's counts as holding all of it, so fewer are elected"
    " uncleanly; those that are, are so as before",
    "elect_uncleanly.lacks_committed bound 2 +1",
)
kip_320_mended.fewer(
    "a follower never copies the leader's last record",
    "follower_fetch.record_available bound -1",
)

# Whom the consumer asks.

kip_320_mended.more(
    "the consumer asks a leader that its metadata does not name. Metadata may be of any election there was, so the"
    " leader's own checks have to be enough anyway",
    "consumer_fetch.asks_leader dropped",
    "answer_unknown_leader_epoch.asks_leader dropped",
    "answer_log_truncation.asks_leader dropped",
    "answer_out_of_range.asks_leader dropped",
    "find_divergence.asks_leader dropped",
    "reset_to_latest.asks_leader dropped",
    "seek_to_nearest.asks_leader dropped",
)
kip_320_mended.more(
    "metadata of an epoch that has not begun names no leader, and the consumer asks nobody until it refreshes again",
    "refresh_metadata.epoch_started dropped",
    "refresh_metadata.epoch_started bound +1",
)
kip_320_mended.more(
    "the consumer learns what it knows; where it was told UNKNOWN_LEADER_EPOCH, it asks the same leader again",
    "refresh_metadata.another_leader dropped",
)
kip_320_mended.same(
    "a replica that is no leader has no high watermark to read below",
    "consumer_fetch.presumes_leadership dropped",
    beside="below_high_watermark",
)
kip_320_mended.more(
    "a replica that leads nobody and is in a lower epoch says so, and the consumer refreshes its metadata",
    "answer_unknown_leader_epoch.presumes_leadership dropped",
)
kip_320_mended.more(
    "a replica that leads nobody has no high watermark and gives offset 0, where the consumer begins anew",
    "reset_to_latest.presumes_leadership dropped",
)
kip_320_mended.more(
    "a follower holds a prefix of its leader's log: by its answer the consumer goes back to the leader's answer, or"
    " further",
    "seek_to_nearest.presumes_leadership dropped",
)

# What a leader checks before it serves a fetch.

kip_320_mended.more(
    "a leader that is older than who served the position, and yet knows the consumer's epoch, holds all that was read"
    " (log matching), so the consumer goes on as one that read everything from it; who names no epoch has read nothing"
    " below its position",
    "consumer_fetch.epoch_known dropped",
    "consumer_fetch.epoch_known bound -1",
)
kip_320_mended.fewer(
    "a leader in the very epoch that the consumer has seen counts as too old",
    "consumer_fetch.epoch_known bound +1",
    "find_divergence.epoch_known bound +1",
    "seek_to_nearest.epoch_known bound -1",
)
kip_320_mended.same(
    "a leader that is in the epoch of the consumer's last record wrote that record itself, and its log only grew since",
    "consumer_fetch.not_truncated bound 1 +1",
    "answer_log_truncation.truncated bound 1 +1",
    "answer_out_of_range.not_truncated bound 1 +1",
)
kip_320_mended.same(
    "below start a log has no record of a larger epoch than the one asked",
    "consumer_fetch.not_truncated bound 4 +1",
    "answer_log_truncation.truncated bound 4 +1",
    "answer_out_of_range.not_truncated bound 4 +1",
    "find_divergence.reported_epoch' bound 2 +1",
    "seek_to_nearest.last_epoch' bound 2 +1",
)
kip_320_mended.fewer(
    "no consumer that names an epoch reads on from it into a later one",
    "consumer_fetch.not_truncated bound 2 +1",
)
kip_320_mended.fewer(
    "the leader looks for the consumer's epoch where that has not begun, or has ended, and serves nobody who names one",
    "consumer_fetch.not_truncated bound 3 +1",
    "consumer_fetch.not_truncated bound 5 +1",
)
kip_320_mended.fewer(
    "where the very next epoch follows in the log, the leader finds that and not the consumer's, and serves nothing;"
    " elsewhere start is the same",
    "consumer_fetch.not_truncated bound 3 -1",
)
kip_320_mended.fewer(
    "the leader looks one record too low: epochs only rise in a log, so it finds the consumer's epoch there only where"
    " it is above too, and misses one of a single record",
    "consumer_fetch.not_truncated bound 5 -1",
)

# What a leader answers instead.

kip_320_mended.same(
    "the leader that served the position in its present epoch has all below it, and knows the epoch: it finds no"
    " truncation, and nothing out of range",
    "answer_log_truncation.epoch_known bound +1",
    "answer_out_of_range.epoch_known bound +1",
)
kip_320_mended.more(
    "what a leader says of position and epoch is as true while the consumer waits for something else: it refreshes its"
    " metadata, or looks for the divergence, and asks again",
    "answer_unknown_leader_epoch.outcome_pending dropped",
    "answer_log_truncation.outcome_pending dropped",
)
kip_320_mended.stutters(
    "a consumer that is out of range is told so again; any other that is would name no epoch, and loses nothing by it",
    "answer_out_of_range.outcome_pending dropped",
)
kip_320_mended.same(
    "an older leader does not know the consumer's epoch, so to it a position beyond its log is truncated before it is"
    " out of range; and who names no epoch may be told so by anybody",
    "answer_out_of_range.epoch_known dropped",
    "answer_out_of_range.epoch_known bound -1",
    beside="not_truncated",
)
kip_320_mended.same(
    "start is not beyond the log's end, and the position is: where an epoch is named, that alone makes a truncation",
    "answer_out_of_range.not_truncated bound 2 +1",
    "answer_out_of_range.not_truncated bound 3 +1",
    "answer_out_of_range.not_truncated bound 3 -1",
    "answer_out_of_range.not_truncated bound 4 -1",
    "answer_out_of_range.not_truncated bound 5 +1",
    "answer_out_of_range.not_truncated bound 5 -1",
    beside="beyond_leo",
)

# Where the consumer goes on after a truncation, or from a stored offset.

kip_320_mended.more(
    "whoever asks for the divergence without having been told of one gets the same answer, and loses nothing by going"
    " on from it",
    "find_divergence.outcome_pending dropped",
)
kip_320_mended.other(
    "at an offset that is only a bound the consumer begins anew, so it costs no promise there whether it names the"
    " epoch found, or none",
    "find_divergence.reported_epoch' bound 1 +1",
    "find_divergence.reported_epoch' bound 1 -1",
    "find_divergence.reported_epoch' bound 2 -1",
    "seek_to_nearest.last_epoch' bound 1 +1",
    "seek_to_nearest.last_epoch' bound 1 -1",
    "seek_to_nearest.last_epoch' bound 2 -1",
)
kip_320_mended.same(
    "an offset is reported while the outcome is that a divergence was found, and only then",
    "reset_to_divergence.divergence_found dropped",
    beside="offset_reported",
)
kip_320_mended.same(
    "a divergence that was found has an offset",
    "reset_to_divergence.offset_reported dropped",
    beside="divergence_found",
)
kip_320_mended.same(
    "the answer to OffsetForLeaderEpoch has no larger epoch than the one asked",
    "reset_to_divergence.consumed_from' bound 1 +1",
    "seek_to_nearest.consumed_from' bound 1 +1",
)
kip_320_mended.same(
    "no divergence is reported beyond the position",
    "reset_to_divergence.consumed_from' bound 2 +1",
)
kip_320_mended.other(
    "a consumer that could go on unbroken counts as having begun anew, and less is promised to it",
    "reset_to_divergence.consumed_from' bound 2 -1",
)
kip_320_mended.other(
    "the consumer goes back to where its epoch begins, not to where that ends, and begins anew there",
    "seek_to_nearest.position' bound 2 +1",
)

# What the application does.

kip_320_mended.other(
    "a commit is given up that could have stayed: there is one offset less to restart from",
    "reset_to_divergence.committed' bound -1",
    "seek.committed' bound -1",
    "reset_to_latest.committed' bound -1",
    "seek_to_nearest.committed' bound -1",
)
kip_320_mended.more(
    "the application may seek to any offset, at any time: nothing is promised below it",
    "seek.has_metadata dropped",
    "seek.elsewhere dropped",
)
kip_320_mended.fewer(
    "there is no seek to just before, or just behind, the position",
    "seek.elsewhere bound +1",
    "seek.elsewhere bound -1",
)
kip_320_mended.more(
    "a consumer that has a valid offset begins anew at the high watermark, as by a seek",
    "reset_to_latest.needs_offset dropped",
    "reset_to_latest.needs_offset bound 1 +1",
)
kip_320_mended.same(
    "no consumer has begun beyond its position",
    "reset_to_latest.needs_offset bound 1 -1",
)
kip_320_mended.fewer(
    "there is no reset to the offset just before, or just behind, the position",
    "reset_to_latest.needs_offset bound 2 +1",
    "reset_to_latest.needs_offset bound 2 -1",
)
kip_320_mended.more(
    "what was read was read, whatever became of the next fetch",
    "commit_offset.fetching dropped",
)
kip_320_mended.more(
    "the same offset is committed again, with the epochs that go with it now",
    "commit_offset.not_committed dropped",
)
kip_320_mended.same(
    "no committed offset is beyond the position",
    "commit_offset.not_committed bound +1",
    "restart.elsewhere bound +1",
)
kip_320_mended.fewer(
    "nobody commits one record more than is committed",
    "commit_offset.not_committed bound -1",
)
kip_320_mended.more(
    "a consumer restarts where it is, with the epochs that it committed there",
    "restart.elsewhere dropped",
)
kip_320_mended.fewer(
    "no restart rereads a single record",
    "restart.elsewhere bound -1",
)
