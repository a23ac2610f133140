"""Whether a run of the model bears out what nodes said in an event, and how they answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...model.core.ground import State
from ...traces.observe import encode
from ..lockstep.binding import Answer
from ..lockstep.faults import STORAGE_ERROR, TIMED_OUT
from ..lockstep.space import Call
from .candidate import Candidate, Path
from .system import Message, RequestOutcome, SenderClaim
from .transitions import Party, Transitions


@dataclass(frozen=True)
class Half:
    """A message that has arrived in an event, as the steps of the model whose half its arrival may be."""

    message: Message
    calls: tuple[Call, ...]

    @property
    def is_request(self) -> bool:
        """Whether it answers nothing."""
        return self.message.answers is None


class ResponseMatch:
    """Of the systems of a binding at some constants."""

    def __init__(self, ways: Transitions) -> None:
        self._ways = ways
        self._cells = ways.system.layout.cells
        self._by_name = ways.system.layout.by_name

    def said_in(self, path: Path, message: Message) -> Sequence[State]:
        """The states of a path in which a message may have been sent, by what it says."""
        if not message.says:
            return path.states
        return [state for state in path.states if all(self.is_so(state, each) for each in message.says)]

    def is_so(self, state: State, said: SenderClaim) -> bool:
        numbers = [self._by_name[name] for name in said.cells]
        try:
            value = encode(self._cells[numbers[0]], said.value)
        except ValueError:
            return False  # no state has that
        return max(state[number] for number in numbers) == value

    def sights(self, thread: Candidate, states: Iterable[State], judged: RequestOutcome, call: Call) -> Iterator[State]:
        """What whoever decided may have gone by."""
        exchange = self._ways.binding.actions[call[0]].exchange
        for state in states:
            asker: Party = None if exchange is None else self._ways.side(exchange.asker, call, state)
            if judged.message is None or asker is None:
                yield state
            else:
                for then in thread.mail.get(judged.message, (state,)):
                    yield self._ways.as_of(state, then, asker)

    def _answers(
        self, thread: Candidate, path: Path, judged: RequestOutcome, calls: Sequence[Call]
    ) -> Iterator[Answer | None]:
        """What the binding has for each way in which a request may have been decided; None where the model does it."""
        for call in calls:
            for sight in dict.fromkeys(self.sights(thread, path.states, judged, call)):
                guards = self._ways.space.refusing(sight, call)
                yield self._ways.answer(sight, call, guards) if guards else None

    def fits(self, thread: Candidate, path: Path, judged: RequestOutcome, calls: Sequence[Call]) -> bool:
        """Whether a path explains an answer."""
        if judged.error in (TIMED_OUT, STORAGE_ERROR):
            return True
        for answer in self._answers(thread, path, judged, calls):
            if answer is None:
                if judged.error is None and self._done(path, calls):
                    return True
            elif not answer.drawn or judged.error in answer.errors:
                return True
        return not calls

    def _done(self, path: Path, calls: Sequence[Call]) -> bool:
        """Whether what was answered without an error has happened, where that is promised."""
        promised = [call for call in calls if self._ways.binding.actions[call[0]].promised]
        return not promised or any(call in path.calls for call in promised)
