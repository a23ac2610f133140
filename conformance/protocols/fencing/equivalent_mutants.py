"""Arguments for those mutants of ``fencing``'s ``kip-320`` that nobody kills and of which z3 shows nothing."""

from __future__ import annotations

from ...mutants.arguments import Collected

kip_320 = Collected()

# The same steps: the guards beside it say as much, by what no lemma needs to say.

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
    "the leader is in the ISR that it and its followers know: it must lead, and have the record itself",
    "leader_inc_high_watermark.presumes_leadership dropped",
    "leader_inc_high_watermark.record_above_hw dropped",
    "leader_inc_high_watermark.record_above_hw bound +1",
    beside="isr_acknowledges",
)

# More runs.

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
