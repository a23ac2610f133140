"""``fencepost mutants``: the lines and the table of what kills which mutant, exit codes, and refusals."""

from __future__ import annotations

from importlib import import_module

import pytest

from .conftest import Fencepost


def one_reason(rows: list[dict[str, object]]) -> set[object]:
    return {row["reason"] for row in rows}


def test_the_command_prints_a_line_for_each_mutant(fencepost: Fencepost) -> None:
    said = fencepost("mutants", "--protocol", "fencing", "--only", "leader_write.log_not_full", "--json")
    assert said.code == 0
    rows = said.json["rows"]
    assert [row["name"] for row in rows] == [
        f"leader_write.log_not_full {how}" for how in ("dropped", "bound +1", "bound -1")
    ]
    assert said.json["verdict"] == "holds" and said.json["complaints"] == []
    assert said.json["reasons"] == {"implied": 0, "proved": 0, "argued": 0} and one_reason(rows) == {None}
    assert sum(said.json["counts"].values()) == len(rows) == said.json["counts"]["killed"]
    one = next(row for row in rows if row["name"] == "leader_write.log_not_full dropped")
    assert one["explorer"] | {"seconds": 0} == {
        "outcome": "killed",
        "length": 4,
        "detail": "type_ok at 2/1/2/2",
        "seconds": 0,
    }
    assert one["replay"]["detail"] == "the model refuses step 4: guard log_not_full"
    assert (one["proof"]["outcome"], one["hypothesis"]["outcome"]) == ("lost", "none")


def test_the_command_prints_a_table(fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    said = fencepost("mutants", "--protocol", "fencing", "--only", "leader_shrink_isr.true_leader")
    assert said.code == 0 and said.err == ""
    for words in (
        "fencing kip-320",
        "leader_shrink_isr.true_leader dropped    killed       killed 4",
        "implied: for all constants it has the same steps",
        "3 mutants: 2 killed, 1 equivalent; 1 implied",
    ):
        assert words in said.out


def test_the_command_fails_for_a_survivor(fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch) -> None:
    command = import_module("fencepost.conformance.cli.mutants")
    monkeypatch.setattr(command, "arguments_for", lambda *_: {})
    said = fencepost("mutants", "--protocol", "fencing", "--only", "follower_fetch.follows_leader dropped")
    assert said.code == 1
    assert "! follower_fetch.follows_leader dropped: nobody kills it" in said.out


def test_the_command_says_what_it_does_not_know(fencepost: Fencepost) -> None:
    one = ("--only", "leader_shrink_isr.not_caught_up dropped", "--max-states", "1000")
    assert fencepost("mutants", "--protocol", "fencing", *one).code == 3


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--only", "leader_write.nothing"), "--only: no mutant is named 'leader_write.nothing'; "),
        (("--protocol", "raft"), "PROTOCOL: there is no protocol 'raft'; "),
        (("--variant", "kip-320"), "--variant: 'kip-320' may be a variant of several protocols; "),
        (("--protocol", "fencing", "--variant", "kip-279"), "--variant: kip-279 itself breaks strong_isr at 3/1/1/1"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(fencepost: Fencepost, arguments: tuple[str, ...], complaint: str) -> None:
    assert fencepost("mutants", *arguments).complaint.startswith(complaint)


def test_one_mutant_is_one(fencepost: Fencepost) -> None:
    said = fencepost("mutants", "--protocol", "fencing", "--only", "leader_write.log_not_full dropped")
    assert said.code == 0 and "1 mutant: 1 killed\n" in said.out
