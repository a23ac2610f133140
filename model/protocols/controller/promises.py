"""What ``controller`` promises in every state, and what some run of it must meet."""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA, Constants
from ..logs import OFFSET
from .image import broker_epoch, image_of, prefix_image, registers, same_image
from .state import NODE, PARTITION, Role, Run, controller, is_up, presumes_leadership


@controller.always
def snapshot_is_sufficient(k: Algebra, s: View) -> Value:
    """A snapshot is of stable records alone, and says what the log up to its end comes to."""

    def right(node: Value) -> Value:
        end = s.snapshot_end[node]
        said = same_image(k, image_of(s, "snapshot", node), prefix_image(k, s, end))
        return k.any(end == -1, k.all(end <= s.stable, said))

    return k.forall(NODE, right)


@controller.always
def state_is_of_stable_prefix(k: Algebra, s: View) -> Value:
    """What a standby has in memory is what the stable log comes to, as far as it has replayed it."""

    def right(node: Value) -> Value:
        applied = s.node_applied[node]
        same = same_image(k, image_of(s, "node", node), prefix_image(k, s, applied))
        return k.any(s.role[node] == Role.active, k.all(applied <= s.stable, same))

    return k.forall(NODE, right)


@controller.always
def view_is_of_stable_prefix(k: Algebra, s: View) -> Value:
    """A broker's metadata are what the stable log comes to, as far as it has replayed it, and never go back."""

    def right(broker: Value) -> Value:
        applied = s.view_applied[broker]
        same = same_image(k, image_of(s, "view", broker), prefix_image(k, s, applied))
        return k.all(applied <= s.stable, applied == s.view_reached[broker], same)

    return k.forall(REPLICA, right)


@controller.always
def active_state_is_at_end(k: Algebra, s: View) -> Value:
    """The controller that became active last has in memory what the whole log comes to."""

    def right(node: Value) -> Value:
        in_vain = s.node_epoch[node] < s.active_epoch
        same = same_image(k, image_of(s, "node", node), prefix_image(k, s, s.end))
        return k.any(s.role[node] != Role.active, in_vain, k.all(s.node_applied[node] == s.end, same))

    return k.forall(NODE, right)


@controller.always
def one_leader_per_controller_epoch(k: Algebra, s: View) -> Value:
    """No two nodes lead one controller epoch."""

    def both(one: Value, other: Value) -> Value:
        lead = k.all(s.role[one] != Role.standby, s.role[other] != Role.standby)
        return k.all(one < other, lead, s.node_epoch[one] == s.node_epoch[other])

    return k.forall(NODE, lambda a: k.forall(NODE, lambda b: k.negate(both(a, b))))


@controller.always
def fenced_broker_leads_nothing(k: Algebra, s: View) -> Value:
    """Whoever is fenced leads nothing, and is in no ISR of more than one, whatever of the log is kept."""

    def out(offset: Value, partition: Value, broker: Value) -> Value:
        isr = s.prefix_isr[offset, partition]
        unfenced = k.member(broker, s.prefix_unfenced[offset])
        outside = k.any(k.negate(k.member(broker, isr)), isr == k.only(broker))
        return k.any(unfenced, k.all(s.prefix_leader[offset, partition] != broker, outside))

    def all_out(offset: Value, partition: Value) -> Value:
        return k.forall(REPLICA, lambda b: out(offset, partition, b))

    return k.forall(OFFSET, lambda o: k.implies(o < s.end, k.forall(PARTITION, lambda p: all_out(o, p))))


@controller.always
def isr_is_never_empty(k: Algebra, s: View) -> Value:
    """A partition has a member in its ISR, and its leader is one, whatever of the log is kept."""

    def right(offset: Value, partition: Value) -> Value:
        isr, leader = s.prefix_isr[offset, partition], s.prefix_leader[offset, partition]
        led = k.any(leader == k.NONE, k.member(leader, isr))
        return k.any(s.prefix_leader_epoch[offset, partition] == -1, k.all(isr != k.EMPTY, led))

    return k.forall(OFFSET, lambda o: k.forall(PARTITION, lambda p: right(o, p)))


