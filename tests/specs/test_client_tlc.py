"""TLC on ``specs/Kip320Client.tla``: from drawn states the graph itself, edge for edge; by night the counts."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.model.core.ground import State, System, ground
from fencepost.model.explore import Query, explore
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.truncation import truncation
from fencepost.model.protocols.truncation.state import Asking, Awaited, Outcome

from .cfgs import cfg_text
from .drawn import draw, edges_of_python, edges_of_tlc, named_in
from .modules import SPECS
from .tlc import Tlc, thorough

pytestmark = pytest.mark.asked("tlc", "truncation")

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
    cell = {each.name: state[each.number] for each in system.layout.cells}
    replicas, offsets = range(system.constants["replicas"]), range(system.constants["log_size"])

    def records(name: str, place: str = "") -> dict[int, Any]:
        return {o: {"id": cell[f"{name}_id{place}[{o}]"], "epoch": cell[f"{name}_epoch{place}[{o}]"]} for o in offsets}

    def named(**names: str) -> dict[str, int]:
        return {tla: cell[ours] for tla, ours in names.items()}

    def commit(name: str) -> dict[str, int]:
        return named(offset=name, epoch=f"{name}_epoch", seen=f"{name}_seen")

    return {
        "nextRecordId": cell["next_record_id"],
        "elections": [
            {"leader": cell[f"epoch_leader[{epoch}]"], "unclean": cell[f"epoch_unclean[{epoch}]"]}
            for epoch in range(cell["quorum_leader_epoch"] + 1)
        ],
        "replicaLog": {
            r: named(start=f"log_start[{r}]", end=f"leo[{r}]") | {"records": records("record", f"[{r}]")}
            for r in replicas
        },
        "replicaState": {
            r: named(hw=f"hw[{r}]", leaderEpoch=f"leader_epoch[{r}]", leading=f"leading[{r}]") for r in replicas
        },
        "metadata": named(leader="metadata_leader", epoch="metadata_epoch"),
        "consumer": {
            **named(placed="placed", position="position", lastEpoch="last_epoch", seenEpoch="seen_epoch"),
            **named(consumedFrom="consumed_from", known="known"),
            "consumed": records("consumed"),
        },
        "pending": {"awaited": Awaited.names[cell["awaited"]], "asking": Asking.names[cell["asking"]]},
        "fetched": named(end="fetched_end", seen="fetched_seen") | {"records": records("fetched")},
        "answer": {
            "outcome": Outcome.names[cell["outcome"]],
            **named(answeredEpoch="answered_epoch", reported="reported", reportedEpoch="reported_epoch", told="told"),
        },
        "committed": commit("committed"),
        "acknowledged": commit("acknowledged"),
        "refused": commit("refused"),
        "foundAgain": cell["found_again"],
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
    assert edges_of_tlc(tlc, "Kip320Client", cfg_text(DRAWN), system, states, told) == ours
    for dropped in ("delete_records.committed", "fetch_record.of_one_answer"):
        mutant = at(DRAWN, dropped)
        assert edges_of_python(mutant, states, told) != ours, f"the comparison would see {dropped} gone"


@thorough
def test_the_cfg_of_the_promises_holds(tlc: Tlc) -> None:
    """With as many steps, those that change nothing among them, as the Python protocol takes."""
    run = tlc.run(CLIENT, SPECS / "Kip320Client-1110.cfg")
    answer = explore(Query.of(at(LEAST)))
    assert (run.violated, run.distinct, run.depth) == (None, answer.distinct, answer.depth) == (None, 1144224, 34)
    assert f"{sum(answer.transitions.values()) + 1} states generated" in run.output
