"""What the proof of kip-320-mended needs of the text: each guard is dropped alone, and the other variants are tried.

``NEEDED``: the conjunct that a first counterexample to induction breaks. ``REDUNDANT``: every promise is still proved
without the guard, for any number of replicas, offsets, records and epochs; and why that is so. By day some of
them are asked where nothing has changed (``tests/conftest.py``).
"""

from __future__ import annotations

import copy
import re

import pytest
from fencepost.model.core.algebra import Algebra, Value, View
from fencepost.model.core.mutants import mutant_named
from fencepost.model.core.protocol import TracedProtocol, Variant
from fencepost.model.protocols.truncation import truncation
from fencepost.model.protocols.truncation.proof import kip_320_mended
from fencepost.model.protocols.truncation.state import Check, Outcome, Rules
from fencepost.model.prove.counterexample import breaking_run, shown
from fencepost.model.prove.obligations import Obligations
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import ProofRun, judge, prove

from .guards import confirmed, counterexample_without, first_counterexample, guards_of, proved_without

MENDED = "kip-320-mended"

NEEDED = {
    "elect_cleanly.epoch_available": "type_ok",
    "elect_cleanly.holds_committed": "unclean_means_lost",
    "elect_uncleanly.epoch_available": "type_ok",
    "elect_uncleanly.lacks_committed": "unclean_means_lost",
    "become_follower.epoch_newer": "leader_has_the_whole_history",
    "leader_write.presumes_leadership": "type_ok",
    "leader_write.record_available": "type_ok",
    "leader_write.log_not_full": "type_ok",
    "follower_fetch.epoch_not_fenced": "logs_match",
    "follower_fetch.record_available": "type_ok",
    "leader_inc_high_watermark.presumes_leadership": "hw_at_leaders",
    "leader_inc_high_watermark.record_above_hw": "type_ok",
    "leader_inc_high_watermark.isr_acknowledges": "unclean_means_lost",
    "consumer_fetch.outcome_pending": "truncation_is_true",
    "consumer_fetch.not_truncated": "no_silent_gap",
    "consumer_fetch.below_high_watermark": "type_ok",
    "answer_unknown_leader_epoch.epoch_unknown": "unknown_epoch_is_stale",
    "answer_log_truncation.presumes_leadership": "truncation_is_true",
    "answer_log_truncation.epoch_known": "truncation_is_true",
    "answer_log_truncation.truncated": "truncation_is_true",
    "answer_out_of_range.presumes_leadership": "out_of_range_only_unchecked",
    "answer_out_of_range.not_truncated": "out_of_range_only_unchecked",
    "answer_out_of_range.beyond_leo": "out_of_range_only_unchecked",
    "find_divergence.outcome_pending": "truncation_is_of_a_named_epoch",
    "find_divergence.presumes_leadership": "reported_divergence",
    "find_divergence.epoch_known": "reported_divergence",
    "reset_to_divergence.divergence_found": "position_served_or_lost",
    "reset_to_divergence.offset_reported": "type_ok",
    "restart.offset_committed": "type_ok",
    "seek_to_nearest.offset_stored": "type_ok",
    "seek_to_nearest.epoch_known": "position_served_or_lost",
}

REDUNDANT = {
    "become_follower.leader_elected": "before the first election nobody is in an epoch older than none",
    "refresh_metadata.epoch_started": "an epoch without an election has no leader, and nobody is asked",
    "refresh_metadata.another_leader": "the consumer learns the leader that it knows",
    "consumer_fetch.asks_leader": "whichever leader passes the check has what was consumed",
    "consumer_fetch.presumes_leadership": "a follower's high watermark is 0, and nothing is below that",
    "consumer_fetch.epoch_known": "a leader that passes the check has what was consumed, however old its epoch is",
    "answer_unknown_leader_epoch.outcome_pending": "a leader in a lower epoch has been replaced",
    "answer_unknown_leader_epoch.asks_leader": "whoever is in a lower epoch has been replaced",
    "answer_unknown_leader_epoch.presumes_leadership": "whoever is in a lower epoch is behind, a leader or not",
    "answer_log_truncation.outcome_pending": "whatever was answered before, the record was lost",
    "answer_log_truncation.asks_leader": "whichever leader lacks the record, and is no older, it was lost",
    "answer_out_of_range.outcome_pending": "whatever was answered before, a position that is checked is in range",
    "answer_out_of_range.asks_leader": "whichever leader passes the check has the position in range",
    "answer_out_of_range.epoch_known": "a leader that passes the check has the position, however old it is",
    "find_divergence.asks_leader": "any leader that is no older than the one which served the position may answer",
    "seek.has_metadata": "a position may be chosen before there is a leader to ask",
    "seek.elsewhere": "where the consumer is already, it only forgets the epoch",
    "reset_to_latest.needs_offset": "what was consumed is given up with the position",
    "reset_to_latest.asks_leader": "any leader may give its high watermark",
    "reset_to_latest.presumes_leadership": "a follower's high watermark is 0, with no record before it",
    "commit_offset.fetching": "the position is the same whatever became of the last fetch",
    "commit_offset.not_committed": "the same position is committed again",
    "restart.elsewhere": "the consumer goes back to where it is",
    "seek_to_nearest.asks_leader": "any leader that is no older than the one which served the position may answer",
    "seek_to_nearest.presumes_leadership": "a follower's log is of its epoch's history too; it only leads further back",
}

