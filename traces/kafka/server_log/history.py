"""What was printed of a partition by all of its nodes: how far the model has words for it, and what is to be watched.

Only some offsets are watched: an end of a log is then the number of those below it. A run of real brokers, looked at
so, is a run of the model (``kafka/abstraction.py`` says why), if those are among them on which a guard looks that
counts what is *not* there: where a log was cut, and what a replica lacked that a leader would have out of the ISR.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .entries import (
    Appends,
    Asks,
    Decides,
    Entry,
    Follows,
    Hears,
    Leads,
    Learns,
    Loads,
    Raises,
    Restarts,
    Truncates,
)
from .lines import Printed

MAX_EPOCHS: Final = 60
"""What came in later leader epochs is left out."""
MAX_REPLICAS: Final = 7
MAX_WATCHED: Final = 24
"""So many offsets are watched at most, beside the last."""
CONTROLLER: Final = -1


@dataclass(frozen=True)
class History:
    """A partition, with all that was printed of it as long as the model has words for it.

    ``replicas``: broker ids, in the order of the model's. ``ended``: why nothing is reported of what came later, if so.
    ``cut``: of whom something later was printed; CONTROLLER, too. By whose clock that is later is not asked: whoever
    waits for what was left out waits for one of these (``order.py``).
    """

    name: str
    replicas: tuple[int, ...]
    decided: tuple[Entry, ...]
    printed: Mapping[int, Sequence[Entry]]
    ended: str | None = None
    cut: frozenset[int] = frozenset()

    def before(self, end: int, why: str) -> History:
        """The same up to a time."""
        decided = tuple(each for each in self.decided if each.at < end)
        printed = {node: [each for each in log if each.at < end] for node, log in self.printed.items()}
        cut = {node for node, log in printed.items() if len(log) < len(self.printed[node])}
        cut |= {CONTROLLER} if len(decided) < len(self.decided) else set()
        return History(self.name, self.replicas, decided, printed, why, self.cut | cut)


class NoHistoryError(Exception):
    """Why a partition's history cannot be reported from its beginning."""


def history_of(printed: Printed, name: str) -> History:
    """A partition's history. Raises NoHistoryError where it does not begin with the partition's creation."""
    decided = [entry for _, entry in sorted(printed.decided.get(name, {}).items())]
    first = decision(decided[0]) if decided else None
    if first is None or not first.created or first.replicas is None or first.isr is None:
        raise NoHistoryError("no controller's log tells of its creation")
    if first.isr != first.replicas or first.leader not in first.replicas:
        raise NoHistoryError("it was created with a leader or an ISR that is not of all replicas")
    if len(first.replicas) > MAX_REPLICAS:
        raise NoHistoryError(f"it has more than {MAX_REPLICAS} replicas")
    missing = sorted(first.replicas - printed.nodes.keys())
    if missing:
        raise NoHistoryError(f"there is no log of broker {missing[0]}, which has a replica")
    silent = sorted(node for node in first.replicas if not printed.nodes[node].get(name))
    if silent:
        raise NoHistoryError(f"the log of broker {silent[0]}, which has a replica, says nothing of it")
    logs = {node: printed.nodes[node][name] for node in first.replicas}
    found = History(name, tuple(sorted(first.replicas)), tuple(decided), logs)
    ends = [
        each
        for each in (
            _undecided(found, first.replicas),
            *(_beyond(node, logs[node]) for node in found.replicas),
            *(_unordered(printed, node, name) for node in found.replicas),
        )
        if each
    ]
    end = min(ends, default=None)
    return found if end is None else found.before(*end)


def _undecided(history: History, replicas: frozenset[int]) -> tuple[int, str] | None:
    """When the controller first decided what the model has no step for, and what that was."""
    for place, (entry, state, said) in enumerate(quorum_states(history)):
        last = history.decided[place]
        why = _unsupported(state, decision(last), said, replicas)
        if why is not None:
            later = (decision(each) for each in history.decided[place + 1 :] if each is not entry)
            unclean = next((each for each in later if each.unclean), None)
            if unclean is not None and not said.unclean:
                why += f"; it elects broker {unclean.leader} uncleanly in partition epoch {unclean.version}"
            missing = said.version != decision(last).version + 1
            return (last.at + 1 if missing else entry.at), why
    return None


def _unordered(printed: Printed, node: int, name: str) -> tuple[int, str] | None:
    """When two files of a broker first have lines whose order is unknown."""
    at = printed.unordered.get((node, name))
    why = f"two files of broker {node} have lines of one millisecond, and their order is unknown"
    return None if at is None else (at, why)


def _beyond(node: int, log: Sequence[Entry]) -> tuple[int, str] | None:
    """When a broker first did what the model has no step for, and what that was."""
    found = _first_beyond(log)
    return None if found is None else (found[0], f"broker {node} {found[1]}")


def _first_beyond(log: Sequence[Entry]) -> tuple[int, str] | None:
    epoch, led, up, resumed = -1, False, True, False
    for entry in log:
        match entry.said:
            case Restarts():
                return entry.at, "threw its log away, and began anew at its leader's log start"
            case Leads(epoch=new) | Follows(epoch=new) if new > MAX_EPOCHS:
                return entry.at, f"is in leader epoch {new}"
            case Loads():
                up = False
            case Leads(epoch=new):
                resumed = not up and led and new == epoch
                epoch, led, up = new, True, True
            case Follows(epoch=epoch):
                led, up, resumed = False, True, False
            case Appends() | Raises() if resumed:
                return entry.at, f"was started again, and went on in leader epoch {epoch}, in which it had led"
            case _:
                pass
    return None


