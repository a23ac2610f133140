"""At which constants ``tiering`` is checked.

They are replicas/log size/leader epoch/last tiered offset/unclean/transactions/switches/expires.
"""

from __future__ import annotations

from typing import Final

from ...plan import Plan

_ONE_LEADER: Final = "1/1/0/1/0/0/0/0"
_TWO_EPOCHS: Final = "2/2/1/1/0/0/0/1"

PLAN: Final = Plan(
    at="2/2/1/1/0/1/0/1",
    # Twelve hundred obligations, in half a minute: ``fencepost prove tiering`` asks them.
    proves=False,
    liveness="2/1/1/1/1/0/0/1",
    # At 2/2/1/1/1/0/0/0, where brokers are driven, too.
    holds={"up-to-gap": "2/1/1/1/1/0/0/0"},
    # Each at the smallest constants at which it breaks.
    breaks={
        "kip-1023": "2/1/1/1/0/0/0/1",
        "jump-unknown": "2/1/1/1/0/0/0/0",
        "below-log-start": "2/2/0/1/0/0/0/1",
        "epochs-to-local-start": "2/2/1/1/0/0/0/0",
        "flag-ignored": "2/1/0/0/0/0/0/0",
        "jump-with-data": "2/2/0/1/0/0/0/0",
        "offsets-first": "2/1/0/1/0/0/0/0",
        "keeps-uncompared": "2/1/2/1/0/0/0/1",
        "short-checkpoint": _TWO_EPOCHS,
        "upload-past-stable": "1/1/0/1/0/1/0/0",
        "upload-past-hw": _ONE_LEADER,
        "deposed-segment": "2/1/1/1/1/0/0/0",
        "deletes-uncommitted": _ONE_LEADER,
        "keeps-highest": "2/1/2/1/1/0/0/0",
        "highest-alone": _TWO_EPOCHS,
        "first-on-remote": _TWO_EPOCHS,
        "deposed-deletes": "2/1/1/1/0/0/0/1",
        "disabled-under-isr": "2/2/0/1/0/0/1/0",
        "disabled-at-leader": "3/1/1/1/0/0/1/0",
    },
    rungs=(
        "2/1/1/1/0/0/0/1",
        "2/2/0/1/0/0/0/1",
        "2/1/1/1/1/0/1/1",
        "2/2/0/0/0/0/0/1",
        "1/1/0/1/0/1/0/0",
        "2/1/2/1/1/0/0/0",
        "2/1/2/0/1/0/0/0",
        "2/1/2/1/0/0/0/1",
        "2/2/1/0/1/0/0/0",
        "3/1/1/1/0/0/0/0",
        "2/2/1/1/0/0/0/1",
        "2/2/1/0/0/0/0/1",
        "3/1/1/1/0/0/1/0",
        "3/1/1/0/1/0/1/1",
        "3/1/1/1/1/0/1/1",
    ),
    # Brokers, offsets, leader epochs, copies: of ``impl_spec.py``.
    free=("3/10/14/20", "2/8/14/16", "3/6/14/20"),
    # Of ``up-to-gap``: brokers have no transactions, and nothing expires, or is switched off, where they are driven.
    stepped="2/2/1/1/1/0/0/0",
    # ``fencepost conform --protocol tiering`` does, in a minute or two.
    followed=False,
)
"""Of KIP-1023."""
