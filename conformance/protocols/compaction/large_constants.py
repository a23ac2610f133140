"""Where mutants of ``compaction`` break a promise only at constants at which its states are too many to compare.

Constants: replicas/log size/keys/timestamps/header values/repeated headers/leader epoch/changes/brokers' strategy/
consumers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...mutants.beyond import Beyond, beyond

_LOG: Final = "elect_leader become_follower leader_write follower_fetch leader_inc_high_watermark"
_ISR: Final = "leader_shrink_isr leader_expand_isr"
_CLEANER: Final = "roll_segment finish_cleaning remove_tombstone"

BEYOND: Final[Mapping[str, Beyond]] = {
    # What has been removed is fetched again, where an election has cut the log back to the hole.
    "follower_fetch.not_fetched bound +1": beyond("2/3/1/2/0/0/1/0/2/0", _LOG, _CLEANER, "remove_record"),
    # The next record of a follower is one that its tombstone beats.
    "remove_tombstone.cleaned_in_time bound 2 -1": beyond("2/3/2/2/0/0/0/0/2/0", _LOG, _CLEANER),
    "remove_tombstone.readers_in_time bound 1 +1": beyond(
        "1/3/1/1/0/0/0/0/0/1", _LOG, _CLEANER, "remove_record consumer_fetch"
    ),
    "remove_tombstone.readers_in_time bound 2 -1": beyond("2/3/1/1/0/0/1/0/0/0", _LOG, _CLEANER, _ISR, "remove_record"),
}
"""By mutant."""
