"""What KIP-280 tells, as runs of the reference interpreter, and the shortest stories of the holes in its text."""

from __future__ import annotations

from functools import cache

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.compaction import compaction

Call = tuple[str | int, ...]
SAFE = "kip-280-safe"
UNSET, OFFSET, TIMESTAMP, HEADER = range(4)
# Headers as parameters: none, the values 0 and 1, and a value that is no long.
NO_HEADER, ZERO, ONE, NO_LONG = range(4)
RECORD, TOMBSTONE = range(2)


@cache
def system_of(variant: str, constants: str, *dropped: str) -> System:
    values = dict(zip(compaction.constants, map(int, constants.split("/")), strict=True))
    return ground(compaction.traced(variant).drop(*dropped), values)


class Run:
    """A run of the reference interpreter; a call is an action and the values of its parameters.

    ``constants`` are replicas/log size/keys/timestamps/header values/repeated headers/leader epoch/changes/brokers'
    strategy/consumers.
    """

    def __init__(self, variant: str, constants: str, *dropped: str) -> None:
        self.system = system_of(variant, constants, *dropped)
        self.reference = Reference(self.system)
        self.state = self.system.initial

    def __call__(self, *calls: Call) -> None:
        for call in calls:
            assert self.refused(call) is None, (call, self.refused(call))
            after = self.reference.step(self.state, *self._step(call))
            assert after is not None
            self.state = after

    def _step(self, call: Call) -> tuple[str, tuple[tuple[str, int], ...]]:
        action = str(call[0])
        return action, tuple(zip(compaction.actions[action].params, map(int, call[1:]), strict=True))

    def refused(self, call: Call) -> str | None:
        return self.reference.refused_by(self.state, *self._step(call))

    def __getitem__(self, cell: str) -> int:
        return self.state[self.system.layout.by_name[cell]]

    def broken(self) -> list[str]:
        return self.reference.broken(self.state)

    def log(self, replica: int) -> list[int]:
        """The offsets at which a replica has a record."""
        end = self[f"leo[{replica}]"]
        return [offset for offset in range(end) if self[f"record_epoch[{replica}][{offset}]"] != -1]


def write(key: int, kind: int = RECORD, timestamp: int = 0, header: int = NO_HEADER, earlier: int = NO_HEADER) -> Call:
    return ("leader_write", key, kind, timestamp, header, earlier)


def alone(*records: Call) -> list[Call]:
    """One replica has these records, committed and in no active segment."""
    return [("elect_leader", 0), *records, *[("leader_inc_high_watermark",)] * len(records), ("roll_segment", 0)]


@pytest.mark.parametrize(
    ("strategy", "loser", "winner"),
    [
        (UNSET, (0, 1), (1, 0)),
        (OFFSET, (0, 1), (1, 0)),
        (TIMESTAMP, (1, 0), (0, 1)),
        (TIMESTAMP, (0, 1), (1, 1)),
    ],
    ids=["unset", "offset", "timestamp", "equal-timestamps"],
)
def test_which_record_stays(strategy: int, loser: tuple[int, int], winner: tuple[int, int]) -> None:
    """Each of the two is an offset and a timestamp. A third record of another key is the last one."""
    timestamps = dict([loser, winner])
    run = Run(SAFE, f"1/3/2/2/0/0/0/0/{strategy}/0")
    run(*alone(write(0, timestamp=timestamps[0]), write(0, timestamp=timestamps[1]), write(1)))
    assert run.refused(("remove_record", 0, winner[0], loser[0])) == "is_beaten"
    assert run.refused(("finish_cleaning", 0, 3)) == "nothing_left"
    run(("remove_record", 0, loser[0], winner[0]), ("finish_cleaning", 0, 3))
    assert run.log(0) == [winner[0], 2] and run.broken() == []


@pytest.mark.parametrize(
    ("loser", "winner"),
    [
        ((1, ZERO, NO_HEADER), (0, ONE, NO_HEADER)),
        ((0, ZERO, NO_HEADER), (1, ZERO, NO_HEADER)),
        ((0, NO_HEADER, NO_HEADER), (1, NO_HEADER, NO_HEADER)),
        ((1, NO_HEADER, NO_HEADER), (0, ZERO, NO_HEADER)),
        ((1, ZERO, ONE), (0, ONE, ZERO)),
    ],
    ids=["higher", "equal", "neither", "one-alone", "last-occurrence"],
)
def test_which_header_stays(loser: tuple[int, int, int], winner: tuple[int, int, int]) -> None:
    """Each of the two is an offset, a header, and the occurrence before."""
    headers = {each[0]: each[1:] for each in (loser, winner)}
    run = Run(SAFE, "1/3/2/1/2/1/0/0/3/0")
    run(*alone(*(write(0, RECORD, 0, *headers[offset]) for offset in (0, 1)), write(1)))
    assert run.refused(("remove_record", 0, winner[0], loser[0])) == "is_beaten"
    run(("remove_record", 0, loser[0], winner[0]))
    assert run.broken() == []