def decision(entry: Entry) -> Decides:
    """What the controller has decided, of an entry of ``History.decided``."""
    assert isinstance(entry.said, Decides)
    return entry.said


@dataclass(frozen=True)
class Quorum:
    """The controller's leader (-1: nobody) and ISR."""

    leader: int
    isr: frozenset[int]

    def after(self, said: Decides) -> Quorum:
        """The same after a record."""
        return Quorum(self.leader if said.leader is None else said.leader, self.isr if said.isr is None else said.isr)

    def step(self, said: Decides) -> tuple[str, dict[str, int]] | None:
        """The step that a record is, by broker ids; None where the model has none."""
        after = self.after(said)
        lost = self.isr - after.isr
        if after.leader not in (-1, *after.isr):
            return None
        if said.epoch is None:
            granted = self.leader != -1 and (said.altered or (after.isr < self.isr and self.leader in after.isr))
            return ("controller_grant_isr", {"leader": self.leader}) if granted else None
        if not after.isr <= self.isr or len(lost) > 1:
            return None
        gone = next(iter(lost), None)
        if after.leader == self.leader == -1:
            return None
        if after.leader == -1:
            return ("controller_shrink_isr", {"replica": self.leader}) if gone in (None, self.leader) else None
        if after.leader == self.leader:
            return None if gone is None else ("controller_shrink_isr", {"replica": gone})
        if gone is None:
            return "controller_elect_leader", {"new_leader": after.leader}
        if gone == self.leader:
            return "controller_fail_over", {"failed": gone, "new_leader": after.leader}
        return None


def _unsupported(state: Quorum, before: Decides, said: Decides, replicas: frozenset[int]) -> str | None:
    """Why the model has no step for a record of the controller's."""
    what = f"in partition epoch {said.version} the controller"
    if said.version != before.version + 1:
        return f"what the controller decided in partition epoch {before.version + 1} is in no file"
    if said.replicas is not None or not (said.isr or frozenset()) <= replicas:
        return f"{what} gives it other replicas"
    if said.epoch is not None and said.epoch > MAX_EPOCHS:
        return f"{what} begins leader epoch {said.epoch}"
    if said.unclean:
        return f"{what} elects broker {said.leader} uncleanly: the ISR was {sorted(state.isr)}"
    if said.isr == frozenset():
        return f"{what} leaves the ISR empty, as it does with eligible leader replicas"
    if (said.epoch is None and said.isr is None) or state.step(said) is not None:
        return None
    after = state.after(said)
    if not after.isr <= state.isr or after.leader not in (-1, *state.isr):
        return f"{what} elects a leader uncleanly, or changes the ISR by itself"
    changed = f"{sorted(after.isr)} in place of {sorted(state.isr)}"
    return f"{what} has the ISR {changed}, which is no step of the model"


# -- which offsets are watched --------------------------------------------------------------------------------------


def watched_of(history: History) -> tuple[list[int], History]:
    """The offsets that are watched, ascending, and the history up to where there would be more than there may be.

    Those at which logs were cut, and at which replicas lagged that were to leave the ISR; the first and the last.
    """
    found = {0}
    for at, offset in sorted({*_parted(history), *_fenced(history)}):
        if offset not in found and len(found) == MAX_WATCHED:
            return sorted(found), history.before(at, f"logs differ at more than {MAX_WATCHED} offsets")
        found.add(offset)
    ends = [each.said.end for log in history.printed.values() for each in log if isinstance(each.said, Appends)]
    return sorted({*found, max(0, *ends) - 1} - {-1} if ends else found), history


def _parted(history: History) -> Iterator[tuple[int, int]]:
    for log in history.printed.values():
        end, isr = 0, frozenset[int]()
        heard: dict[int, int] = {}
        for entry in log:
            match entry.said:
                case Leads(end=end, isr=isr):
                    heard = {}
                case Appends(end=end) | Follows(end=end):
                    pass
                case Learns(isr=isr):
                    pass
                case Hears(replica=replica, end=reported):
                    heard[replica] = reported
                case Asks(isr=asked):
                    for each in sorted(isr - asked):
                        yield entry.at, max(0, heard.get(each, 0))
                case Truncates(end=cut) if cut < end:
                    yield entry.at, cut
                    end = cut
                case _:
                    pass


def _fenced(history: History) -> Iterator[tuple[int, int]]:
    """Where those were, for their leader, whom the controller has taken out of the ISR by itself."""
    for entry, state, said in quorum_states(history):
        if said.epoch is None and said.isr is not None and not said.altered:
            log = [each for each in history.printed.get(state.leader, ()) if each.at <= entry.at]
            for lost in sorted(state.isr - said.isr):
                reported = [each.said.end for each in log if isinstance(each.said, Hears) and each.said.replica == lost]
                if reported and reported[-1] >= 0:
                    yield entry.at, reported[-1]


def quorum_states(history: History) -> Iterator[tuple[Entry, Quorum, Decides]]:
    """The controller's decisions but the first, each with what held before."""
    first = decision(history.decided[0])
    state = Quorum(-1 if first.leader is None else first.leader, first.isr or frozenset())
    for entry in history.decided[1:]:
        yield entry, state, decision(entry)
        state = state.after(decision(entry))