def _may_be_elected(k: Algebra, s: View, end: Value, partition: Value, broker: Value) -> Value:
    """In the state at an end the broker is in the ISR, or even leads, and is still the one that was registered there.

    Who has lost its logs has to register anew, and is fenced for that.
    """
    trusted = s.prefix_doubted[end - 1, partition] == 0
    leads = s.prefix_leader[end - 1, partition] == broker
    in_isr = k.ite(
        end == 0,
        k.all(k.c.bootstrapped == 1, k.member(broker, s.brokers)),
        k.all(k.member(broker, s.prefix_isr[end - 1, partition]), k.any(trusted, leads)),
    )
    runs = k.all(is_up(k, s, broker), s.own_epoch[broker] == broker_epoch(k, s, end, broker))
    return k.all(in_isr, k.any(s.run[broker] == Run.stopped, runs))


@controller.always
def acknowledged_is_kept(k: Algebra, s: View) -> Value:
    """What a producer was told all of the ISR have is at every broker that may be elected, however much is kept."""

    def has(end: Value, partition: Value, broker: Value) -> Value:
        elected = _may_be_elected(k, s, end, partition, broker)
        return k.implies(elected, s.data[broker, partition] == s.acknowledged[partition])

    def kept(end: Value, partition: Value) -> Value:
        return k.forall(REPLICA, lambda b: has(end, partition, b))

    def all_kept(partition: Value) -> Value:
        behind = k.forall(OFFSET, lambda o: k.implies(k.all(s.stable <= o + 1, o < s.end), kept(o + 1, partition)))
        return k.all(k.implies(s.stable == 0, kept(0, partition)), behind)

    return k.forall(PARTITION, lambda p: k.any(s.acknowledged[p] == -1, all_kept(p)))


@controller.always
def one_snapshot_in_the_making(k: Algebra, s: View) -> Value:
    """At most one node makes a snapshot."""

    def both(one: Value, other: Value) -> Value:
        return k.all(one < other, s.making[one] == 1, s.making[other] == 1)

    return k.forall(NODE, lambda a: k.forall(NODE, lambda b: k.negate(both(a, b))))


@controller.always
def broker_epoch_is_its_own(k: Algebra, s: View) -> Value:
    """The broker epoch that a broker was told is the offset of a registration of its own: no other gets it."""

    def own(broker: Value) -> Value:
        epoch = s.own_epoch[broker]
        return k.any(epoch == -1, registers(k, s, epoch, broker))

    return k.forall(REPLICA, own)


def _settled(c: Constants, records: int) -> bool:
    """There are brokers and topics at first, and room for so many records."""
    return c["bootstrapped"] == 1 and c["log_size"] >= records


def _fails_over(c: Constants) -> bool:
    return c["nodes"] > 1 and c["max_controller_epoch"] > 0


@controller.sometimes()
def change_pending(_k: Algebra, s: View) -> Value:
    """The active controller has a change in memory that is not stable."""
    return s.stable < s.end


@controller.sometimes(lambda c: _fails_over(c))
def deposed_has_more(k: Algebra, s: View) -> Value:
    """A controller that is deposed and has not heard of it has changes in memory that are gone."""
    return k.exists(NODE, lambda n: k.all(s.role[n] == Role.active, s.end < s.node_applied[n]))


@controller.sometimes(lambda c: _fails_over(c))
def leader_lacks_pending(_k: Algebra, s: View) -> Value:
    """Who was elected last lacks a record that may come back with the next one's election."""
    return s.leader_end < s.end


@controller.sometimes(lambda c: c["replicas"] > 1)
def views_differ(k: Algebra, s: View) -> Value:
    """Two brokers have metadata of different prefixes."""
    return k.exists(REPLICA, lambda a: k.exists(REPLICA, lambda b: s.view_applied[a] < s.view_applied[b]))


