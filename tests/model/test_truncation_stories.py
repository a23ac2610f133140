"""What KIP-320 tells of consumers, as runs of the reference interpreter, and the stories of its three holes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from fencepost.model.core.ground import State, System, ground
from fencepost.model.explore import Query, Verdict, explore
from fencepost.model.explore.graph import StateGraph, build_graph
from fencepost.model.interpret.explain import refusal
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.truncation import truncation
from fencepost.model.protocols.truncation.state import Outcome
from fencepost.traces.record import record

BOTH = pytest.mark.parametrize("variant", ["kip-320", "kip-320-mended"])
Call = tuple[str, int] | tuple[str]


def system_of(variant: str, constants: str = "2/2/3/2") -> System:
    values = dict(zip(truncation.constants, map(int, constants.split("/")), strict=True))
    return ground(truncation.traced(variant), values)


class Run:
    """A run of the reference interpreter; a call is an action and the value of its parameter, if it has one."""

    def __init__(self, variant: str, constants: str = "2/2/3/2") -> None:
        self.system = system_of(variant, constants)
        self.reference = Reference(self.system)
        self.state = self.system.initial

    def _params(self, call: Call) -> tuple[tuple[str, int], ...]:
        return tuple(zip(truncation.actions[call[0]].params, call[1:], strict=True))

    def __call__(self, *calls: Call) -> None:
        for call in calls:
            after = self.reference.step(self.state, call[0], self._params(call))
            assert after is not None, (call, self.refused(call))
            self.state = after

    def refused(self, call: Call) -> str | None:
        return self.reference.refused_by(self.state, call[0], self._params(call))

    def __getitem__(self, cell: str) -> int:
        return self.state[self.system.layout.by_name[cell]]

    def broken(self) -> list[str]:
        return self.reference.broken(self.state)

    def view(self) -> list[int]:
        """The records consumed without a break."""
        return [self[f"consumed_id[{o}]"] for o in range(self["consumed_from"], self["position"])]


# The consumer reads record 0 from leader 0; leader 1, which lacks it, is elected and writes records 1 and 2.
SILENT_GAP: list[Call] = [
    ("elect_cleanly", 0),
    ("refresh_metadata", 0),
    ("leader_write", 0),
    ("leader_inc_high_watermark", 0),
    ("consumer_fetch", 0),
    ("elect_uncleanly", 1),
    ("leader_write", 1),
    ("leader_inc_high_watermark", 1),
    ("leader_write", 1),
    ("leader_inc_high_watermark", 1),
    ("refresh_metadata", 1),
]


def test_the_silent_gap_before_the_kip() -> None:
    """New data is written before the next fetch, the offset is valid again, and record 1 is never read."""
    run = Run("no-epoch")
    run(*SILENT_GAP)
    assert run.broken() == []
    run(("consumer_fetch", 1))
    assert (run.view(), run["record_id[1][0]"]) == ([0, 2], 1)
    assert run.broken() == ["no_silent_gap"]


def test_the_silent_gap_with_an_epoch_that_is_ignored() -> None:
    run = Run("epoch-ignored")
    run(*SILENT_GAP, ("consumer_fetch", 1))
    assert run.broken() == ["no_silent_gap"]


@BOTH
def test_the_silent_gap_is_noticed(variant: str) -> None:
    """The same run: LOG_TRUNCATION, the next larger epoch begins at 0, and from there nothing is missed."""
    run = Run(variant)
    run(*SILENT_GAP)
    assert run.refused(("consumer_fetch", 1)) == "not_truncated"
    run(("answer_log_truncation", 1))
    assert run["outcome"] == Outcome.log_truncation
    run(("find_divergence", 1))
    assert (run["reported"], run["reported_epoch"]) == (0, -1)
    run(("reset_to_divergence",), ("consumer_fetch", 1), ("consumer_fetch", 1))
    assert run.view() == [1, 2]
    assert run.broken() == []


# Records 0 and 1 in epoch 0, of which the follower has only 0; the consumer reads both; the follower is elected.
SHORTER_FOLLOWER: list[Call] = [
    ("elect_cleanly", 0),
    ("refresh_metadata", 0),
    ("become_follower", 1),
    ("leader_write", 0),
    ("follower_fetch", 1),
    ("leader_write", 0),
    ("leader_inc_high_watermark", 0),
    ("leader_inc_high_watermark", 0),
    ("consumer_fetch", 0),
    ("consumer_fetch", 0),
    ("commit_offset",),
    ("elect_uncleanly", 1),
    ("refresh_metadata", 1),
]


@BOTH
def test_the_divergence_is_found_exactly_while_the_leader_knows_the_epoch(variant: str) -> None:
    """Also beyond the end of the log: before the KIP that was out of range."""
    run = Run(variant)
    run(*SHORTER_FOLLOWER)
    assert run.refused(("answer_out_of_range", 1)) == "not_truncated"
    run(("answer_log_truncation", 1), ("find_divergence", 1))
    assert (run["reported"], run["reported_epoch"]) == (1, 0)
    run(("reset_to_divergence",))
    assert (run["outcome"], run["last_epoch"], run.view()) == (Outcome.fetching, 0, [0])
    run(("leader_write", 1), ("leader_inc_high_watermark", 1), ("consumer_fetch", 1))
    assert run.view() == [0, 2]
    assert run.broken() == []


def test_the_old_policies_read_again_or_skip() -> None:
    for variant, offset in (("reset-earliest", 0), ("reset-latest", 2)):
        run = Run(variant)
        run(*SHORTER_FOLLOWER, ("answer_log_truncation", 1), ("leader_write", 1), ("leader_inc_high_watermark", 1))
        run(("find_divergence", 1))
        assert run["reported"] == offset, "the logs part at 1"
        assert run.broken() == ["reported_divergence"]


@BOTH
def test_after_consecutive_unclean_elections_only_the_next_larger_epoch_can_be_given(variant: str) -> None:
    """Epoch 1 is gone. Epoch 2 begins at 1, the logs part at 0, and nobody can tell: record 0 is noticed but unread."""
    run = Run(variant)
    run(
        ("elect_cleanly", 0),
        ("leader_write", 0),
        ("leader_inc_high_watermark", 0),
        ("elect_uncleanly", 1),
        ("refresh_metadata", 1),
        ("leader_write", 1),
        ("leader_write", 1),
        ("leader_inc_high_watermark", 1),
        ("leader_inc_high_watermark", 1),
        ("consumer_fetch", 1),
        ("consumer_fetch", 1),
        ("elect_uncleanly", 0),
        ("refresh_metadata", 2),
        ("answer_log_truncation", 0),
        ("find_divergence", 0),
    )
    assert (run["last_epoch"], run["reported"], run["reported_epoch"]) == (1, 1, 0)
    assert (run["consumed_id[0]"], run["record_id[0][0]"]) == (1, 0), "they differ below the reported offset"
    assert run.broken() == []
    run(("reset_to_divergence",))
    assert (run["position"], run["consumed_from"], run.view()) == (1, 1, [])


@BOTH
def test_stale_metadata_is_refused_and_refreshed(variant: str) -> None:
    """KIP-232: ListOffsets answers with an epoch, which a leader that was replaced does not know."""
    run = Run(variant)
    run(*MOVED_ON, ("reset_to_latest", 1))
    assert (run["position"], run["last_epoch"]) == (1, 1)
    run(("refresh_metadata", 0))
    assert run.refused(("consumer_fetch", 0)) == run.refused(("answer_out_of_range", 0)) == "epoch_known"
    run(("answer_unknown_leader_epoch", 0))
    assert run["outcome"] == Outcome.unknown_leader_epoch
    run(("refresh_metadata", 1))
    assert (run["outcome"], run["position"]) == (Outcome.fetching, 1)
    run(("leader_write", 1), ("leader_inc_high_watermark", 1), ("consumer_fetch", 1))
    assert run.broken() == []


MOVED_ON: list[Call] = [
    ("elect_cleanly", 0),
    ("elect_cleanly", 1),
    ("refresh_metadata", 1),
    ("leader_write", 1),
    ("leader_inc_high_watermark", 1),
]


def test_stale_metadata_before_the_kip_is_out_of_range() -> None:
    run = Run("no-epoch")
    run(*MOVED_ON, ("consumer_fetch", 1), ("refresh_metadata", 0), ("answer_out_of_range", 0))
    assert run.broken() == ["out_of_range_only_unchecked"]


@BOTH
def test_a_truncation_is_detected_across_a_restart(variant: str) -> None:
    """OffsetCommit and OffsetFetch carry the epoch."""
    run = Run(variant)
    run(*SHORTER_FOLLOWER, ("answer_log_truncation", 1))
    assert (run["committed"], run["committed_epoch"]) == (2, 0)
    run(("restart",))
    assert (run["position"], run["last_epoch"], run["outcome"]) == (2, 0, Outcome.fetching)
    assert run.refused(("consumer_fetch", 1)) == "not_truncated"
    run(("answer_log_truncation", 1), ("find_divergence", 1))
    assert run["reported"] == 1


@BOTH
def test_seek_to_nearest_keeps_an_offset_that_still_exists(variant: str) -> None:
    run = Run(variant)
    run(*SHORTER_FOLLOWER[:-2], ("seek_to_nearest", 0))
    assert (run["position"], run["last_epoch"]) == (2, 0)


@BOTH
def test_seek_to_nearest_goes_to_the_next_larger_epoch_otherwise(variant: str) -> None:
    run = Run(variant)
    run(*SHORTER_FOLLOWER, ("leader_write", 1), ("seek_to_nearest", 1))
    assert (run["position"], run["last_epoch"], run["record_epoch[1][1]"]) == (1, 0, 1)


@BOTH
def test_without_a_policy_the_application_has_the_offset_and_chooses(variant: str) -> None:
    """DIVERGENCE_FOUND is the LogTruncationException: nothing is fetched until the position is set."""
    run = Run(variant)
    run(*SHORTER_FOLLOWER, ("answer_log_truncation", 1), ("find_divergence", 1))
    assert (run["outcome"], run["reported"]) == (Outcome.divergence_found, 1)
    assert run.refused(("consumer_fetch", 1)) == run.refused(("answer_log_truncation", 1)) == "outcome_pending"
    run(("seek", 0), ("consumer_fetch", 1))
    assert run.view() == [0]


@BOTH
def test_the_sentinel_skips_the_check(variant: str) -> None:
    """After a seek to the middle no epoch is named, and the leader answers whatever it has there."""
    run = Run(variant)
    run(*SILENT_GAP, ("seek", 0), ("seek", 1))
    assert run["last_epoch"] == -1
    run(("consumer_fetch", 1))
    assert (run.view(), run["last_epoch"]) == ([2], 1)
    assert run.broken() == []


@BOTH
def test_an_unchecked_position_can_be_out_of_range(variant: str) -> None:
    """The KIP says that only an offset below the log start can be. A seek and an empty log suffice (T4)."""
    run = Run(variant)
    run(("elect_cleanly", 0), ("refresh_metadata", 0), ("seek", 1), ("answer_out_of_range", 0))
    assert (run["outcome"], run.broken()) == (Outcome.offset_out_of_range, [])
    run(("reset_to_latest", 0))
    assert (run["position"], run["outcome"]) == (0, Outcome.fetching)


def test_hole_1_an_older_epoch_takes_the_place_of_the_last_record() -> None:
    """One unclean election, of a zombie of epoch 0: epoch 2 begins at 1, no larger one begins below the position."""
    calls: list[Call] = [
        ("elect_cleanly", 0),
        ("elect_cleanly", 1),
        ("refresh_metadata", 1),
        ("leader_write", 1),
        ("leader_inc_high_watermark", 1),
        ("consumer_fetch", 1),
        ("refresh_metadata", 0),
        ("leader_write", 0),
        ("elect_uncleanly", 0),
        ("leader_inc_high_watermark", 0),
        ("leader_write", 0),
        ("leader_inc_high_watermark", 0),
    ]
    run = Run("kip-320")
    run(*calls, ("consumer_fetch", 0))
    assert run.view() == [0, 2]
    assert [run["record_id[0][0]"], run["record_id[0][1]"]] == [1, 2]
    assert run.broken() == ["no_silent_gap"]
    mended = Run("kip-320-mended")
    mended(*calls)
    assert mended.refused(("consumer_fetch", 0)) == "not_truncated"


def test_hole_2_a_leader_that_was_replaced_cleanly_sees_a_truncation() -> None:
    """Nothing is ever lost: record 0 of epoch 0 is committed in epoch 2, and the leader of epoch 1 never had it."""
    calls: list[Call] = [
        ("elect_cleanly", 1),
        ("refresh_metadata", 0),
        ("leader_write", 1),
        ("elect_cleanly", 0),
        ("elect_cleanly", 1),
        ("leader_inc_high_watermark", 1),
        ("consumer_fetch", 1),
        ("refresh_metadata", 1),
    ]
    run = Run("kip-320")
    run(*calls, ("answer_log_truncation", 0))
    assert [run[f"epoch_unclean[{e}]"] for e in range(3)] == [0, 0, 0]
    assert run.broken() == ["truncation_is_true"]
    run(("find_divergence", 0), ("reset_to_divergence",))
    assert run["position"] == 0, "record 0, which is still there, will be read again"
    mended = Run("kip-320-mended")
    mended(*calls)
    assert mended.refused(("answer_log_truncation", 0)) == "epoch_known"
    mended(("answer_unknown_leader_epoch", 0))


def test_hole_3_the_search_is_answered_by_a_leader_that_was_replaced() -> None:
    """The leader of epoch 0 knows neither the consumer's epoch nor a larger one, and answers all the same."""
    calls: list[Call] = [
        ("elect_cleanly", 0),
        ("elect_cleanly", 2),
        ("refresh_metadata", 1),
        ("leader_write", 2),
        ("leader_inc_high_watermark", 2),
        ("consumer_fetch", 2),
        ("elect_uncleanly", 1),
        ("refresh_metadata", 2),
        ("answer_log_truncation", 1),
        ("refresh_metadata", 0),
    ]
    run = Run("kip-320", "3/1/2/2")
    run(*calls, ("find_divergence", 0))
    assert run.broken() == ["reported_divergence"]
    mended = Run("kip-320-mended", "3/1/2/2")
    mended(*calls)
    assert mended.refused(("find_divergence", 0)) == "epoch_known"


