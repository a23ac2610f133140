"""TLC on ``specs/Kip320Client.tla``: from drawn states the graph itself, edge for edge; by night the counts."""

from __future__ import annotations

from typing import Any

from fencepost.model.core.ground import State, System, ground
from fencepost.model.explore import Query, explore
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.truncation import truncation
from fencepost.model.protocols.truncation.state import Asking, Awaited

from .cfgs import whole_cfg
from .clients import Cells
from .drawn import draw, edges_of_python, edges_of_tlc, named_in
from .tlc import Tlc, thorough

CLIENT = "kip-320-client"
LEAST = (1, 1, 1, 0)
DRAWN = (2, 2, 3, 2)
SELDOM = frozenset(
    {
        *("seek_to", "ask_for", "restart_consumer", "give_up", "elect_nobody", "elect_member", "elect_outsider"),
        *("replica_restarts", "begin_log_at", "truncate_log", "delete_records"),
    }
)
"""What undoes what others have come to."""
IMPLIED = {"take_up.epoch_started", "learn_leader.epoch_started", "follower_copy.follows", "fetch_record.leads"}
"""Guards that never refuse alone."""
RARE = {
    f"{action}.{guard}"
    for action in ("fetch_record", "end_fetch", "refuse_truncated", "refuse_out_of_range", "learn_divergence")
    for guard in ("epoch_known", "not_truncated")
}
"""Guards that alone refuse some of these actions at places so seldom that a draw may not come to each."""
HALF_ANSWERED: tuple[tuple[str, dict[str, int]], ...] = (
    ("elect_member", {"new_leader": 0}),
    ("take_up", {"replica": 0, "epoch": 0}),
    ("leader_append", {"leader": 0}),
    ("elect_outsider", {"new_leader": 1}),
    ("take_up", {"replica": 1, "epoch": 1}),
    ("leader_append", {"leader": 1}),
    ("leader_append", {"leader": 1}),
    ("raise_high_watermark", {"leader": 0, "offset": 1}),
    ("raise_high_watermark", {"leader": 1, "offset": 2}),
    ("seek_to", {"offset": 0}),
    ("send", {"request": Awaited.fetch}),
    ("fetch_record", {"leader": 0}),
)
"""To where an answer has begun, and another leader could go on: no draw comes there."""


def at(constants: tuple[int, ...], *dropped: str) -> System:
    return ground(truncation.traced(CLIENT).drop(*dropped), dict(zip(truncation.constants, constants, strict=True)))


def told(system: System, state: State) -> dict[str, Any]:
    """A state by the variables of the module."""
    cells = Cells(system, state)
    return {
        **cells.partition(),
        "metadata": cells.named(leader="metadata_leader", epoch="metadata_epoch"),
        "consumer": {
            **cells.named(placed="placed", position="position", lastEpoch="last_epoch", seenEpoch="seen_epoch"),
            **cells.named(consumedFrom="consumed_from", known="known"),
            "consumed": cells.records("consumed"),
        },
        "pending": {
            "awaited": Awaited.names[cells.of["awaited"]],
            "asking": Asking.names[cells.of["asking"]],
            "fetched": cells.named(end="fetched_end", seen="fetched_seen") | {"records": cells.records("fetched")},
        },
    }


def test_from_drawn_states_the_steps_are_those_of_the_python_protocol(tlc: Tlc) -> None:
    """And each guard, but for few, alone refuses a step of these states: without it there would be another edge."""
    system, sample = at(DRAWN), draw(at(DRAWN), 320, 2000, 15, SELDOM)
    assert named_in(system) - sample.told <= IMPLIED | RARE | {"fetch_record.of_one_answer"}
    reference = Reference(system)
    walked = system.initial
    for action, params in HALF_ANSWERED:
        after = reference.step(walked, action, tuple(params.items()))
        assert after is not None, action
        walked = after
    states = (*sample.states, walked)
    ours = edges_of_python(system, states, told)
    assert edges_of_tlc(tlc, system, states, told) == ours
    for dropped in ("delete_records.committed", "fetch_record.of_one_answer"):
        mutant = at(DRAWN, dropped)
        assert edges_of_python(mutant, states, told) != ours, f"the comparison would see {dropped} gone"


@thorough
def test_the_cfg_of_the_promises_holds(tlc: Tlc) -> None:
    """With as many steps, those that change nothing among them, as the Python protocol takes."""
    run = tlc.run("Kip320Client", whole_cfg(truncation, CLIENT, "1/1/1/0"))
    answer = explore(Query.of(at(LEAST)))
    assert (run.violated, run.distinct, run.depth) == (None, answer.distinct, answer.depth) == (None, 1144224, 34)
    assert f"{sum(answer.transitions.values()) + 1} states generated" in run.output
