"""The simulated network does every fault that it is asked for, counts it, and does the same again for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from fencepost.impl.net import (
    BudgetExceeded,
    Clock,
    Faults,
    LoopbackHost,
    NetworkError,
    RealClock,
    SimulatedClock,
    SimulatedNetwork,
    Transport,
)
from fencepost.impl.net.clock import WALL_START
from fencepost.impl.wire.messages import Envelope, MetadataRequest, TopicPartition

BODY = MetadataRequest(TopicPartition("t", 0))
BAD = Faults(latency=(1, 20), loss=0.1, duplication=0.1)


def message(source: int, destination: int, correlation: int = 0) -> Envelope:
    return Envelope(source, destination, correlation, BODY)


class Node:
    """Keeps what it receives and when it was woken; answers while the correlation id is above 0."""

    def __init__(self, address: int, transport: Transport, clock: Clock, period: int | None = None) -> None:
        self.address = address
        self.got: list[int] = []
        self.woken: list[int] = []
        self.next = period
        self._transport = transport
        self._clock = clock
        self._period = period

    def receive(self, envelope: Envelope) -> None:
        self.got.append(envelope.correlation)
        if envelope.correlation > 0:
            self._transport.send(message(self.address, envelope.source, envelope.correlation - 1))

    def deadline(self) -> int | None:
        return self.next

    def wake(self) -> None:
        self.woken.append(self._clock.now())
        assert self._period is not None and self.next is not None
        self.next += self._period
        self._transport.send(message(self.address, (self.address + 1) % 3, 4))


def network(seed: int = 0, faults: Faults | None = None, period: int | None = None) -> SimulatedNetwork:
    """Three nodes, 0 to 2."""
    net = SimulatedNetwork(seed, faults=faults)
    for address in range(3):
        net.attach(Node(address, net, net.clock.at(address), period))
    return net


def node(net: SimulatedNetwork | LoopbackHost, address: int) -> Node:
    found = net.endpoint(address)
    assert isinstance(found, Node)
    return found


def settled(net: SimulatedNetwork) -> bool:
    """Every message and copy has ended in exactly one way, or is on its way."""
    counts = net.counts
    ended = counts.delivered + counts.lost + counts.cut + counts.undeliverable + counts.dropped
    return counts.sent + counts.duplicated == ended + len(net.in_flight())


# -- free running ------------------------------------------------------------------------------------------------------


def history(seed: int) -> list[tuple[str, int, Envelope]]:
    told: list[tuple[str, int, Envelope]] = []
    net = network(seed, BAD, period=7)
    net.observer = lambda *happening: told.append(happening)
    net.run(until=1000)
    assert settled(net)
    return told


def test_the_same_seed_gives_the_same_history_and_another_one_another() -> None:
    """Fails where any fault is drawn from ``random`` itself, or none from the seed."""
    assert len(history(1)) > 1000
    assert history(1) == history(1)
    assert history(1) != history(2)


def test_every_fault_happens_and_is_counted() -> None:
    """Fails where a rate is ignored, or a copy or loss is not counted."""
    net = network(5, BAD, period=7)
    seen: dict[str, int] = {}

    def observer(what: str, _now: int, _envelope: Envelope) -> None:
        seen[what] = seen.get(what, 0) + 1

    net.observer = observer
    net.run(until=5000)
    counts = net.counts
    assert 0.08 < counts.lost / counts.sent < 0.12 and 0.08 < counts.duplicated / counts.sent < 0.12
    assert counts.reordered > 0.1 * counts.delivered
    assert counts.woken == sum(len(node(net, address).woken) for address in range(3)) == 3 * (5000 // 7)
    assert seen == {name: getattr(counts, name) for name in ("sent", "lost", "duplicated", "delivered")}
    assert settled(net)


def test_a_network_without_faults_loses_nothing_and_keeps_the_order() -> None:
    net = network()
    for number in range(100):
        net.send(message(0, 1, -number))
    net.run()
    assert node(net, 1).got == [-number for number in range(100)]
    assert (net.counts.delivered, net.counts.reordered, net.counts.lost, net.counts.duplicated) == (100, 0, 0, 0)


def test_time_passes_to_each_arrival_and_deadline_in_their_order() -> None:
    net = network(3, Faults(latency=(5, 9)), period=10)
    sent: dict[int, int] = {}
    times: list[int] = []

    def observer(what: str, now: int, envelope: Envelope) -> None:
        times.append(now)
        if what == "sent":
            sent[id(envelope)] = now
            kept.append(envelope)
        else:
            latencies.add(now - sent[id(envelope)])

    kept: list[Envelope] = []
    latencies: set[int] = set()
    net.observer = observer
    net.run(until=200)
    assert times == sorted(times) and net.clock.now() == 200
    assert latencies == {5, 6, 7, 8, 9}
    assert node(net, 0).woken == list(range(10, 201, 10))


@pytest.mark.parametrize(("latency", "first"), [(9, "delivered"), (10, "delivered"), (11, "sent")])
@pytest.mark.parametrize("late", [0, 30])
def test_a_message_comes_before_a_deadline_of_the_same_moment(latency: int, first: str, late: int) -> None:
    """Also where the clock was moved beyond both: then they come late, but in their order."""
    net = network(faults=Faults((latency, latency)), period=10)
    net.send(message(0, 1))
    net.clock.advance(late)
    order: list[tuple[str, int]] = []
    net.observer = lambda what, now, _: order.append((what, now))
    assert net.step() and order == [(first, late or min(latency, 10))]


def test_time_passes_where_nothing_happens() -> None:
    net = network()
    assert net.run(until=500) == 0 and net.clock.now() == 500


def test_a_deadline_that_a_message_sets_is_met() -> None:
    class Later(Node):
        def receive(self, envelope: Envelope) -> None:
            self.next = self._clock.now() + 40

    net = network()
    net.detach(1)
    net.attach(late := Later(1, net, net.clock, period=1000))
    late.next = None
    net.refresh()
    net.send(message(0, 1))
    net.run(until=50)
    assert late.woken == [41]


def test_a_run_ends_at_its_condition_and_says_why_it_cannot() -> None:
    net = network()
    net.send(message(0, 1, 9))
    assert net.run(until=lambda: len(node(net, 1).got) == 3) == 5
    assert net.run(until=lambda: True) == 0
    with pytest.raises(
        BudgetExceeded, match=r"simulation at 10 ms: nothing is left to happen and the condition fails; "
    ):
        net.run(until=lambda: False)
    assert not net.step()
    endless = network(period=1)
    with pytest.raises(BudgetExceeded, match=r"not done after 500 events, with .* messages on their way; .* raise the"):
        endless.run(budget=500)


def test_a_deadline_that_an_outside_call_sets_is_met() -> None:
    net = network()
    lazy = node(net, 2)
    lazy.next = 40
    lazy._period = 1000
    net.run(until=100)
    assert lazy.woken == [40]


# -- partitions and endpoints that are down ----------------------------------------------------------------------------

PAIRS = [(a, b) for a in range(3) for b in range(3) if a != b]


def arriving(net: SimulatedNetwork) -> set[tuple[int, int]]:
    """Between whom a message gets through now."""
    through = set()
    for source, destination in PAIRS:
        before = len(node(net, destination).got)
        net.send(message(source, destination))
        net.run()
        if len(node(net, destination).got) > before:
            through.add((source, destination))
    return through


@pytest.mark.parametrize(
    ("part", "lost"),
    [
        (lambda net: net.cut(0, 1), {(0, 1), (1, 0)}),
        (lambda net: net.cut(0, 1, both=False), {(0, 1)}),
        (lambda net: net.isolate(2), {(0, 2), (1, 2), (2, 0), (2, 1)}),
        (lambda net: net.isolate(2, incoming=False), {(2, 0), (2, 1)}),
        (lambda net: net.isolate(2, outgoing=False), {(0, 2), (1, 2)}),
    ],
)
def test_partitions_lose_what_they_part_and_nothing_else(
    part: Callable[[SimulatedNetwork], None], lost: set[tuple[int, int]]
) -> None:
    net = network()
    assert arriving(net) == set(PAIRS)
    part(net)
    assert arriving(net) == set(PAIRS) - lost
    assert net.counts.cut == len(lost) and settled(net)
    net.heal()
    assert arriving(net) == set(PAIRS)


def test_healing_one_endpoint_leaves_other_partitions() -> None:
    net = network()
    net.cut(0, 1)
    net.isolate(2)
    net.heal(2)
    assert arriving(net) == set(PAIRS) - {(0, 1), (1, 0)}
    net.isolate(2)
    net.heal(0)
    assert arriving(net) == {(0, 1), (1, 0)}


def test_a_partition_also_loses_what_was_on_its_way_but_no_endpoint_from_itself() -> None:
    net = network()
    net.send(message(0, 1))
    net.isolate(1)
    net.send(message(1, 1, -5))
    net.run()
    assert node(net, 1).got == [-5] and net.counts.cut == 1


def test_what_was_sent_into_a_partition_is_lost_though_it_heals_in_time() -> None:
    net = network()
    net.cut(0, 1)
    net.send(message(0, 1))
    net.heal()
    net.run()
    assert node(net, 1).got == [] and net.counts.cut == 1


def test_messages_to_an_endpoint_that_is_down_vanish_and_it_is_not_woken() -> None:
    net = network(period=10)
    old = net.detach(1)
    assert isinstance(old, Node) and not net.is_up(1)
    net.send(message(0, 1))
    net.run(until=25)
    assert (net.counts.undeliverable, old.got, old.woken) == (3, [], [])  # two are from the deadlines of node 0


def test_a_message_reaches_the_next_endpoint_at_its_address() -> None:
    net = network()
    net.send(message(0, 1, -7))
    net.detach(1)
    net.attach(Node(1, net, net.clock))
    net.run()
    assert node(net, 1).got == [-7]


def test_an_address_has_one_endpoint() -> None:
    net = network()
    with pytest.raises(NetworkError, match="address 1: an endpoint is up here; detach it first"):
        net.attach(Node(1, net, net.clock))
    net.detach(1)
    with pytest.raises(NetworkError, match="address 1: no endpoint is up here; attach one first"):
        net.detach(1)


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_a_harness_says_which_message_goes_next() -> None:
    net = network()
    for number in range(5):
        net.send(message(0, 1, -number))
    zero, one, two, three, four = net.in_flight()
    assert [flight.envelope.correlation for flight in net.in_flight()] == [0, -1, -2, -3, -4]
    assert net.deliver(three) and net.deliver(one)
    net.drop(two)
    net.hold(four)
    copy = net.duplicate(zero)
    assert node(net, 1).got == [-3, -1] and net.clock.now() == 0
    assert net.in_flight() == [zero, four, copy] and net.in_flight(destination=0) == net.in_flight(source=1) == []
    net.run()
    assert node(net, 1).got == [-3, -1, 0, 0] and net.in_flight(source=0, destination=1) == [four]
    net.clock.advance_to(90)
    net.release(four)
    net.run()
    assert node(net, 1).got[-1] == -4 and net.clock.now() == 90
    assert (net.counts.dropped, net.counts.duplicated, net.counts.reordered) == (1, 1, 3) and settled(net)


def test_a_message_that_is_kept_can_be_delivered_late_twice_or_never() -> None:
    net = network()
    net.hold_if = lambda envelope: envelope.destination == 2
    net.send(message(0, 2))
    net.send(message(0, 1))
    (held,) = net.in_flight(destination=2)
    net.run()
    assert (node(net, 1).got, node(net, 2).got, net.in_flight()) == ([0], [], [held])
    assert net.deliver(held, keep=True) and net.deliver(held, keep=True)
    assert node(net, 2).got == [0, 0] and net.in_flight() == [held]
    net.drop(held)
    assert net.in_flight() == [] and settled(net)
    net.send(message(0, 1, -1))  # nothing held this one before
    net.deliver(net.in_flight()[0], keep=True)
    net.run()
    assert node(net, 1).got == [0, -1] and len(net.in_flight()) == 1


def test_by_hand_too_a_partition_and_an_endpoint_that_is_down_lose_messages() -> None:
    net = network()
    net.send(message(0, 1))
    net.send(message(0, 2))
    net.detach(1)
    net.isolate(2)
    assert [net.deliver(flight) for flight in net.in_flight()] == [False, False]
    assert (net.counts.undeliverable, net.counts.cut) == (1, 1) and settled(net)


def test_a_handle_serves_once() -> None:
    net = network()
    net.send(message(0, 1))
    (flight,) = net.in_flight()
    net.deliver(flight)
    for use in (net.deliver, net.drop, net.duplicate, net.hold, net.release):
        with pytest.raises(
            NetworkError, match=r"message 0 from 0 to 1: no longer on its way; take one of in_flight\(\)"
        ):
            use(flight)


def test_an_exchange_is_a_request_and_its_own_answer() -> None:
    class Answering(Node):
        def receive(self, envelope: Envelope) -> None:
            self._transport.send(message(1, 0, envelope.correlation + 1))  # other business with the same node
            self._transport.send(message(1, 0, envelope.correlation))

    net = network()
    net.detach(1)
    net.attach(Answering(1, net, net.clock))
    net.send(message(0, 1, -8))
    net.send(message(0, 2, -9))
    first, second = net.in_flight()
    assert net.exchange(first) == message(1, 0, -8)
    assert node(net, 0).got == [-8]
    assert net.exchange(second) is None  # it keeps silent
    assert [flight.envelope.correlation for flight in net.in_flight()] == [-7]
    net.send(message(0, 1, -6))
    net.isolate(1)
    assert net.exchange(net.in_flight()[-1]) is None and net.counts.cut == 1


def test_random_handling_accounts_for_every_message() -> None:
    for seed in range(30):
        chance = random.Random(seed)
        net = network(seed, BAD, period=50)
        for _ in range(200):
            flights = net.in_flight()
            use = chance.choice((net.deliver, net.drop, net.duplicate, net.hold, net.release))
            match chance.randrange(6):
                case 0:
                    net.send(message(*chance.choice(PAIRS), chance.randrange(4)))
                case 1:
                    net.step()
                case 2:
                    net.isolate(chance.randrange(3), incoming=chance.random() < 0.5)
                case 3:
                    net.heal()
                case _ if flights:
                    use(chance.choice(flights))
            assert settled(net)


def test_what_went_by_hand_leaves_nothing_behind() -> None:
    net = network()
    for _ in range(5000):
        net.send(message(0, 1))
        net.deliver(net.in_flight()[0])
    assert len(net._heap) < 200


def test_faults_that_cannot_be_are_refused() -> None:
    for latency in ((-1, 3), (5, 4)):
        with pytest.raises(ValueError, match="is no range from 0 on"):
            Faults(latency=latency)
    for rate in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"faults: loss .* is no share"):
            Faults(loss=rate)
        with pytest.raises(ValueError, match=r"faults: duplication .* is no share"):
            Faults(duplication=rate)
    Faults(latency=(0, 0), loss=1, duplication=1)


# -- clocks and real time ----------------------------------------------------------------------------------------------


def test_skew_moves_an_endpoints_time_of_day_and_nothing_else() -> None:
    clock = SimulatedClock()
    here, there = clock.at(1), clock.at(2)
    clock.advance(100)
    clock.set_skew(1, -40)
    assert (here.wall(), there.wall(), clock.wall()) == (WALL_START + 60, WALL_START + 100, WALL_START + 100)
    assert here.now() == there.now() == clock.now() == 100
    clock.advance_to(50)
    with pytest.raises(ValueError, match="-1 ms would go back"):
        clock.advance(-1)
    assert clock.now() == 100


def test_the_same_nodes_run_in_real_time() -> None:
    host = LoopbackHost()
    assert isinstance(host.clock, RealClock)
    for address in range(3):
        host.attach(Node(address, host, host.clock))
    for number in range(10):
        host.send(message(0, 1, -number))
    host.send(message(0, 1, 5))
    host.send(message(0, 9))  # nobody is there
    host.run(lambda: 0 in node(host, 0).got, timeout=5000)
    assert node(host, 1).got == [0, -1, -2, -3, -4, -5, -6, -7, -8, -9, 5, 3, 1]
    assert 0 < host.clock.wall() - WALL_START


def test_the_loopback_host_sleeps_to_the_next_deadline_and_gives_up_in_time() -> None:
    clock = SimulatedClock()
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        clock.advance(round(seconds * 1000) or 1)

    host = LoopbackHost(clock, sleep=sleep)
    host.attach(Node(0, host, clock, period=30))
    host.run(lambda: len(node(host, 0).woken) == 2, timeout=100)
    assert node(host, 0).woken == [30, 60] and naps == [0.03, 0.03]
    host.detach(0)
    with pytest.raises(BudgetExceeded, match="not done after 120 ms, with 0 messages on their way"):
        host.run(lambda: False, timeout=120)
    assert clock.now() == 180 and max(naps) == 0.05