@cache
def graph_of(variant: str) -> StateGraph:
    return build_graph(system_of(variant, "2/2/2/1"))


def asking(variant: str, action: str) -> Iterator[tuple[Reference, State, int, bool]]:
    """Every reachable state in which the consumer asks a presumed leader, and whether this action answers it."""
    graph = graph_of(variant)
    reference = Reference(graph.system)
    for state in graph.states:
        for leader in (0, 1):
            refused = reference.refused_by(state, action, (("leader", leader),))
            if refused not in ("outcome_pending", "asks_leader", "presumes_leadership"):
                yield reference, state, leader, refused is None


def cache_of(system: System, state: State, leader: int) -> list[tuple[int, int]]:
    """Kafka's leader epoch cache, built from the log: (epoch, start offset), the leader's own epoch last."""

    def read(cell: str) -> int:
        return state[system.layout.by_name[cell]]

    entries: list[tuple[int, int]] = []
    for offset in range(read(f"leo[{leader}]")):
        epoch = read(f"record_epoch[{leader}][{offset}]")
        if not entries or entries[-1][0] < epoch:
            entries.append((epoch, offset))
    own = read(f"leader_epoch[{leader}]")
    if not entries or entries[-1][0] < own:
        entries.append((own, read(f"leo[{leader}]")))
    return entries


