"""Arguments for those mutants of ``tiering``'s ``kip-1023-safe`` that nobody kills and of which z3 shows nothing."""

from __future__ import annotations

from ...mutants.arguments import Collected

kip_1023_safe = Collected()

# The same steps.

kip_1023_safe.same(
    "a leader's local log begins at or below its high watermark, and each of the ISR has what is committed",
    "disable_tiering.isr_reaches_start dropped",
    "disable_tiering.isr_reaches_start bound +1",
)
kip_1023_safe.same(
    "what lies below the leader's local log start is in a segment that is finished, or below the log start. So there"
    " is one that covers what an unfinished copy has right behind the end of another",
    "find_highest_remote_offset.log_start_is_committed bound 12 +1",
)

# More runs.

kip_1023_safe.more(
    "a leader that looks again finds what it has uploaded since, or what others of its lineage have",
    "find_highest_remote_offset.not_looked dropped",
)
kip_1023_safe.more(
    "it uploads from its log start on, once more where others have. It can where it has all of that on its disk",
    "start_copy.has_looked dropped",
)
kip_1023_safe.more(
    "whose log ends below where that of another begins on disk lacks what was committed: it is in no ISR, or an unclean"
    " election has made it the leader of less. It ends with an empty log, of which nothing can be wrong. Who follows it"
    " or is followed by it compares nothing in it, and it joins the ISR when it has fetched",
    "truncate_fully.follows_leader dropped",
    "truncate_fully.follows_leader bound +1",
    "truncate_fully.follows_leader bound -1",
    "start_at_local_start.follows_leader dropped",
    "start_at_local_start.follows_leader bound +1",
    "start_at_local_start.follows_leader bound -1",
    "start_at_log_start.follows_leader dropped",
    "start_at_log_start.follows_leader bound +1",
    "start_at_log_start.follows_leader bound -1",
)
kip_1023_safe.more(
    "it is outside the ISR, and ends with an empty log that begins where a deposed leader's does. That one's log begins"
    " there as well when it follows",
    "copy_anew.follows_leader bound -1",
)

# Other runs.

kip_1023_safe.other(
    "the leader takes the highest offset on remote for lower than it is, or finds none. From its log start to its local"
    " log start all is on remote, as without that, and from there on it has all on its disk. It uploads once more what"
    " it has there, and nothing where it has not",
    "find_highest_remote_offset.log_start_is_committed bound 5 -1",
    "find_highest_remote_offset.log_start_is_committed bound 6 -1",
    "find_highest_remote_offset.log_start_is_committed bound 7 -1",
    "find_highest_remote_offset.log_start_is_committed bound 8 -1",
)
