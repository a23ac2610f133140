"""States that explain what was seen of a run so far, each with its mail, and the paths of the model that lead on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ...model.core.ground import State
from ..lockstep.space import Call

Mail: TypeAlias = dict[int, tuple[State, ...]]
"""By the number of a message, the states in which it may have been sent."""


class Spent(Exception):
    """The budget of one event ran out: nothing can be said of the run any more."""


class Path(NamedTuple):
    """States of the model from before an event to after it, and the steps between them."""

    states: tuple[State, ...]
    calls: tuple[Call, ...]


@dataclass
class Candidate:
    """One state that explains everything so far, with the mail. ``last``: its path through the last event."""

    state: State
    mail: Mail
    last: Path


def path_to(parents: Mapping[State, tuple[State, Call] | None], state: State) -> Path:
    """The path from the first state to this one, by where each was come to from."""
    states, calls = [state], []
    while (parent := parents[state]) is not None:
        state, call = parent
        states.append(state)
        calls.append(call)
    return Path(tuple(reversed(states)), tuple(reversed(calls)))


def apart(threads: Sequence[Candidate]) -> list[Candidate]:
    """Those that differ in their state. Of one state the mail is put together: it may have been sent in any of them."""
    if len(threads) == 1:
        return list(threads)
    found: dict[State, Candidate] = {}
    for thread in threads:
        known = found.setdefault(thread.state, thread)
        if known is not thread and known.mail != thread.mail:
            both = known.mail | thread.mail
            for number in known.mail.keys() & thread.mail.keys():
                both[number] = tuple(dict.fromkeys((*known.mail[number], *thread.mail[number])))
            known.mail = both
    return list(found.values())