def test_producers_race() -> None:
    """Two producers send the versions 0 and 1 of a key, and the newer one comes first: by offsets it would be lost."""
    for strategy, survivor in ((OFFSET, 1), (TIMESTAMP, 0)):
        run = Run(SAFE, f"1/3/2/2/0/0/0/0/{strategy}/0")
        run(*alone(write(0, timestamp=1), write(0, timestamp=0), write(1)))
        run(("remove_record", 0, 1 - survivor, survivor))
        assert run.log(0) == [survivor, 2] and run.broken() == []


def test_a_value_that_is_no_long_is_refused_and_counts_for_none() -> None:
    """At the producer's edge while ``header`` is the strategy; whatever came before has no header to the cleaner."""
    run = Run(SAFE, "1/3/1/1/2/0/0/1/0/0")
    run(*alone(write(0, header=NO_LONG)), ("set_topic_strategy", HEADER))
    assert run.refused(write(0, header=NO_LONG)) == "header_is_long"
    run(write(0, header=ZERO), write(0, header=NO_HEADER), *[("leader_inc_high_watermark",)] * 2, ("roll_segment", 0))
    assert run.refused(("remove_record", 0, 1, 0)) == "is_beaten"
    run(("remove_record", 0, 0, 1))
    assert run.log(0) == [1, 2] and run.broken() == []


def test_the_topics_strategy_is_its_own_or_its_brokers() -> None:
    """Unset, it is the broker's; that unset, it is ``offset``. A broker's is set while the topic has its own."""
    run = Run(SAFE, "1/1/1/1/0/0/0/3/0/0")
    assert run.refused(("set_broker_strategy", 0, TIMESTAMP)) == "topic_overrides"
    run(("elect_leader", 0), ("set_topic_strategy", OFFSET), ("set_broker_strategy", 0, TIMESTAMP))
    run(("set_topic_strategy", UNSET))
    assert run.refused(("set_topic_strategy", HEADER)) == "change_available"
    two = Run(SAFE, "2/1/1/1/0/0/0/3/0/0")
    two(("elect_leader", 0), ("set_topic_strategy", OFFSET), ("set_broker_strategy", 0, TIMESTAMP))
    assert two.refused(("set_topic_strategy", UNSET)) == "brokers_agree"


# Leader 0 and follower 1 have a, b, c and d, of which d is a's older version; follower 2 has a, b and c.
TEXT = "3/5/3/2/0/0/1/0/2/0"
A, B, C, D, E = write(0, timestamp=1), write(1), write(2), write(0), write(1)
REPLICATED: list[Call] = [
    ("elect_leader", 0),
    *(A, B, C, D),
    *(("become_follower", replica) for replica in (1, 2)),
    *(("follower_fetch", 1, offset) for offset in range(4)),
    *(("follower_fetch", 2, offset) for offset in range(3)),
    ("leader_shrink_isr", 2),
    *[("leader_inc_high_watermark",)] * 4,
    ("roll_segment", 0),
]
REMOVED: Call = ("remove_record", 0, 3, 0)


def test_the_divergence_of_the_text_to_the_letter() -> None:
    """Follower 3 of the text, which is 2 here, is led to give offset 3 to e, where follower 2 has d."""
    run = Run("removes-last", TEXT)
    run(*REPLICATED, REMOVED)
    assert run.log(0) == [0, 1, 2] and run.log(1) == [0, 1, 2, 3]
    assert run.refused(("follower_fetch", 2, 3)) == "record_there", "it will no longer see record d"
    run(("leader_expand_isr", 2), ("elect_leader", 2), E)
    assert (run["record_epoch[1][3]"], run["record_epoch[2][3]"]) == (0, 1)
    assert run.broken() == ["offsets_agree"]


