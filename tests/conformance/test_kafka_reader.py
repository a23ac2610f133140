"""Apache Kafka's own consumer under the driver: what of KIP-320 it does, and where it passes over a record."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from fencepost.conformance.kafka.process import CONSUMER, DriverFailedError, Jvm
from fencepost.impl.log.batch import encode_batch
from fencepost.impl.log.records import Record

from .kafka_jvm import one_jvm

pytestmark = pytest.mark.kafka
A, B, COORDINATOR = range(3)


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all; each test starts its consumer afresh."""
    yield from one_jvm(drives=CONSUMER)


class Story:
    """A consumer, and what it has asked that nobody has answered yet."""

    def __init__(self, jvm: Jvm) -> None:
        self.jvm = jvm
        self.asked: list[Mapping[str, Any]] = []
        self.given: list[Any] = []
        self.raised: list[Mapping[str, Any]] = []
        self.seen: Mapping[str, Any] = {}
        settings = {"timeout": 10_000, "policy": "none", "bytes": 1 << 20, "age": 5_000, "seed": 0}
        self.ask("start", brokers=2, coordinator=COORDINATOR, first=[A, B], **settings)

    def ask(self, do: str, **more: Any) -> Mapping[str, Any]:
        answer = self.jvm.ask(do, **more)
        self.seen = answer["seen"]
        self.asked += answer["sent"]
        self.given += answer.get("records", [])
        self.raised += [answer["raised"]] if "raised" in answer else []
        return answer

    def poll(self, kind: str, **wanted: int) -> Mapping[str, Any]:
        """Poll until something of a kind is asked, with what is wanted of it; gives it."""
        for _ in range(6):
            for each in self.asked:
                if each["kind"] == kind and all(each[name] == value for name, value in wanted.items()):
                    return each
            self.ask("time", ms=2)
            self.ask("poll")
        raise AssertionError(f"no {kind} of {wanted} among {self.asked}")

    def answer(self, request: Mapping[str, Any], error: str = "NONE", **more: Any) -> None:
        self.asked.remove(request)
        self.ask("arrive", id=request["id"], poll=request["kind"] == "committed", error=error, **more)

    def hears(self, leader: int, epoch: int) -> None:
        """Metadata comes, which has been asked for as it is old."""
        if not any(each["kind"] == "metadata" for each in self.asked):
            self.ask("time", ms=5_001)
        self.answer(self.poll("metadata"), leader=leader, epoch=epoch)

    def fetched(self, request: Mapping[str, Any], epoch: int, *payloads: str) -> None:
        """A leader sends records of an epoch, from the fetch offset on, or none."""
        offset = request["offset"]
        data = b""
        for number, payload in enumerate(payloads):
            record = Record(payload.encode(), timestamp=0)
            data += encode_batch([record], base_offset=offset + number, leader_epoch=epoch)
        records = base64.b64encode(data).decode()
        self.answer(request, hw=offset + len(payloads), start=0, records=records)

    def begins(self, leader: int, epoch: int) -> None:
        """It knows of a leader, and reads from the beginning."""
        self.hears(leader, epoch)
        self.ask("seek", offset=0)

    @property
    def position(self) -> tuple[int, int, int]:
        """Offset, epoch of the record before it, and the leader epoch of the position."""
        at = self.seen["position"]
        return at["offset"], at["last"], at["epoch"]


@pytest.fixture
def story(jvm: Jvm) -> Story:
    return Story(jvm)


def reads_in_epoch_1(story: Story) -> None:
    story.begins(B, 1)
    story.fetched(story.poll("fetch"), 1, "r")
    assert story.given == [[0, 1, "r"]]
    assert story.position == (1, 1, 1)


def test_v1_it_validates_its_position_and_fetches_name_no_last_epoch(story: Story) -> None:
    reads_in_epoch_1(story)
    fetch = story.poll("fetch")
    assert (fetch["offset"], fetch["current"], fetch["last"]) == (1, 1, -1)
    story.fetched(fetch, 1)
    story.hears(A, 2)
    asks = story.poll("validate")
    assert (asks["to"], asks["epoch"], asks["current"]) == (A, 1, 2)
    assert story.seen["validates"]
    assert not [each for each in story.asked if each["kind"] == "fetch" and each["to"] == A]


def test_h1_a_smaller_epoch_that_ends_no_lower_is_no_truncation(story: Story) -> None:
    """A has a record of epoch 0 where B had one of epoch 1, which was read: it passes over that in silence."""
    reads_in_epoch_1(story)
    story.hears(A, 2)
    story.answer(story.poll("validate"), epoch=0, offset=1)
    assert not story.seen["validates"]
    story.fetched(story.poll("fetch", to=A, offset=1, current=2), 2, "y")
    assert (story.given, story.raised) == ([[0, 1, "r"], [1, 2, "y"]], [])


def test_h1_not_where_the_epoch_ends_lower(story: Story) -> None:
    reads_in_epoch_1(story)
    story.hears(A, 2)
    story.answer(story.poll("validate"), epoch=0, offset=0)
    assert story.seen["validates"]
    story.ask("poll")
    assert story.raised == [{"name": "LOG_TRUNCATION", "offset": 0, "epoch": 0}]


def asks_a_leader_and_leaves_it(story: Story) -> Mapping[str, Any]:
    """B has led, A does in epoch 1, and B in epoch 2: what A was asked is not answered yet."""
    story.begins(B, 0)
    story.fetched(story.poll("fetch"), 0)
    story.hears(A, 1)
    for each in [each for each in story.asked if each["to"] == B]:
        story.fetched(each, 0)
    late = story.poll("fetch", to=A)
    assert late["current"] == 1
    story.hears(B, 2)
    assert story.poll("fetch", to=B)["current"] == 2
    assert story.position == (0, -1, 2)
    return late


