"""``fencepost explore --refines`` as scripts rely on it: verdicts, exit codes, keys, files, complaints."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Fencepost

LEAST = ("--replicas", 2, "--log-size", 1, "--max-records", 1, "--max-leader-epoch", 0)
SPLIT = ("explore", "fencing", "--variant", "kip-497", *LEAST, "--refines")


def test_a_refinement_holds(fencepost: Fencepost) -> None:
    said = fencepost(*SPLIT, "kip-497-forgets")
    assert said.code == 0
    assert "fencing kip-497 as kip-497-forgets" in said.out
    assert "every promise of kip-497-forgets holds in every mapped state" in said.out


def test_a_difference_is_told_by_its_run_and_its_guards(fencepost: Fencepost, tmp_path: Path) -> None:
    trace = tmp_path / "apart.jsonl"
    said = fencepost(*SPLIT, "kip-320-brokers", "--trace-out", trace)
    assert said.code == 1
    for told in (
        "5  controller_alter_isr(epoch=0, partition_epoch=0, one=0, other=1)",
        "mapped, the last step is: quorum_isr {0, 1} -> {0}",
        "leader_shrink_isr(leader=0, follower=1) is refused by leader_shrink_isr.not_caught_up",
        "kip-320-brokers reaches every one of them",
    ):
        assert told in said.out
    assert fencepost("replay", trace).code == 0, "it is a run of kip-497"


def test_the_object_on_standard_output(fencepost: Fencepost) -> None:
    said = fencepost(*SPLIT, "kip-320-brokers", "--but", "leader_shrink_isr.not_caught_up", "--json")
    assert said.code == 1
    answer = said.json
    assert (answer["verdict"], answer["variant"], answer["refines"]) == ("violated", "kip-497", "kip-320-brokers")
    assert answer["but"] == ["leader_shrink_isr.not_caught_up"]
    assert (answer["distinct"], answer["mapped"], answer["broken"]) == (1573, 165, None)
    nearest = answer["differences"][0]
    assert (nearest["nearest"], nearest["refused_by"], len(nearest["trace"])) == (None, [], 5)
    assert nearest["before"]["quorum_isr"] == "{0, 1}" and nearest["after"]["quorum_isr"] == "{0}"
    assert answer["trace"] == nearest["trace"]
    assert not any("not_caught_up" in guard for each in answer["differences"] for guard in each["refused_by"])


def test_a_spent_budget_is_unknown(fencepost: Fencepost) -> None:
    said = fencepost(*SPLIT, "kip-497-forgets", "--max-states", 50, "--json")
    assert (said.code, said.json["verdict"]) == (3, "unknown")
    assert said.json["reason"] == "more than 50 states (--max-states)"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((*SPLIT, "kip-498"), "--refines: fencing has no variant 'kip-498'; choose one of truncate-to-hw, "),
        ((*SPLIT, "kip-497-forgets", "--but", "restart.nothing"), "--but: restart has no guard 'nothing'"),
        (
            ("explore", "fencing", "--but", "restart.nothing"),
            "--but: there is no other variant that it is held against",
        ),
        ((*SPLIT, "kip-497-forgets", "--liveness"), "--liveness: steps are compared, by the reference; leave it out"),
    ],
)
def test_what_is_asked_amiss(fencepost: Fencepost, arguments: tuple[object, ...], line: str) -> None:
    assert fencepost(*arguments).complaint.startswith(line)
