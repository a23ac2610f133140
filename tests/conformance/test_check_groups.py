"""Groups of obligations in processes of their own: the same answers, and no process that outlives its command."""

from __future__ import annotations

import os
import signal
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import active_children

import pytest
from fencepost.conformance.check.groups import Answers, Group, all_groups, answering
from fencepost.model.core.registry import REGISTRY
from fencepost.traces.report.obligation import Obligation

QUICK = [Group("fencing", "fencing: liveness"), Group("fencing", "fencing: replay")]


def told(found: list[Obligation]) -> list[Obligation]:
    return [replace(each, seconds=0.0) for each in found]


def test_every_obligation_is_in_one_group() -> None:
    groups = all_groups()
    assert len(set(groups)) == len(groups)
    assert {group.protocol for group in groups} == set(REGISTRY)
    assert all(group.tasks() for group in groups)


def test_other_processes_answer_as_this_one_does() -> None:
    over: list[tuple[str, int]] = []
    with answering(QUICK, 2) as answers:
        found = answers.wait(lambda name, obligations: over.append((name, obligations)))
    here = [each for group in QUICK for each in group.answered()]
    assert told(found) == told(here) and all(each.met for each in found)
    assert {each.verdict for each in found} == {"holds", "violated"}
    assert sorted(over) == sorted((group.name, len(group.tasks())) for group in QUICK)


def test_what_a_lost_process_was_at_is_unknown() -> None:
    lost: Future[list[Obligation]] = Future()
    lost.set_exception(BrokenProcessPool("killed"))
    kept: Future[list[Obligation]] = Future()
    kept.set_result(QUICK[1].answered())
    found = Answers(QUICK, [lost, kept]).wait(lambda _name, _obligations: None)
    assert [each.verdict for each in found if each.group == QUICK[0].name] == ["unknown"] * len(QUICK[0].tasks())
    assert all("was ended from outside" in each.detail for each in found if each.group == QUICK[0].name)
    assert not any(each.met for each in found if each.group == QUICK[0].name)
    assert all(each.met for each in found if each.group == QUICK[1].name)


def test_killed_processes_are_told_of() -> None:
    with answering([Group("snapshots", "snapshots: proofs with no bound")], 1) as answers:
        for child in active_children():
            os.kill(child.pid or 0, signal.SIGKILL)
        found = answers.wait(lambda _name, _obligations: None)
    assert found and {each.verdict for each in found} == {"unknown"}


def interrupted() -> None:
    with answering([Group("snapshots", "snapshots: proofs with no bound")], 1):
        raise KeyboardInterrupt


def test_an_interrupt_leaves_no_process_behind() -> None:
    before = set(active_children())
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    for child in set(active_children()) - before:
        child.join(20)
        assert not child.is_alive()
