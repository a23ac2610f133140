"""Arguments for the mutants of ``fencing``'s ``kip-320`` that nobody kills."""

from __future__ import annotations

from ...mutants.arguments import Collected

kip_320 = Collected()

# The same steps: the guards beside it say as much.

kip_320.same(
    "a request that was not sent names no leader",
    "become_leader.request_sent dropped",
    "become_leader.request_sent bound +1",
    beside="names_leader",
)
kip_320.same(
    "a leader that is in the request's epoch has nothing newer to take up",
    "become_follower.not_leader_itself dropped",
    beside="leader_epoch_matches",
)
kip_320.same(
    "a request that was not sent names no leader, and no replica is in its epoch",
    "become_follower.request_sent dropped",
    "become_follower.request_sent bound +1",
    beside="names_leader leader_epoch_matches",
)
kip_320.same(
    "whoever presumes leadership in an epoch is the one that its request names",
    "become_follower.names_leader dropped",
    beside="leader_epoch_matches",
)
kip_320.same(
    "the replica that the request names is in its epoch only by having become its leader",
    "become_follower.presumes_leadership dropped",
    beside="leader_epoch_matches",
)
kip_320.same(
    "a replica follows only a leader of its epoch, and the epochs are equal",
    "follower_fetch.presumes_leadership dropped",
    beside="follows_leader",
)
kip_320.same(
    "an epoch has one leader, and whoever is in it follows that one",
    "follower_fetch.follows_leader dropped",
    "leader_expand_isr.follows_leader dropped",
    beside="epoch_not_fenced",
)
kip_320.same(
    "the leader is in the ISR that its followers know, and does not follow them",
    "leader_inc_high_watermark.presumes_leadership dropped",
    beside="isr_acknowledges",
)
kip_320.same(
    "the leader is in the ISR that it knows, and must have the record itself",
    "leader_inc_high_watermark.record_above_hw dropped",
    "leader_inc_high_watermark.record_above_hw bound +1",
    beside="isr_acknowledges",
)
kip_320.same(
    "a leader is caught up with itself",
    "leader_shrink_isr.not_leader_itself dropped",
    beside="not_caught_up",
)

# The same steps: what the bound would let in cannot be.

kip_320.same(
    "no offset at which two logs agree is above either's end",
    "become_follower.truncates_backward dropped",
    "become_follower.truncates_backward bound 1 +1",
)
kip_320.same(
    "beyond its end a log holds no record, so it agrees there with no record of the other",
    "become_follower.truncates_backward bound 2 +1",
    "become_follower.truncates_backward bound 3 +1",
)
kip_320.same(
    "a follower is in no later epoch than the leader that it follows",
    "follower_fetch.epoch_not_fenced bound +1",
    "leader_inc_high_watermark.isr_acknowledges bound 2 +1",
    "leader_shrink_isr.not_caught_up bound 1 +1",
    "leader_expand_isr.epoch_not_fenced bound +1",
)
kip_320.same(
    "no replica is in a later epoch than the controller",
    "leader_shrink_isr.true_leader bound +1",
    "leader_expand_isr.true_leader bound +1",
)
kip_320.same(
    "no high watermark is above its leader's end, nor has a log a record of a later epoch than its leader's",
    "leader_expand_isr.hw_reached_epoch bound 1 +1",
    "leader_expand_isr.hw_reached_epoch bound 3 +1",
)
kip_320.same(
    "at the end of its log a leader has no record, and that its high watermark is there suffices by itself",
    "leader_expand_isr.hw_reached_epoch bound 2 +1",
)

# Steps that change nothing.

kip_320.stutters(
    "a replica that is not in the ISR is taken out of it",
    "leader_shrink_isr.in_isr dropped",
)
kip_320.stutters(
    "a replica that is in the ISR is taken into it",
    "leader_expand_isr.outside_isr dropped",
)
kip_320.stutters(
    "a follower takes up the request of its own epoch again: its log is a prefix of its leader's, so nothing is cut",
    "become_follower.epoch_newer bound +1",
)

# More runs.

kip_320.more(
    "the leader is elected again, in a new epoch",
    "controller_elect_leader.not_leader_yet dropped",
)
kip_320.more(
    "a new epoch that changes nothing else",
    "controller_shrink_isr.leads_or_in_isr dropped",
)
kip_320.more(
    "the leader takes out a follower that has everything, which it may do with any that stands still; whoever is left"
    " has the committed records",
    "leader_shrink_isr.not_caught_up dropped",
    "leader_shrink_isr.not_caught_up bound 2 -1",
)
kip_320.more(
    "who leads two epochs in a row loses nothing between them: its log only grows. A follower that takes up the"
    " earlier request when the leader is in the later epoch, or the later one when it is in the earlier, truncates to"
    " what they have in common all the same, and is fenced until the epochs are equal",
    "become_follower.leader_epoch_matches bound +1",
    "become_follower.leader_epoch_matches bound -1",
)
kip_320.more(
    "a follower one epoch behind the leader that it follows had the same leader in that epoch, for it follows the"
    " leader of its own; the leader's log only grew since, so the follower's is still a prefix of it",
    "follower_fetch.epoch_not_fenced bound -1",
    "leader_inc_high_watermark.isr_acknowledges bound 2 -1",
    "leader_expand_isr.epoch_not_fenced bound -1",
)

# Fewer runs, in which liveness lacks nothing either.

kip_320.fewer(
    "the controller takes nobody out of the ISR in the last epoch: the bound is the model's own",
    "controller_shrink_isr.epoch_available bound -1",
)
kip_320.fewer(
    "the leader keeps followers in the ISR that it could take out: one that lags by one record, or that is one epoch"
    " behind and has them all",
    "leader_shrink_isr.not_caught_up bound 2 +1",
    "leader_shrink_isr.not_caught_up bound 1 -1",
)
kip_320.fewer(
    "a follower must be one record beyond the high watermark to come into the ISR; what is promised does not ask that"
    " any does",
    "leader_expand_isr.reached_high_watermark bound -1",
)
kip_320.fewer(
    "where only one record is above the high watermark, the leader waits with the ISR until it is committed",
    "leader_expand_isr.hw_reached_epoch bound 2 -1",
)
