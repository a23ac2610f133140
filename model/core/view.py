"""How a protocol's state is laid out where a person reads it: which variables make up a log, who talks to whom.

A view is data beside the text. A protocol without one is shown by what its declarations say (``derived_view``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .domains import REPLICA
from .protocol import Protocol

CONTROLLER: Final = "@controller"
"""Where a ``Route`` names the controller instead of a parameter that holds a replica."""


@dataclass(frozen=True)
class Route:
    """How an action is drawn between lanes.

    ``source`` and ``target`` name parameters that hold a replica, or are ``CONTROLLER``; with no target the
    action is a dot on its source. ``sent`` is the cell that holds the message, with parameters in braces, as
    in ``request_leader[{epoch}]``: the arrow then starts at the step that last wrote that cell. ``consults`` is
    one more lane that is read on the way (a truncating follower reads its leader's epochs): a dashed arrow.
    """

    source: str
    target: str | None = None
    sent: str | None = None
    consults: str | None = None


@dataclass(frozen=True)
class LogView:
    """Which variables make up a replica's log and its state, so that every protocol shares one page.

    All are names of variables. Per replica and offset: ``record_id`` and ``record_epoch``. Per replica: ``start``
    (the first offset kept; None means 0), ``end`` (LEO, exclusive), ``high_watermark``, ``leader`` and ``epoch``
    (whom the replica follows, in which leader epoch; itself means it presumes leadership), and ``fields``, shown
    as they are. Scalars: ``controller``, with its leader in ``controller_leader`` and its epoch in
    ``controller_epoch``. ``per_epoch`` are messages by leader epoch, live below the scalar ``per_epoch_end``.
    ``labels`` gives variables a shorter name, ``routes`` says how each action is drawn.
    """

    end: str | None = None
    start: str | None = None
    record_id: str | None = None
    record_epoch: str | None = None
    high_watermark: str | None = None
    leader: str | None = None
    epoch: str | None = None
    fields: tuple[str, ...] = ()
    controller: tuple[str, ...] = ()
    controller_leader: str | None = None
    controller_epoch: str | None = None
    per_epoch: tuple[str, ...] = ()
    per_epoch_end: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    routes: Mapping[str, Route] = field(default_factory=dict)

    def label(self, variable: str) -> str:
        """What to call ``variable`` where a person reads it."""
        return self.labels.get(variable, variable)


def derived_view(protocol: Protocol, variant: str) -> LogView:
    """The layout of a protocol that has none of its own.

    A lane has what is indexed by a replica alone. An action is drawn from its first parameter that is a replica to its
    second one, as a dot where it has no second one, and not in a lane where it has none.
    """
    per_replica = [name for name, each in protocol.variables_of(variant).items() if each.per == (REPLICA,)]
    routes = {}
    for action in protocol.actions.values():
        who = [name for name, index in action.params.items() if index is REPLICA]
        if who:
            routes[action.name] = Route(who[0], who[1] if len(who) > 1 else None)
    return LogView(fields=tuple(per_replica), routes=routes)
