"""Arguments for those mutants of ``compaction``'s ``kip-280-safe`` that nobody kills and of which z3 shows nothing."""

from __future__ import annotations

from ...mutants.arguments import Collected

kip_280_safe = Collected()

# The same steps.

kip_280_safe.same(
    "the ISR is never empty, and nobody in it follows where nobody leads",
    "leader_inc_high_watermark.has_leader dropped",
    beside="isr_has_it",
)
kip_280_safe.same(
    "the last record of a log is retained, so that logs which end at the high watermark have the same one there",
    "set_topic_strategy.logs_are_alike bound 2 +1",
)
kip_280_safe.same(
    "what lies right before the tombstone is below the checkpoint, too: were it of its key, one of the two would be"
    " gone. Another replica's counts from this one's end on alone, which is past both",
    "remove_tombstone.cleaned_in_time bound 1 -1",
    "remove_tombstone.cleaned_in_time bound 10 -1",
)

# More runs.

kip_280_safe.more(
    "whoever has not cut its log back is given records past its end, which are the leader's. Where it follows, it cuts"
    " its log where the first epoch began that it has missed, whatever it was given. Nobody counts on it until then:"
    " it is not elected, and no high watermark rises by it",
    "follower_fetch.follows_leader dropped",
    "follower_fetch.follows_leader bound -1",
)
kip_280_safe.more(
    "a value that is no long is from before the strategy was set: the producer's edge refuses it since. A tombstone"
    " that beats it and is clean while it is not lies before it, and is from before, too. Once that is gone nobody has"
    " it, and it counts no more, as what it beats does not",
    "remove_tombstone.cleaned_in_time bound 6 +1",
)
kip_280_safe.more(
    "the consumer has what it reads again, or something that beats it: it keeps tombstones as well",
    "consumer_fetch.not_read dropped",
)
