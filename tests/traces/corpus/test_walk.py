"""Walks in lockstep: each step is one of the model's by the staged reference, and a walk depends on nobody else."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.traces.corpus.checks import first_fault
from fencepost.traces.corpus.convert import event_of
from fencepost.traces.corpus.draws import Draws, Purpose
from fencepost.traces.corpus.layout import CorpusHeader, CorpusLayout, Events
from fencepost.traces.corpus.walk import NOTHING, Walker, Walks, numbered
from fencepost.traces.stepper import CompiledStepper


def walker(protocol: str, variant: str | None = None, seed: int = 3, **constants: int) -> Walker:
    system = ground(PROTOCOLS[protocol].traced(variant), constants)
    header = CorpusHeader(protocol, system.traced.variant.name, system.constants)
    return Walker(system, CorpusLayout.of(header), Draws(seed))


def walked(who: Walker, ids: range, steps: int) -> Walks:
    walks = Walks.of(numbered(ids), steps, who.batch.packing.words)
    who.walk(walks, np.arange(len(ids)))
    return walks


def events_of(who: Walker, walks: Walks) -> Events:
    return Events.joined(list(walks.events(who.layout, who.calls, who.batch.packing)))


@pytest.mark.parametrize(
    ("protocol", "variant"),
    [("fencing", "kip-320"), ("fencing", "kip-320-brokers"), ("truncation", "kip-320"), ("snapshots", "kip-630-safe")],
)
def test_every_step_is_the_models_and_a_walk_ends_where_there_is_none(protocol: str, variant: str) -> None:
    who = walker(protocol, variant)
    walks = walked(who, range(20), 40)
    events = events_of(who, walks)
    assert first_fault(events) is None and events.seen is None
    assert len(events) == walks.lengths.sum() and events.starts.size == 20
    stepper = CompiledStepper(who.system)
    names = [cell.name for cell in who.layout.cells]
    for low, high, length in zip(events.starts, events.ends, walks.lengths, strict=True):
        state = who.system.initial
        for row in range(low, high):
            event = event_of(events, row)
            assert list(event.observed) == names and event.action is not None
            params = tuple((name, value) for name, value in event.params.items() if value is not None)
            (step,) = stepper.some(state, event.action, [params])
            assert step.state != state, "steps that change nothing are left out"
            state = step.state
            assert state == tuple(events.cells[:, row].tolist())
        assert length == 40 or all(step.state == state for step in stepper.every(state))


def test_a_walk_is_the_same_whoever_walks_beside_it() -> None:
    who = walker("fencing")
    whole = walked(who, range(100, 140), 30)
    for low, high in ((100, 101), (101, 117), (117, 140)):
        part = walked(who, range(low, high), 30)
        rows = slice(low - 100, high - 100)
        assert np.array_equal(part.calls, whole.calls[:, rows])
        assert np.array_equal(part.keys, whole.keys[:, :, rows])
    again = walked(walker("fencing", seed=4), range(100, 140), 30)
    assert not np.array_equal(again.calls, whole.calls)
    shorter = walked(who, range(100, 140), 20)
    assert np.array_equal(shorter.calls, whole.calls[:20])


def test_a_walk_goes_on_as_if_it_had_not_stopped() -> None:
    who = walker("truncation")
    whole = walked(who, range(30), 25)
    cut = walked(who, range(30), 25)
    for row in range(30):
        at = row % 20
        cut.lengths[row] = min(at, whole.lengths[row])
        cut.calls[cut.lengths[row] :, row] = NOTHING
    who.walk(cut, np.arange(30))
    assert np.array_equal(cut.calls, whole.calls) and np.array_equal(cut.keys, whole.keys)


def test_seldom_enabled_actions_are_not_drowned() -> None:
    who = walker("snapshots", "kip-630-safe", max_leader_epoch=2)
    events = events_of(who, walked(who, range(300), 60))
    counts = Counter(who.layout.actions[number] for number in events.action.tolist())
    assert counts["restart"] < 0.25 * len(events), "instance by instance it was 0.97"
    assert {"fetch_snapshot", "follower_truncate", "delete_snapshot", "leader_advance_lbo"} <= set(counts)


def test_drawn_numbers_are_even_and_apart() -> None:
    draws, ids = Draws(1), np.arange(20_000)
    seen: list[Any] = []
    for purpose in Purpose:
        for step in (0, 1, 2, 50):
            numbers = draws.below(np.full(ids.size, 10), ids, step, purpose)
            counts = np.bincount(numbers, minlength=10)
            # Of 20,000 draws 2,000 each; five standard deviations are 212.
            assert counts.size == 10 and abs(counts - 2000).max() < 212
            seen.append(numbers)
    for one, other in pairwise(seen):
        assert abs((one == other).mean() - 0.1) < 0.02
    assert draws.below(np.zeros(3, dtype=np.int64), ids[:3], 1, Purpose.PLACE).tolist() == [0, 0, 0]