@pytest.mark.parametrize("variant", ["kip-320", "kip-320-mended"])
def test_log_truncation_is_returned_exactly_by_the_rule(variant: str) -> None:
    seen = {True: 0, False: 0}
    for reference, state, leader, answers in asking(variant, "answer_log_truncation"):
        by_name = reference.system.layout.by_name
        epoch, position, own, served = (
            state[by_name[cell]] for cell in ("last_epoch", "position", f"leader_epoch[{leader}]", "seen_epoch")
        )
        entries = cache_of(reference.system, state, leader)
        larger = any(e > epoch and start < position for e, start in entries)
        known = any(e == epoch for e, _ in entries)
        expected = larger or (variant == "kip-320-mended" and not known)
        assert answers == (epoch != -1 and max(epoch, served) <= own and expected)
        seen[answers] += 1
    assert all(seen.values())


@pytest.mark.parametrize("variant", ["kip-320", "kip-320-mended"])
def test_unknown_leader_epoch_is_returned_exactly_by_the_rule(variant: str) -> None:
    seen = {True: 0, False: 0}
    for reference, state, leader, answers in asking(variant, "answer_unknown_leader_epoch"):
        by_name = reference.system.layout.by_name
        named = max(state[by_name["last_epoch"]], state[by_name["seen_epoch"]])
        assert answers == (named > state[by_name[f"leader_epoch[{leader}]"]])
        seen[answers] += 1
    assert all(seen.values())


