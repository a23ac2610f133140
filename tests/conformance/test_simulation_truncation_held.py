"""What coordinator and consumer say of commits and positions beyond the model's words: planted faults found."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.protocols.truncation.binding import TRUNCATION
from fencepost.conformance.protocols.truncation.client_requests import Asking
from fencepost.conformance.protocols.truncation.commits import WRONG, Ledger, OfConsumer, WrongAnswer
from fencepost.conformance.protocols.truncation.plan import PLAN
from fencepost.conformance.protocols.truncation.producer import check_acknowledged
from fencepost.conformance.protocols.truncation.system import RunningConsumer
from fencepost.conformance.protocols.truncation.system_partition import READER, TIMEOUT_MS
from fencepost.conformance.simulation.divergence import Divergence
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.impl.consumer import Commit, OffsetAndMetadata
from fencepost.impl.replica.partition import PartitionState, Role
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    Envelope,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    ProduceRequest,
    TopicPartition,
)
from fencepost.model.core.ground import ground
from fencepost.model.protocols.truncation import truncation

from .seeds import first_divergence


@cache
def portfolio() -> tuple[Transitions, ...]:
    traced = truncation.traced("kip-320-client")
    return tuple(
        Transitions(ground(traced, dict(zip(truncation.constants, map(int, size.split("/")), strict=True))), TRUNCATION)
        for size in PLAN.free
    )


def first_parting(parts: Parts, plan: SimulationPlan) -> Divergence | None:
    """How the first run of the plan parts that does."""
    return first_divergence(RunningConsumer(parts), lambda number: portfolio()[number % len(portfolio())], plan)


FAULTS = {
    "a commit of one group is taken for that of another": (
        Patch(
            "offsets/coordinator.py",
            "        return self._write(OffsetKey(request.group, request.partition), committed)\n",
            "        return self._write(OffsetKey('g', request.partition), committed)\n",
        ),
        "acknowledged",
    ),
    "the metadata of a commit is lost": (
        Patch("offsets/coordinator.py", "*epochs, request.metadata, self", '*epochs, "", self'),
        "acknowledged",
    ),
    "a commit of a partition that nobody knows is stored": (
        Patch("offsets/coordinator.py", "        if not self._known(request.partition):\n", "        if size == -1:\n"),
        "UNKNOWN_TOPIC_OR_PARTITION",
    ),
    "the application never hears of its commit": (
        Patch("consumer/consumer.py", "                sent.commit.error = response.error\n", ""),
        "the consumer says",
    ),
    "a refused commit is said to be done": (
        Patch("consumer/consumer.py", "sent.commit.error = response.error", "sent.commit.error = ErrorCode.NONE"),
        "the consumer says",
    ),
    "a commit that nobody answers is never given up": (
        Patch(
            "consumer/consumer.py",
            "                sent.commit.error = ErrorCode.REQUEST_TIMED_OUT\n",
            "                pass\n",
        ),
        "waits on",
    ),
    "the consumer does not remember what was committed": (
        Patch(
            "consumer/consumer.py",
            "                    partition.committed = sent.commit.offset\n",
            "                    pass\n",
        ),
        "the consumer knows of",
    ),
    "commits go nowhere once one has timed out": (
        Patch(
            "consumer/consumer.py",
            "                sent.commit.error = ErrorCode.REQUEST_TIMED_OUT\n",
            "                sent.commit.error = ErrorCode.REQUEST_TIMED_OUT\n"
            "                self._coordinator = NO_LEADER\n",
        ),
        "any more, and yet",
    ),
    "a poll sends for the first partition only": (
        Patch(
            "consumer/consumer.py",
            "                self._advance(partition, self.config.max_bytes)\n        return records\n",
            "                self._advance(partition, self.config.max_bytes)\n"
            "            break\n        return records\n",
        ),
        "",
    ),
    "each partition has the limit of a poll for itself": (
        Patch("consumer/consumer.py", "given = partition.take(limit - len(records))", "given = partition.take(limit)"),
        "poll gives",
    ),
    "the same partition is always served first": (
        Patch(
            "consumer/consumer.py",
            "                self._partitions[name] = self._partitions.pop(name)\n",
            "",
        ),
        "by their turns",
    ),
    "one request that has timed out is given up, and the others are forgotten": (
        Patch(
            "consumer/consumer.py",
            "                partition.timed_out(now)\n",
            "                partition.timed_out(now)\n                self._sent.clear()\n                break\n",
        ),
        "",
    ),
    "what one partition is told of its leader all go by": (
        Patch(
            "consumer/consumer.py",
            "            partition.answered(response, self._clock.now())\n",
            "            partition.answered(response, self._clock.now())\n"
            "            for other in self._partitions.values():\n"
            "                if isinstance(response, MetadataResponse) and not response.error:\n"
            "                    other.take_metadata(response)\n",
        ),
        "",
    ),
    "whoever seeks to the nearest goes to the old offset": (
        Patch(
            "consumer/partition.py",
            "            self.move(found, self._unbroken_from(found) if exact else found.offset)\n",
            "            self.move(near, self._unbroken_from(found) if exact else found.offset)\n",
        ),
        "the position moves",
    ),
    "whoever seeks to the nearest goes to the end of the epoch, ahead of it": (
        Patch("consumer/position.py", "offset = min(end_offset, position.offset)", "offset = end_offset"),
        "",
    ),
    "a partition that is assigned anew forgets the others": (
        Patch("consumer/consumer.py", "kept.get(name) or Partition(name, self.config)", "Partition(name, self.config)"),
        "",
    ),
    "nobody is asked who leads where the leader does not answer": (
        Patch(
            "consumer/partition.py",
            "        self.last_error = ErrorCode.REQUEST_TIMED_OUT\n        self._retry(now)\n",
            "        self.last_error = ErrorCode.REQUEST_TIMED_OUT\n",
        ),
        "before it has asked who leads",
    ),
    "a commit that is deleted is there again after a start": (
        Patch("offsets/coordinator.py", "                    offsets.pop(key, None)\n", "                    pass\n"),
        "would be committed",
    ),
    "a commit is deleted in memory alone": (
        Patch(
            "offsets/coordinator.py",
            "        return self._write(key, None) if key in self._offsets else ErrorCode.NONE\n",
            "        self._offsets.pop(key, None)\n        return ErrorCode.NONE\n",
        ),
        "would be committed",
    ),
    "the metadata of a commit is not given back": (
        Patch(
            "consumer/partition.py", "response.serving_epoch, metadata=response.metadata\n", "response.serving_epoch\n"
        ),
        "the position moves",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    patch, word = FAULTS[name]
    with patched(patch) as root:
        divergence = first_parting(Parts.of(root), SimulationPlan())
    assert divergence is not None
    assert word in divergence.headline, divergence.headline


BESIDE = TopicPartition("t", 1)
COMMIT = OffsetCommitRequest("g", BESIDE, 3, 1, 2, "m")
DONE = OffsetCommitResponse(ErrorCode.NONE)
FAILED = OffsetCommitResponse(ErrorCode.KAFKA_STORAGE_ERROR)
FETCH = OffsetFetchRequest("g", BESIDE)
FOUND = OffsetFetchResponse(ErrorCode.NONE, 3, 1, 2, "m")
NONE = OffsetFetchResponse(ErrorCode.NONE)


def test_what_was_acknowledged_is_given_and_is_there_after_a_start() -> None:
    ledger = Ledger([BESIDE])
    ledger.asked(FETCH, NONE, stays=True)
    ledger.asked(COMMIT, DONE, stays=True)
    ledger.asked(FETCH, FOUND, stays=True)
    ledger.holds(lambda _: FOUND)
    ledger.started(lambda _: FOUND)
    with pytest.raises(WrongAnswer, match="acknowledged is Committed"):
        ledger.asked(FETCH, NONE, stays=True)
    with pytest.raises(WrongAnswer, match="a coordinator has"):
        ledger.holds(lambda _: NONE)
    with pytest.raises(WrongAnswer, match="a coordinator starts with"):
        ledger.started(lambda _: NONE)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("answer", [None, FAILED])
@pytest.mark.parametrize("found", [NONE, FOUND])
def test_of_a_commit_that_failed_nobody_knows(answer: OffsetCommitResponse | None, found: OffsetFetchResponse) -> None:
    ledger = Ledger([BESIDE])
    with pytest.raises(WrongAnswer):
        ledger.asked(COMMIT, answer, stays=True)
    ledger.asked(COMMIT, answer, stays=False)
    ledger.asked(FETCH, NONE, stays=False)
    ledger.started(lambda _: found)
    ledger.asked(FETCH, found, stays=True)


def test_what_was_deleted_stays_so() -> None:
    ledger = Ledger([BESIDE])
    key = (COMMIT.group, BESIDE)
    ledger.asked(COMMIT, DONE, stays=True)
    with pytest.raises(WrongAnswer, match="is to be deleted, and that fails"):
        ledger.deleted(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, stays=True)
    with pytest.raises(WrongAnswer, match="is to be deleted, and that fails"):
        ledger.deleted(key, ErrorCode.KAFKA_STORAGE_ERROR, stays=True)
    ledger.deleted(key, ErrorCode.NONE, stays=True)
    ledger.asked(FETCH, NONE, stays=True)
    ledger.started(lambda _: NONE)
    with pytest.raises(WrongAnswer, match="a coordinator starts with"):
        ledger.started(lambda _: FOUND)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("found", [NONE, FOUND])
def test_of_a_deletion_that_failed_nobody_knows(found: OffsetFetchResponse) -> None:
    ledger = Ledger([BESIDE])
    ledger.asked(COMMIT, DONE, stays=True)
    ledger.deleted((COMMIT.group, BESIDE), ErrorCode.KAFKA_STORAGE_ERROR, stays=False)
    ledger.started(lambda _: found)
    ledger.asked(FETCH, found, stays=True)


def told(
    body: MetadataRequest | FetchRequest | FetchResponse, number: int, *, node: int = 0, answer: bool = False
) -> tuple[str, Envelope]:
    """What the consumer has sent to a node, or heard from one."""
    ends = (node, READER) if answer else (READER, node)
    return "delivered" if answer else "sent", Envelope(*ends, number, body)


ASKS = MetadataRequest(BESIDE)
READS = FetchRequest(-1, BESIDE, 0, 1)
LEADS_NO_MORE = FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("later", "heard"), [(TIMEOUT_MS, []), (1, [told(LEADS_NO_MORE, 1, answer=True)])], ids=["silence", "refusal"]
)
@pytest.mark.parametrize("asks", [True, False])
def test_a_leader_in_doubt_is_not_asked_before_somebody_says_who_leads(
    later: int, heard: list[tuple[str, Envelope]], asks: bool
) -> None:
    asking = Asking(TIMEOUT_MS)
    asking.look(READER, [told(READS, 1)], lambda _: True, 0, woken=False)
    asking.look(READER, heard, lambda _: not heard, later, woken=True)
    next_one = [told(ASKS, 2, node=1)] if asks else []
    if asks:
        asking.look(READER, [*next_one, told(READS, 3)], lambda _: True, later, woken=True)
    else:
        with pytest.raises(WrongAnswer, match="before it has asked who leads"):
            asking.look(READER, [told(READS, 3)], lambda _: True, later, woken=True)


def test_whoever_seeks_or_begins_anew_doubts_nobody() -> None:
    asking = Asking(TIMEOUT_MS)
    asking.look(READER, [told(READS, 1)], lambda _: False, 0, woken=False)
    asking.look(READER, [told(READS, 2)], lambda _: True, TIMEOUT_MS, woken=True)
    asking.forget()
    asking.look(READER, [told(READS, 3)], lambda _: True, 3 * TIMEOUT_MS, woken=True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_to_be_refused_is_refused(wrong: str) -> None:
    ledger, request = Ledger([BESIDE]), WRONG[wrong](COMMIT)
    wanted = ledger.wanted(request)
    assert wanted is not ErrorCode.NONE
    ledger.asked(request, OffsetCommitResponse(wanted), stays=True)
    with pytest.raises(WrongAnswer, match=wanted.name):
        ledger.asked(request, DONE, stays=True)


def test_the_consumer_tells_what_it_hears_of_a_commit() -> None:
    commits, commit = OfConsumer(100), Commit(BESIDE, OffsetAndMetadata(3))
    commits.sent(7, commit, 0, in_peace=True)
    commits.look(99, woken=True)
    with pytest.raises(WrongAnswer, match="waits on"):
        commits.look(100, woken=True)
    commits.time_passes()
    with pytest.raises(WrongAnswer, match="nothing goes wrong"):
        commits.time_passes()
    commit.error = ErrorCode.NONE
    commits.time_passes()
    with pytest.raises(WrongAnswer, match="heard no answer"):
        commits.look(0, woken=False)
    assert commits.heard(7, ErrorCode.NONE) is commit
    assert commits.heard(7, ErrorCode.NONE) is None
    with pytest.raises(WrongAnswer, match="knows of None"):
        commits.knows(commit, None)


ASKED = ProduceRequest(TopicPartition("t", 0), -1, b"")
WANTED = ((0, 0, b"c"), (1, 0, b"d"))
LEADS = PartitionState(
    Role.LEADER, 0, 1, frozenset({0}), frozenset({0}), 3, (0, 1), frozenset(), 1, 4, 3, 5, ((0, 1), (1, 4)), (), 0
)
LOG = ((1, 0, b"b"), (2, 0, b"c"), (3, 0, b"d"), (4, 1, b"e"))


def test_what_a_producer_is_told_is_safe() -> None:
    check_acknowledged(ASKED, 2, WANTED, LEADS, LOG)
    with pytest.raises(WrongAnswer, match="acks=-1 is acknowledged up to 5"):
        check_acknowledged(ASKED, 3, WANTED, LEADS, LOG)
    with pytest.raises(WrongAnswer, match="acks=1 is acknowledged up to 4, and safe is up to 3"):
        check_acknowledged(replace(ASKED, acks=1), 2, WANTED, LEADS, LOG)
    with pytest.raises(WrongAnswer, match="another record"):
        check_acknowledged(ASKED, 1, WANTED, LEADS, LOG)
    with pytest.raises(WrongAnswer, match="twice"):
        check_acknowledged(ASKED, 2, WANTED, LEADS, (*LOG[:3], (4, 1, b"b")))
    # What is deleted nobody can look at.
    check_acknowledged(ASKED, 0, WANTED[:1], LEADS, LOG)


@pytest.mark.nightly(seconds=30)
def test_a_repeat_that_is_acknowledged_too_early_is_found() -> None:
    patch = Patch(
        "replica/leader.py",
        "            base_offset, last_offset = sent.base_offset, sent.last_offset\n",
        "            return ProduceResponse(ErrorCode.NONE, sent.base_offset, self._log.log_start)\n",
    )
    with patched(patch) as root:
        divergence = first_parting(Parts.of(root), SimulationPlan())
    assert divergence is not None and "is acknowledged up to" in divergence.headline