TWINS = {
    "no-epoch": ("no_silent_gap", "out_of_range_only_unchecked", 8),
    "kip-320": ("no_silent_gap", "truncation_is_true", 9),
    "epoch-ignored": ("no_silent_gap", "out_of_range_only_unchecked", 8),
    "reset-earliest": ("reported_divergence", "reported_divergence", 10),
    "reset-latest": ("reported_divergence", "reported_divergence", 11),
}
"""The variants that are not safe: the conjunct that a first counterexample to induction breaks; and the promise that a
run from the initial state breaks, with the number of its steps, shortest at the first of the proof's ``runs`` with one.
"""

LARGER_EPOCH_ONLY = "larger-epoch-only"
"""The mended text but for the leader's check, which is the KIP's: of its holes there is only H1."""

HOLES = {
    "H1": (LARGER_EPOCH_ONLY, "no_silent_gap", 13),
    "H2": ("answer_log_truncation.epoch_known", "truncation_is_true", 8),
    "H3": ("find_divergence.epoch_known", "reported_divergence", 11),
}
"""Each hole of the KIP's rules alone (specs/DEVIATIONS.md): the variant or the guard dropped, the promise that falls to
induction and to a run, and the steps of that.
"""


def test_every_guard_is_accounted_for_once() -> None:
    assert sorted([*NEEDED, *REDUNDANT]) == guards_of(truncation.traced())


def test_every_variant_is_accounted_for_once() -> None:
    running = [name for name, each in truncation.variants.items() if each.rules.client]
    assert sorted([*TWINS, MENDED, *running]) == sorted(truncation.variants)


def run_that_breaks(run: ProofRun) -> tuple[str, int]:
    """The promise that a run from the initial state breaks, and its steps."""
    broken = breaking_run(run.attached)
    assert broken is not None and broken.path is not None and broken.violated is not None
    return broken.violated, len(broken.path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", NEEDED)
def test_without_it_an_obligation_fails(guard: str) -> None:
    assert counterexample_without(kip_320_mended, guard) == NEEDED[guard]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", REDUNDANT)
def test_without_it_every_promise_is_still_proved(guard: str) -> None:
    proved_without(kip_320_mended, guard)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", TWINS)
def test_no_variant_with_a_hole_is_proved(variant: str) -> None:
    run = judge(kip_320_mended, truncation.traced(variant))
    conjunct, promise, steps = TWINS[variant]
    assert confirmed(run).conjunct == conjunct
    assert run_that_breaks(run) == (promise, steps)


def with_hole(name: str, monkeypatch: pytest.MonkeyPatch) -> TracedProtocol:
    """The mended text with one hole of the KIP's."""
    if name != LARGER_EPOCH_ONLY:
        return truncation.traced().drop(name)
    variant = Variant(name, Rules(Check.LARGER_EPOCH, seen=True), "the mended text but for the leader's check")
    monkeypatch.setitem(truncation.variants, name, variant)
    return truncation.traced(name)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("hole", HOLES)
def test_each_hole_of_the_text_is_noticed(hole: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, promise, steps = HOLES[hole]
    run = judge(kip_320_mended, with_hole(name, monkeypatch))
    assert confirmed(run).conjunct == promise
    assert run_that_breaks(run) == (promise, steps)


def test_it_is_not_proved_that_no_offset_is_out_of_range() -> None:
    """H4: only the log start bounds a fetch, says the KIP. A position that was sought shows that it is not so."""
    proof = copy.copy(kip_320_mended)
    proof.lemmas = dict(kip_320_mended.lemmas)

    @proof.lemma(promise=True)
    def never_out_of_range(_k: Algebra, s: View) -> Value:
        """No fetch is beyond the end of the leader's log."""
        return s.outcome != Outcome.offset_out_of_range

    attached = attach(proof, truncation.traced())
    run = prove(attached, actions=["answer_out_of_range"], conjuncts=["never_out_of_range"], witnesses=False)
    assert confirmed(run).conjunct == "never_out_of_range"


def test_where_logs_meet_before_a_step_is_not_where_they_meet_after_it() -> None:
    """An unclean election of a replica that has all: only by the last record do the two guards differ.

    The offset at which two logs meet is a constant of its own in either state; were it one, this would be proved.
    """
    mutant = mutant_named(truncation.traced(), "elect_uncleanly.lacks_committed bound 2 -1")
    run = judge(kip_320_mended, mutant.traced)
    assert confirmed(run).conjunct == "unclean_means_lost"
    assert run_that_breaks(run) == ("unclean_means_lost", 6)
    smt = Obligations(attach(kip_320_mended, truncation.traced())).obligation("elect_cleanly", "unclean_means_lost").smt
    assert {"offset!at!held!0", "offset!at!goal!0"} <= set(re.findall(r"offset!at!\w+!\d+", smt))


def test_no_run_breaks_the_text_where_the_twins_are_broken() -> None:
    """The search for a run can come back with none. (The larger ``runs`` are explored in ``fencepost check``.)"""
    proof = copy.copy(kip_320_mended)
    proof.runs = kip_320_mended.runs[:1]
    assert breaking_run(attach(proof, truncation.traced())) is None


def test_a_counterexample_is_told() -> None:
    run = judge(kip_320_mended, truncation.traced().drop("consumer_fetch.below_high_watermark"))
    told = shown(run.attached, first_counterexample(run))
    assert told.step.startswith("consumer_fetch(leader=")
    assert told.broken == "type_ok"
    assert told.changes["position"] == ("0", "1")
    assert told.reached.startswith(("reached by ", "not reached at 2/1/1/1 ("))