def test_the_last_record_is_retained() -> None:
    run = Run(SAFE, TEXT)
    run(*REPLICATED)
    assert run.refused(REMOVED) == "not_last"
    assert run.refused(("leader_expand_isr", 2)) == "reached_high_watermark"
    run(E, REMOVED, ("follower_fetch", 2, 4))
    assert run.log(2) == [0, 1, 2, 4] and run["leo[2]"] == 5, "once there is another one, its offset is safe"
    assert run.broken() == []


def test_or_an_empty_batch_takes_its_offset_up() -> None:
    run = Run("empty-batch", TEXT)
    run(*REPLICATED, REMOVED)
    assert run.refused(("leader_expand_isr", 2)) == "reached_high_watermark"
    run(("follower_fetch_empty_batch", 2))
    assert run.log(2) == [0, 1, 2] and run["leo[2]"] == 4
    run(("leader_expand_isr", 2), ("elect_leader", 2), E)
    assert run["record_epoch[2][4]"] == 1 and run["record_epoch[2][3]"] == -1
    assert run.broken() == []


# A record and its tombstone, and a record of another key behind them.
DELETED: list[Call] = [write(0), write(0, TOMBSTONE), write(1)]


def test_hole_1_a_slow_replica_misses_a_delete() -> None:
    """KIP-630's argument against compaction, with the strategy ``offset``: so it is in Kafka."""
    followed: list[Call] = [
        ("elect_leader", 0),
        *DELETED,
        *(("become_follower", 1), ("follower_fetch", 1, 0), ("leader_shrink_isr", 1)),
        *[("leader_inc_high_watermark",)] * 3,
        *(("roll_segment", 0), ("remove_record", 0, 0, 1), ("finish_cleaning", 0, 3)),
    ]
    dropped: Call = ("remove_tombstone", 0, 1)
    for variant in ("kip-280", "slow-readers"):
        run = Run(variant, "2/3/2/1/0/0/0/0/0/0")
        run(*followed, dropped, ("follower_fetch", 1, 2))
        assert (run.log(0), run.log(1)) == ([2], [0, 2])
        assert run.broken() == ["deleted_stays_deleted"]
    run = Run(SAFE, "2/3/2/1/0/0/0/0/0/0")
    run(*followed)
    assert run.refused(dropped) == "readers_in_time"
    run(("follower_fetch", 1, 1), dropped)
    assert run.broken() == []


def test_hole_2_a_tombstone_goes_before_what_it_beats_is_cleaned() -> None:
    """Its key's older version came later, and is in the active segment: the text's Recommendations speak of that."""
    story: list[Call] = [*alone(write(0, TOMBSTONE, timestamp=1)), ("finish_cleaning", 0, 1), write(0)]
    dropped: Call = ("remove_tombstone", 0, 0)
    for variant in ("kip-280", "uncleaned-tail"):
        run = Run(variant, "1/2/1/2/0/0/0/0/2/0")
        run(*story, dropped, ("leader_inc_high_watermark",))
        assert run.broken() == ["deleted_stays_deleted"]
    run = Run(SAFE, "1/2/1/2/0/0/0/0/2/0")
    run(*story)
    assert run.refused(dropped) == "cleaned_in_time"


def test_hole_3_a_late_record_brings_a_deleted_key_back() -> None:
    """A header of a lower value that arrives after its key's tombstone was removed; one of a higher value is right."""
    deleted: list[Call] = [
        *alone(write(0, TOMBSTONE, header=ONE), write(1)),
        *(("finish_cleaning", 0, 2), ("remove_tombstone", 0, 0)),
    ]
    for variant in ("kip-280", "late-producers"):
        run = Run(variant, "1/3/2/1/2/0/0/0/3/0")
        run(*deleted, write(0, header=ZERO), ("leader_inc_high_watermark",))
        assert run.broken() == ["deleted_stays_deleted"]
    run = Run(SAFE, "1/3/2/1/2/0/0/0/3/0")
    run(*deleted)
    assert run.refused(write(0, header=ZERO)) == "arrives_in_time"
    assert run.refused(write(0, header=NO_HEADER)) == "arrives_in_time"
    run(write(0, header=ONE), ("leader_inc_high_watermark",))
    assert run.log(0) == [1, 2] and run.broken() == []


