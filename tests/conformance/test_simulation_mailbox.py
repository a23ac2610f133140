"""Messages in flight: which one an event means, what is lost with a node, and power that goes in mid-event."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fencepost.conformance.protocols.fencing.template_simulation import Fetch, Produce, Record, TemplateFree
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.mailbox import MAX_ALIKE, Letter, Mailbox
from fencepost.conformance.simulation.system import SimulatedSystem

CONSTANTS = {"replicas": 2, "log_size": 3, "max_records": 3, "max_leader_epoch": 3}
FETCH = Event(EventKind.DELIVER, "Fetch", 0, 1)


def fetches(mail: Mailbox, *ends: int) -> list[Letter]:
    """Fetches of broker 1 from broker 0."""
    return [mail.send(1, 0, Fetch(0, end)) for end in ends]


@pytest.fixture
def mail() -> Mailbox:
    """Messages that stand for a fetch."""
    return Mailbox(lambda _: [("follower_fetch", {"leader": 0})])


def test_alike_messages_are_numbered_from_the_oldest(mail: Mailbox) -> None:
    fetches(mail, 1, 2)
    mail.send(1, None, Produce(7))
    events = [each.event for each in mail.pending()]
    assert events == [FETCH, Event(EventKind.DELIVER, "Fetch", 0, 1, 1), Event(EventKind.DELIVER, "Produce", None, 1)]
    assert mail.take(events[1]).body == Fetch(0, 2)
    assert [each.event for each in mail.pending()] == [events[0], events[2]]


def test_a_copy_leaves_the_message_in_flight(mail: Mailbox) -> None:
    (letter,) = fetches(mail, 1)
    assert mail.take(Event(EventKind.REPEAT, "Fetch", 0, 1)) is letter
    assert mail.take(Event(EventKind.LOSE, "Fetch", 0, 1)) is letter
    with pytest.raises(KeyError):
        mail.take(FETCH)


def test_of_too_many_alike_the_oldest_is_lost(mail: Mailbox) -> None:
    fetches(mail, *range(MAX_ALIKE + 1))
    assert [letter.body.end for letter in mail.in_flight.values()] == [1, 2, 3, 4]


def test_an_answer_stands_for_what_its_request_does_and_is_judged(mail: Mailbox) -> None:
    (letter,) = fetches(mail, 1)

    def answer() -> None:
        mail.answer(letter, Produce(1), "FENCED_REPLICA")

    sent, judged, lost = mail.during(FETCH, answer)
    assert [(each.source, each.destination, each.answers, each.steps) for each in sent] == [
        (0, 1, letter.number, (("follower_fetch", {"leader": 0}),))
    ]
    assert [(each.error, each.message) for each in judged] == [("FENCED_REPLICA", letter.number)]
    assert not lost


@pytest.mark.parametrize("after", range(4))
def test_power_is_lost_after_so_many_effects(mail: Mailbox, after: int) -> None:
    done: list[int] = []

    def act() -> None:
        for number in range(3):
            mail.effect()
            done.append(number)

    assert mail.during(FETCH.crashing(after), act)[2]
    assert done == list(range(after))
    mail.effect()


def leading() -> TemplateFree:
    """Broker 0 leads, broker 1 has been told to follow."""
    system = TemplateFree()
    system.reset(CONSTANTS, 1)
    system.step(Event(EventKind.OPERATE, "elect", args=(("broker", 0),)))
    system.step(Event(EventKind.DELIVER, "LeaderAndIsr", 0))
    system.step(Event(EventKind.DELIVER, "LeaderAndIsr", 1))
    return system


def flying(system: TemplateFree) -> list[tuple[str, int | None]]:
    """The messages in flight, each with its receiver."""
    return [(letter.name, letter.destination) for letter in system.mail.in_flight.values()]


def test_the_template_is_a_free_system() -> None:
    system: SimulatedSystem = leading()
    assert system.observe()["leader[0]"] == 0
    system.close()


def test_what_is_on_its_way_to_a_node_that_crashes_is_lost_and_what_it_sent_is_not() -> None:
    system = leading()
    assert ("EpochQuery", 0) in flying(system) and ("Heard", None) in flying(system)
    happened = system.step(Event(EventKind.CRASH, node=0, args=(("seed", 0),)))
    assert happened.crashed == {0} and "leo[0]" not in system.observe()
    assert ("EpochQuery", 0) not in flying(system) and ("Heard", None) in flying(system)
    assert Event(EventKind.START, node=0) in [each.event for each in system.pending()]
    assert system.step(Event(EventKind.START, node=0)).started == {0}
    assert system.observe()["leader[0]"] is None and system.observe()["leader_epoch[0]"] == 0


def test_who_is_cut_off_neither_hears_nor_is_heard() -> None:
    system = leading()
    system.step(Event(EventKind.CUT, node=1))
    assert ("EpochQuery", 0) not in flying(system)
    system.step(Event(EventKind.TIMER, "fetch", 1))
    assert ("EpochQuery", 0) not in flying(system)
    system.step(Event(EventKind.HEAL, node=1))
    system.step(Event(EventKind.TIMER, "fetch", 1))
    assert ("EpochQuery", 0) in flying(system)


def produced(crash: int) -> tuple[Record, ...]:
    """The log of a leader that lost its power in the midst of taking a record, and came back."""
    system = leading()
    system.step(Event(EventKind.CALL, "produce", args=(("broker", 0),)))
    assert system.step(Event(EventKind.DELIVER, "Produce", 0, crash=crash)).crashed == {0}
    system.step(Event(EventKind.START, node=0))
    return system.brokers[0].log


def test_what_is_synced_survives_and_what_is_not_written_does_not() -> None:
    """A write and a sync: without the sync, chance decides."""
    assert produced(0) == ()
    assert produced(1) in ((), (Record(0, 0),))
    assert produced(2) == produced(9) == (Record(0, 0),)


def played(seed: int, choose: Callable[[int], int]) -> list[object]:
    """What is seen over a run of 300 events, each chosen among so many."""
    system = TemplateFree()
    system.reset(CONSTANTS, seed)
    seen: list[object] = []
    for _ in range(300):
        pending = system.pending()
        system.step(pending[choose(len(pending))].event)
        seen.append(system.observe())
    return seen


def test_the_same_seed_and_events_lead_to_the_same_answers() -> None:
    def every_seventh() -> Callable[[int], int]:
        numbers = iter(range(0, 10_000, 7))
        return lambda size: next(numbers) % size

    assert played(3, every_seventh()) == played(3, every_seventh())


def test_a_timer_is_due_in_peace_alone() -> None:
    """Nobody has a clock here. Were every timer due, the draw would ask for them before all else."""
    system = TemplateFree()
    system.reset({"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}, 0)

    def due() -> set[bool]:
        return {each.due for each in system.pending() if each.event.what is EventKind.TIMER}

    assert due() == {False}
    system.peace(on=True)
    assert due() == {True}
    system.peace(on=False)
    assert due() == {False}