@controller.sometimes(lambda c: _settled(c, c["replicas"]))
def last_member_fenced(k: Algebra, s: View) -> Value:
    """The last member of an ISR is fenced, and stays in it."""

    def last(offset: Value, partition: Value, broker: Value) -> Value:
        fenced = k.negate(k.member(broker, s.prefix_unfenced[offset]))
        return k.all(fenced, s.prefix_isr[offset, partition] == k.only(broker))

    return k.exists(OFFSET, lambda o: k.exists(PARTITION, lambda p: k.exists(REPLICA, lambda b: last(o, p, b))))


@controller.sometimes(lambda c: _settled(c, 1))
def record_acknowledged(k: Algebra, s: View) -> Value:
    """A producer was told that all of the ISR have its record."""
    return k.exists(PARTITION, lambda p: s.acknowledged[p] != -1)


@controller.sometimes(lambda c: _settled(c, 1))
def broker_lost(k: Algebra, s: View) -> Value:
    """A broker has lost its logs, and a producer had been told that they have its record."""
    return k.all(
        k.exists(REPLICA, lambda b: s.run[b] == Run.lost), k.exists(PARTITION, lambda p: s.acknowledged[p] != -1)
    )


@controller.sometimes(lambda c: _settled(c, 1) and c["removals"] == 1)
def broker_shuts_down(k: Algebra, s: View) -> Value:
    """A broker is in controlled shutdown."""
    return k.exists(REPLICA, lambda b: s.run[b] == Run.stopping)


@controller.sometimes(lambda c: _settled(c, 2) and c["replicas"] > 1)
def member_is_to_join(k: Algebra, s: View) -> Value:
    """A leader has asked to take a broker into the ISR."""

    def joins(leader: Value, partition: Value) -> Value:
        member = s.proposed[leader, partition]
        return k.all(member != k.NONE, k.negate(k.member(member, s.view_isr[leader, partition])))

    return k.exists(REPLICA, lambda b: k.exists(PARTITION, lambda p: joins(b, p)))


@controller.sometimes(lambda c: _settled(c, 2) and c["replicas"] > 1)
def proposal_overtaken(k: Algebra, s: View) -> Value:
    """A leader waits for an answer, and is no leader any more by the log."""

    def overtaken(leader: Value, partition: Value, offset: Value) -> Value:
        asked = s.proposed[leader, partition] != k.NONE
        newer = s.view_leader_epoch[leader, partition] < s.prefix_leader_epoch[offset, partition]
        return k.all(asked, newer)

    def any_overtaken(partition: Value, offset: Value) -> Value:
        return k.exists(REPLICA, lambda b: overtaken(b, partition, offset))

    return k.exists(PARTITION, lambda p: k.exists(OFFSET, lambda o: any_overtaken(p, o)))


@controller.sometimes(lambda c: _settled(c, 3) and c["replicas"] > 1)
def two_presumed_leaders(k: Algebra, s: View) -> Value:
    """Two brokers presume that they lead one partition: one is fenced, and has not heard of it."""

    def both(one: Value, other: Value, partition: Value) -> Value:
        lead = k.all(presumes_leadership(k, s, one, partition), presumes_leadership(k, s, other, partition))
        return k.all(one != other, lead)

    def some(partition: Value) -> Value:
        return k.exists(REPLICA, lambda a: k.exists(REPLICA, lambda b: both(a, b, partition)))

    return k.exists(PARTITION, some)


@controller.sometimes(lambda c: c["snapshots"] == 1 and c["nodes"] > 1)
def snapshot_made(k: Algebra, s: View) -> Value:
    """A node has a snapshot of some records, and another one a state of more."""
    made = k.exists(NODE, lambda n: 0 < s.snapshot_end[n])
    return k.all(made, k.exists(NODE, lambda n: s.snapshot_end[n] < s.node_applied[n]))


@controller.sometimes(lambda c: c["snapshots"] == 1 and _fails_over(c))
def order_outlives_its_epoch(k: Algebra, s: View) -> Value:
    """An order to make a snapshot is on its way, and the controller that gave it is deposed."""
    return k.exists(NODE, lambda n: k.all(s.order_epoch[n] != -1, s.order_epoch[n] < s.newest_epoch))