def test_v6_an_answer_of_a_leader_that_was_left_is_taken(story: Story) -> None:
    """x is lost in the unclean election of B, which has r and s: the consumer reads x and s, and nothing is told."""
    late = asks_a_leader_and_leaves_it(story)
    story.fetched(late, 1, "x")
    assert story.given == [[0, 1, "x"]]
    assert story.position == (1, 1, 2)
    assert not story.seen["validates"]
    # What it has asked of B meanwhile is of the position before.
    story.fetched(story.poll("fetch", to=B, offset=0), 2, "r")
    story.fetched(story.poll("fetch", to=B, offset=1, current=2), 2, "s")
    assert (story.given, story.raised) == ([[0, 1, "x"], [1, 2, "s"]], [])


def test_v6_not_where_the_position_has_moved(story: Story) -> None:
    late = asks_a_leader_and_leaves_it(story)
    story.fetched(story.poll("fetch", to=B), 2, "r")
    story.fetched(late, 1, "x")
    assert story.given == [[0, 2, "r"]]


def commits_in_epoch_2(jvm: Jvm) -> Story:
    """It has read a record of epoch 0 from A, which leads again in epoch 2, and committed the position behind it."""
    story = Story(jvm)
    story.begins(A, 2)
    story.fetched(story.poll("fetch"), 0, "r")
    story.ask("commit")
    commit = story.poll("commit")
    # The leader epoch of the record, and none of the leader that served it (V5).
    assert {name: commit[name] for name in ("offset", "epoch")} == {"offset": 1, "epoch": 0}
    story.answer(commit)
    return story


def test_h2_metadata_never_leads_back_whoever_runs(jvm: Jvm) -> None:
    """V3: B was the leader of epoch 1, which is over, and never had the record."""
    story = commits_in_epoch_2(jvm)
    story.hears(B, 1)
    assert story.seen["metadata"] == {"leader": A, "epoch": 2}
    assert story.position == (1, 0, 2)


def test_h2_a_restarted_consumer_is_told_of_a_truncation_that_never_was(jvm: Jvm) -> None:
    """No election was unclean: it has forgotten that there was an epoch 2, and B answers in its own."""
    commits_in_epoch_2(jvm)
    story = Story(jvm)
    story.hears(B, 1)
    story.answer(story.poll("committed"), offset=1, epoch=0)
    assert story.position == (1, 0, 1)
    story.answer(story.poll("validate"), epoch=0, offset=0)
    story.ask("poll")
    assert story.raised == [{"name": "LOG_TRUNCATION", "offset": 0, "epoch": 0}]


@pytest.mark.parametrize("error", ["UNKNOWN_LEADER_EPOCH", "FENCED_LEADER_EPOCH", "NOT_LEADER_OR_FOLLOWER"])
def test_h3_only_a_leader_in_its_own_epoch_says_where_logs_part(story: Story, error: str) -> None:
    """V3: it names the leader epoch of its metadata; where that is not the leader's it asks again, and for metadata."""
    reads_in_epoch_1(story)
    story.hears(A, 2)
    asks = story.poll("validate")
    assert asks["current"] == 2
    story.answer(asks, error, epoch=-1, offset=-1)
    assert story.seen["validates"]
    assert story.raised == []
    story.ask("time", ms=2)
    assert story.poll("metadata")["kind"] == "metadata"
    assert story.poll("validate")["epoch"] == 1


def test_v4_a_position_that_is_sought_with_an_epoch_is_validated_first(story: Story) -> None:
    story.hears(A, 2)
    story.ask("seek", offset=3, epoch=1)
    assert story.seen["validates"]
    asks = story.poll("validate")
    assert (asks["epoch"], asks["current"]) == (1, 2)
    assert not [each for each in story.asked if each["kind"] == "fetch"]


def test_v7_metadata_goes_back_once_a_broker_has_not_known_the_topic(story: Story) -> None:
    """It takes the topic for one that was created anew, though its id is the same."""
    story.begins(A, 2)
    story.fetched(story.poll("fetch"), 2)
    story.ask("time", ms=5_001)
    story.answer(story.poll("metadata"), "UNKNOWN_TOPIC_OR_PARTITION", leader=-1, epoch=-1)
    assert story.seen["metadata"] == {"leader": -1, "epoch": 2}
    for each in [each for each in story.asked if each["kind"] == "fetch"]:
        story.fetched(each, 2)
    story.hears(B, 1)
    assert story.seen["metadata"] == {"leader": B, "epoch": 1}


@pytest.mark.parametrize("to", ["beginning", "end"])
def test_the_epoch_that_list_offsets_gives_is_not_kept(story: Story, to: str) -> None:
    story.hears(A, 2)
    story.ask(to)
    asks = story.poll("list")
    assert (asks["timestamp"], asks["current"]) == (-2 if to == "beginning" else -1, 2)
    story.answer(asks, offset=3, epoch=1)
    assert story.position == (3, -1, 2)
    assert not story.seen["validates"]


def test_a_connection_that_breaks_loses_what_was_asked_on_it(story: Story) -> None:
    story.begins(A, 0)
    fetch = story.poll("fetch")
    story.ask("lose", node=A, down=False)
    assert fetch["id"] not in story.seen["waits"]
    story.asked.remove(fetch)
    story.ask("time", ms=2)
    assert story.poll("fetch")["offset"] == 0


def test_what_is_no_command_is_told(story: Story) -> None:
    with pytest.raises(DriverFailedError, match="nobody knows how"):
        story.ask("guess")