def test_hole_3_the_replicas_part_for_good() -> None:
    """What comes late is removed where the tombstone still is, and stays where it is not."""
    run = Run("late-producers", "2/4/2/2/0/0/0/0/2/0")
    run(("elect_leader", 0), write(0, TOMBSTONE, timestamp=1), write(1), ("become_follower", 1))
    run(*(("follower_fetch", 1, offset) for offset in (0, 1)), *[("leader_inc_high_watermark",)] * 2)
    run(("roll_segment", 0), ("finish_cleaning", 0, 2), ("remove_tombstone", 0, 0), write(0), write(1))
    run(*(("follower_fetch", 1, offset) for offset in (2, 3)), *[("leader_inc_high_watermark",)] * 2)
    run(("roll_segment", 1), ("remove_record", 1, 2, 0), ("remove_record", 1, 1, 3), ("finish_cleaning", 1, 4))
    run(("remove_tombstone", 1, 0))
    assert (run.log(0), run.log(1)) == ([1, 2, 3], [3])


@pytest.mark.parametrize("variant", ["kip-280", "late-producers", SAFE])
def test_a_header_of_a_higher_value_after_its_key_s_tombstone_was_removed(variant: str) -> None:
    """It would have beaten the tombstone, so that nobody misses it: replicas with and without it end alike."""
    two = ONE + 1
    run = Run(variant, "2/4/2/1/3/0/0/0/3/1")
    run(("elect_leader", 0), write(0, TOMBSTONE, header=ONE), write(1), ("become_follower", 1))
    run(*(("follower_fetch", 1, offset) for offset in (0, 1)), *[("leader_inc_high_watermark",)] * 2)
    run(*(("consumer_fetch", offset) for offset in (0, 1)))
    run(("roll_segment", 0), ("finish_cleaning", 0, 2), ("remove_tombstone", 0, 0), write(0, header=two))
    run(("follower_fetch", 1, 2), ("leader_inc_high_watermark",), ("consumer_fetch", 2))
    assert (run.log(0), run.log(1), run["table[0]"]) == ([1, 2], [0, 1, 2], 2)
    run(write(1), ("follower_fetch", 1, 3), ("leader_inc_high_watermark",), ("roll_segment", 1))
    run(("remove_record", 1, 0, 2))
    assert run.log(0) == [1, 2, 3] == run.log(1) and run.broken() == []


def test_hole_4_a_consumer_goes_from_one_replica_to_another() -> None:
    """The one has cleaned nothing, the other has dropped the tombstone; nobody was slow."""
    story: list[Call] = [
        *(("elect_leader", 0), write(0), write(0, TOMBSTONE), ("become_follower", 1)),
        *(("follower_fetch", 1, 0), ("follower_fetch", 1, 1)),
        *[("leader_inc_high_watermark",)] * 2,
        *(("consumer_fetch", 0), ("consumer_fetch", 1)),
        *(("roll_segment", 1), ("remove_record", 1, 0, 1), ("finish_cleaning", 1, 2), ("remove_tombstone", 1, 1)),
    ]
    run = Run("reads-again", "2/2/1/1/0/0/1/0/0/1")
    run(*story, ("consumer_start_over",), ("consumer_fetch", 0), ("elect_leader", 1))
    assert run["table[0]"] == 0 and run.broken() == ["consumer_agrees"]


def test_hole_5_a_strategy_is_set_on_logs_that_differ() -> None:
    """Each replica keeps what another strategy has left it, and they never agree again."""
    story: list[Call] = [
        *(("elect_leader", 0), write(0, timestamp=1), write(0), write(1), ("become_follower", 1)),
        *(("follower_fetch", 1, offset) for offset in range(3)),
        *[("leader_inc_high_watermark",)] * 3,
        *(("roll_segment", 0), ("remove_record", 0, 0, 1), ("finish_cleaning", 0, 3)),
    ]
    changed: Call = ("set_topic_strategy", TIMESTAMP)
    for variant in ("kip-280", "changes-uncleaned"):
        run = Run(variant, "2/3/2/2/0/0/0/1/0/0")
        run(*story, changed)
        assert run.broken() == ["winner_is_kept", "consumer_agrees"], "nobody can be given the winner by the leader"
        run(("roll_segment", 1), ("remove_record", 1, 1, 0), ("finish_cleaning", 1, 3))
        assert (run.log(0), run.log(1)) == ([1, 2], [0, 2])
    run = Run(SAFE, "2/3/2/2/0/0/0/1/0/0")
    run(*story)
    assert run.refused(changed) == "logs_are_alike"
    run(("roll_segment", 1), ("remove_record", 1, 0, 1), changed)
    assert (run.log(0), run.log(1)) == ([1, 2], [1, 2]) and run.broken() == []


