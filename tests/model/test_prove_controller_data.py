"""Why what was acknowledged is kept: the lemmas of partitions' data along a run that a broker's logs do not survive."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from fencepost.model.explore import Verdict
from fencepost.model.protocols.controller.proof import kip_631
from fencepost.model.prove.finite import Concrete
from fencepost.model.prove.proof import Proof
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import prove

SAFE = kip_631.protocol.traced()
DATA = {name for name, lemma in kip_631.lemmas.items() if lemma.layer == 1}
AT = {**dict.fromkeys(kip_631.protocol.constants, 1), "replicas": 2, "log_size": 10, "max_controller_epoch": 0}


def story() -> Iterator[tuple[str, dict[str, int]]]:
    """A record is acknowledged; its leader loses its logs, is fenced, comes back, follows, joins the ISR, and leads."""

    def replays(broker: int, records: int) -> Iterator[tuple[str, dict[str, int]]]:
        return (("replay_metadata", {"broker": broker}) for _ in range(records))

    def appended(action: str, **params: int) -> Iterator[tuple[str, dict[str, int]]]:
        yield action, {"node": 0, **params}
        yield "commit", {"node": 0}

    yield "elect_controller", {"node": 0, "kept": 0}
    yield "activate", {"node": 0}
    for broker in (0, 1):
        yield from appended("register_broker", broker=broker)
        yield "hear_registration", {"broker": broker}
    yield from (*replays(0, 2), *replays(1, 2))
    for broker in (0, 1):
        yield from appended("unfence_broker", broker=broker)
    yield from appended("create_topic", partition=0, leader=0)
    yield from (*replays(0, 3), *replays(1, 3))
    yield "leader_write", {"leader": 0, "partition": 0}
    yield "follower_fetch", {"leader": 0, "follower": 1, "partition": 0}
    yield "acknowledge", {"leader": 0, "partition": 0}
    yield "crash_broker", {"broker": 0}
    yield from appended("fence_broker", broker=0, successor=1)
    yield from replays(1, 1)
    yield from appended("register_broker", broker=0)
    yield "hear_registration", {"broker": 0}
    yield from replays(0, 2)
    yield from appended("unfence_broker", broker=0)
    yield from replays(1, 2)
    yield "follower_fetch", {"leader": 1, "follower": 0, "partition": 0}
    yield "propose_expand", {"leader": 1, "member": 0, "partition": 0}
    yield "alter_partition", {"node": 0, "leader": 1, "partition": 0}
    yield "fence_broker", {"node": 0, "broker": 1, "successor": 0}


def first_broken(proof: Proof) -> tuple[str, set[str]] | None:
    """The first step of the story after which conjuncts do not hold, and which."""
    concrete = Concrete(attach(proof, SAFE), AT)
    state = concrete.system.initial
    for action, params in story():
        after = concrete.step(state, action, tuple(params.items()))
        assert after is not None, (action, params)
        state = after
        if broken := concrete.broken(state):
            return action, set(broken)
    cells = concrete.shown(state)
    assert (cells["acknowledged[0]"], cells["data[0][0]"], cells["data[1][0]"]) == ("0", "0", "0")
    assert (cells["prefix_leader[9][0]"], cells["acknowledged_end[0]"], cells["created_at[0]"]) == ("0", "5", "4")
    return None


def test_all_conjuncts_hold_along_the_story() -> None:
    assert first_broken(kip_631) is None


def test_a_wrong_ghost_breaks_a_lemma() -> None:
    """The planted faults: an update is left out."""
    lemmas = {"create_topic": "partition_is_created_first", "acknowledge": "acknowledged_in_its_epoch"}
    for action, lemma in lemmas.items():
        less = copy.copy(kip_631)
        less.update_texts = {name: text for name, text in kip_631.update_texts.items() if name != action}
        found = first_broken(less)
        assert found is not None and found[0] == action and lemma in found[1]


def test_the_lemmas_of_data_are_a_layer_above_the_others() -> None:
    conjuncts = attach(kip_631, SAFE).conjuncts
    assert {name for name, conjunct in conjuncts.items() if conjunct.layer == 1} == DATA
    assert {"isr_is_counted_on", "member_keeps", "proposed_member_keeps"} <= DATA
    assert not any(conjunct.promise for name, conjunct in conjuncts.items() if name in DATA)


def test_a_last_member_that_returns_without_its_logs_is_noticed() -> None:
    attached = attach(kip_631, kip_631.protocol.traced("last-member-returns"))
    run = prove(attached, actions=["register_broker"], conjuncts=["lost_is_doubted"], witnesses=False)
    assert run.verdict is Verdict.VIOLATED


def test_a_stale_broker_epoch_is_noticed() -> None:
    """It takes a log of six records: one of five has no counterexample to induction."""
    attached = attach(kip_631, kip_631.protocol.traced("stale-broker-epoch"))
    run = prove(attached, actions=["alter_partition"], conjuncts=["member_keeps"], witnesses=False)
    assert run.verdict is Verdict.VIOLATED
    (failed,) = run.failed
    assert failed.counterexample is not None and failed.counterexample.constants["log_size"] == 6


def test_what_was_acknowledged_can_be_lost_without_a_guard() -> None:
    """The guards by which a leader knows that all whom it counts on have the record."""
    for guard in ("acknowledge.isr_has_it", "elect_leader.not_doubted", "leader_write.not_acknowledged"):
        action, _, _ = guard.partition(".")
        run = prove(
            attach(kip_631, SAFE.drop(guard)),
            actions=[action],
            conjuncts=["member_keeps", "doubted_is_not_led"],
            witnesses=False,
            decide=False,
        )
        assert run.verdict is Verdict.UNKNOWN, guard
