"""The timers of a quorum node: what it wants to do later. ``impl.replica.timers`` keeps them."""

from __future__ import annotations

from ..replica.timers import Key

ELECTION: Key = ("election",)
"""No leader is heard of: stand for the next epoch, or (an observer) ask the next voter."""
FETCH: Key = ("fetch",)
"""A follower sends its next Fetch; whoever knows no leader and is an observer asks a voter."""
FETCH_SNAPSHOT: Key = ("fetch-snapshot",)
"""A follower sends its next FetchSnapshot."""
BEGIN_EPOCH: Key = ("begin-epoch",)
"""A leader tells the voters that do not fetch from it that it leads."""
ADVANCE_BEGIN: Key = ("advance-begin",)
"""A leader looks at whether its LBO can advance."""
GENERATE: Key = ("generate-snapshot",)
"""The state machine writes a snapshot."""
CLEAN: Key = ("clean-snapshots",)
"""Snapshots below LBO - 1 are deleted."""