@pytest.mark.parametrize("variant", ["kip-320", "kip-320-mended"])
def test_a_consumer_is_served_only_below_the_high_watermark_and_keeps_the_epoch(variant: str) -> None:
    graph = graph_of(variant)
    by_name = graph.system.layout.by_name
    fetches = 0
    for source, label, target in zip(graph.source, graph.instance, graph.target, strict=True):
        instance = graph.system.instances[label]
        if instance.action != "consumer_fetch":
            continue
        before, after = graph.states[source], graph.states[target]
        leader, offset = instance.params[0][1], before[by_name["position"]]
        assert offset < before[by_name[f"hw[{leader}]"]] <= before[by_name[f"leo[{leader}]"]]
        assert after[by_name["last_epoch"]] == before[by_name[f"record_epoch[{leader}][{offset}]"]]
        assert after[by_name[f"consumed_id[{offset}]"]] == before[by_name[f"record_id[{leader}][{offset}]"]]
        fetches += 1
    assert fetches


def test_what_became_of_a_fetch_is_told_by_its_name() -> None:
    """In traces and in refusals; an engine sees a number from 0."""
    found = explore(Query.of(system_of("no-epoch")))
    assert found.verdict is Verdict.VIOLATED and found.path is not None
    told = [event.observed["outcome"] for event in record(found.query.system, found.path).events if event.observed]
    assert told[0] == "fetching" and told[-1] == "offset_out_of_range" and set(told) <= set(Outcome.names)
    run = Run("kip-320")
    refused = refusal(run.reference, run.state, "reset_to_divergence", ())
    assert refused is not None and "outcome is fetching" in str(refused)