def test_hole_6_brokers_are_given_another_strategy_one_by_one() -> None:
    """In between two brokers of one topic keep different records of a key."""
    story: list[Call] = [
        *(("elect_leader", 0), write(0, timestamp=1), write(0), write(1), ("become_follower", 1)),
        *(("follower_fetch", 1, offset) for offset in range(3)),
        *[("leader_inc_high_watermark",)] * 3,
    ]
    for variant in ("kip-280", "rolling-change"):
        run = Run(variant, "2/3/2/2/0/0/0/1/0/0")
        run(*story, ("set_broker_strategy", 1, TIMESTAMP))
        run(("roll_segment", 0), ("remove_record", 0, 0, 1), ("roll_segment", 1))
        assert run.broken() == []
        run(("remove_record", 1, 1, 0))
        assert (run.log(0), run.log(1)) == ([1, 2], [0, 2])
        assert run.broken() == ["winner_is_kept"]


def test_hole_7_a_map_of_the_dirty_part_alone() -> None:
    """The winner has been cleaned before, so that the map knows only of the loser: both stay."""
    story: list[Call] = [
        *alone(write(0, timestamp=1)),
        ("finish_cleaning", 0, 1),
        *(write(0), write(1)),
        *[("leader_inc_high_watermark",)] * 2,
        ("roll_segment", 0),
    ]
    for variant in ("kip-280", "maps-dirty-part"):
        run = Run(variant, "1/3/2/2/0/0/0/0/2/0")
        run(*story)
        assert run.refused(("remove_record", 0, 1, 0)) == "is_beaten"
        run(("finish_cleaning", 0, 3))
        assert run.broken() == ["survivor_is_alone"]
    run = Run(SAFE, "1/3/2/2/0/0/0/0/2/0")
    run(*story)
    assert run.refused(("finish_cleaning", 0, 3)) == "nothing_left"
    run(("remove_record", 0, 1, 0), ("finish_cleaning", 0, 3))


def test_hole_8_a_timestamp_winner_below_a_tombstone() -> None:
    """The record stays, and the tombstone behind it goes; whoever reads both by their offsets deletes the key."""
    read: list[Call] = [("consumer_fetch", 0), ("consumer_fetch", 1)]
    story = alone(write(0, timestamp=1), write(0, TOMBSTONE), write(1))
    run = Run("reads-by-offset", "1/3/2/2/0/0/0/0/2/1")
    run(*story, *read)
    assert run["table[0]"] == 1 and run.broken() == ["consumer_agrees"]
    run = Run(SAFE, "1/3/2/2/0/0/0/0/2/1")
    run(*story, *read, ("remove_record", 0, 1, 0))
    assert run["table[0]"] == 0 and run.log(0) == [0, 2] and run.broken() == []


def test_hole_8_a_consumer_that_forgets_what_it_deletes() -> None:
    """The tombstone wins, and the record behind it must not come back: the same strategy is not enough."""
    story = [*alone(write(0, TOMBSTONE, timestamp=1), write(0)), ("consumer_fetch", 0), ("consumer_fetch", 1)]
    for variant in ("kip-280", "forgets-deletes"):
        run = Run(variant, "1/2/1/2/0/0/0/0/2/1")
        run(*story)
        assert run["table[0]"] == 1 and run.broken() == ["consumer_agrees"]
    run = Run(SAFE, "1/2/1/2/0/0/0/0/2/1")
    run(*story)
    assert run["table[0]"] == 0 and run.broken() == []


def test_the_migration_to_headers() -> None:
    """Producers send the header first, then the strategy is set: what was compacted by offset remains as such."""
    run = Run(SAFE, "1/4/2/1/2/0/0/2/0/0")
    run(*alone(write(0, header=ONE), write(0, header=ZERO)), write(1, header=ZERO), ("leader_inc_high_watermark",))
    run(("remove_record", 0, 0, 1), ("finish_cleaning", 0, 2), ("set_topic_strategy", HEADER))
    assert run.log(0) == [1, 2] and run.broken() == [], "the higher value is gone, and counts no longer"
    run(write(0, header=ZERO), ("leader_inc_high_watermark",), ("roll_segment", 0), ("remove_record", 0, 1, 3))
    assert run.log(0) == [2, 3]
    run(("set_topic_strategy", OFFSET))
    assert run.broken() == []
