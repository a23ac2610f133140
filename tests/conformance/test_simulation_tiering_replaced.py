"""Brokers with tiered storage whose disk is replaced, or who are elected uncleanly with an empty log.

What was meant for the process before a replaced disk is lost with it.
"""

from __future__ import annotations

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.protocols.tiering.system import FreeTiering
from fencepost.conformance.simulation.divergence import Divergence
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.shrink import repeat

from .freely import Freely

BROKERS = Freely("tiering", FreeTiering)


class TakesLate(FreeTiering):
    """Whose brokers take requests that were meant for a process before, as nothing but a broker epoch keeps out."""

    def replace_disk(self, node: int) -> None:
        """Nothing that is on its way is lost."""
        self.store.replace(node)
        self._looks.forget(node)


def step(what: EventKind, name: str = "", node: int | None = None, source: int | None = None, **more: int) -> Event:
    """An event with arguments."""
    return Event(what, name, node, source, args=tuple(more.items()))


def hears(node: int, number: int = 0) -> Event:
    """A broker is told who leads."""
    return Event(EventKind.DELIVER, "LeaderAndIsr", node, None, number)


def test_a_broker_with_another_disk_leads_in_no_epoch_of_the_process_before() -> None:
    """Broker 0 led the metadata log. By a late request it would do so once more, and who follows would lose it all."""
    events = (
        step(EventKind.CUT, node=1),
        step(EventKind.OPERATE, "expire", broker=1),
        step(EventKind.OPERATE, "elect", broker=2),
        hears(2, 2),
        step(EventKind.SYNC, "work", 0),
        step(EventKind.CUT, node=0),
        step(EventKind.OPERATE, "expire", broker=0),
        step(EventKind.CUT, node=2),
        step(EventKind.OPERATE, "expire", broker=2),
        step(EventKind.CRASH, node=0, seed=2),
        step(EventKind.OPERATE, "replace", broker=0),
        step(EventKind.SYNC, "work", 2),
        Event(EventKind.LOSE, "LeaderAndIsr", 2, None, 2),
        step(EventKind.PEACE, asks=1),
    )

    def divergence(system: FreeTiering) -> Divergence | None:
        ran = repeat(system, BROKERS.ways("3/6/14/20"), 696476001, events)
        assert ran.divergence is not None or ran.events == events
        system.close()
        return ran.divergence

    assert divergence(FreeTiering()) is None
    found = divergence(TakesLate())
    assert found is not None and "stored[5] is 0 in the model, 1 in the implementation" in found.headline


def test_what_is_cut_before_an_unclean_leader_hears_of_its_election_is_lost_as_it_may_be() -> None:
    """Broker 2 is elected uncleanly. Broker 0, which is to lead in the epoch before, comes back with an empty disk."""
    elected = (
        step(EventKind.OPERATE, "elect", broker=1),
        step(EventKind.CRASH, node=2, seed=1),
        step(EventKind.START, node=2),
        *map(hears, (2, 0)),
        step(EventKind.OPERATE, "elect", broker=0),
        hears(2),
        step(EventKind.OPERATE, "register", broker=2),
        step(EventKind.CRASH, node=0, seed=1),
        *map(hears, (0, 0, 2)),
        step(EventKind.CUT, node=2),
        step(EventKind.OPERATE, "elect-unclean", broker=2),
        step(EventKind.HEAL, node=2),
    )
    follows = (
        step(EventKind.OPERATE, "expire", broker=0),
        step(EventKind.OPERATE, "replace", broker=0),
        step(EventKind.START, node=0),
        hears(2),
        step(EventKind.TIMER, "fetch", 2),
        hears(0),
        step(EventKind.DELIVER, "OffsetsForLeaderEpoch", 0, 2),
    )
    calm = step(EventKind.CALM, rounds=2)

    def ran(parts: Parts, *events: Event) -> tuple[Divergence | None, object, set[int]]:
        system = TakesLate(parts)
        run = repeat(system, BROKERS.ways("3/6/14/20"), 200860282, events)
        assert run.divergence is not None or run.events == events
        leo = system.observe()["leo[2]"]
        system.close()
        return run.divergence, leo, set(system.written.acknowledged)

    assert ran(Parts.of(), *elected, calm) == (None, 5, set(range(5)))
    assert ran(Parts.of(), *elected, *follows, calm) == (None, 0, set())
    keeps = "    def _become_leader(self, request: LeaderAndIsrRequest) -> None:\n"
    cuts = f"{keeps}        if len(request.isr) == 1:\n            self.log.truncate_to(0)\n"
    with patched(Patch("replica/partition.py", keeps, cuts)) as root:
        found, _, _ = ran(Parts.of(root), *elected, calm)
    assert found is not None and "the record that was acknowledged at offset 0 is not in it" in found.headline


@pytest.mark.xfail(strict=True, reason="a leader counts a copy that another has begun to delete")
def test_a_follower_begins_behind_what_was_deleted_by_who_was_elected_uncleanly() -> None:
    """Broker 1, empty, deletes the copies of earlier epochs. Broker 0, who made them, has all records, and leads again.

    Its highest remote offset is that of a copy which is being deleted: before the EPUO that it names nobody finds a
    segment, and the empty follower asks for ever.
    """
    unclean = {node: step(EventKind.OPERATE, "elect-unclean", broker=node) for node in (0, 1)}
    events = (
        hears(1),
        unclean[1],
        hears(1),
        hears(1),
        Event(EventKind.SYNC, "replicate"),
        step(EventKind.SYNC, "work", 1),
        unclean[0],
        unclean[1],
        step(EventKind.SYNC, "work", 0),
        unclean[0],
        step(EventKind.OPERATE, "delete-records", offset=1, to=0),
        step(EventKind.PEACE),
    )
    system = FreeTiering()
    ran = repeat(system, BROKERS.ways("3/10/14/20"), 4245501, events)
    system.close()
    assert ran.divergence is None
