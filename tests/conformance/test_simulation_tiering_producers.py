"""Idempotent producers of brokers with tiered storage: what they must never see is found, wherever a batch is."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from fencepost.conformance.mutants.patched import Patch
from fencepost.conformance.protocols.tiering.metadata_log import Copy, MetadataView
from fencepost.conformance.protocols.tiering.plan import PLAN
from fencepost.conformance.protocols.tiering.producers import Producers, check_once
from fencepost.conformance.protocols.tiering.responses import Written, WrongAnswer
from fencepost.conformance.protocols.tiering.system import FreeTiering
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.impl.replica.producer_snapshot import ProducerEntry, encode_producers
from fencepost.impl.wire.errors import ErrorCode

from .freely import Freely

BROKERS = Freely("tiering", FreeTiering)
FAULTS = {
    "what comes twice is appended twice": (
        Patch(
            "replica/producers.py",
            "                return sent\n        ahead",
            "                return ErrorCode.NONE\n        ahead",
        ),
        "once more at offset",
    ),
    "what is said of producers beside the log is not read": (
        Patch(
            "replica/producers.py",
            "                self.know(log.read_producers())\n",
            "                log.read_producers()\n",
        ),
        "once more at offset|is refused with OUT_OF_ORDER_SEQUENCE_NUMBER|would be known of producer",
    ),
    "the last batch that is in remote storage begins one too early": (
        Patch("replica/producers.py", "entry.offset_delta) % _SEQUENCES\n", "entry.offset_delta - 1) % _SEQUENCES\n"),
        "is refused with DUPLICATE_SEQUENCE_NUMBER",
    ),
    "a follower that begins anew leaves the producers in remote storage": (
        Patch(
            "tiering/bootstrap.py",
            "self._begin(log_start, offset, epochs, producers)",
            'self._begin(log_start, offset, epochs, b"")',
        ),
        "None is kept as its last sequence",
    ),
    "a follower that is cut below its local log forgets the producers before": (
        Patch("tiering/cutting.py", "truncate_to(offset, producers)", "truncate_to(offset)"),
        "None is kept as its last sequence",
    ),
    "of a segment that goes on past a cut nobody reads what its producers had sent by then": (
        Patch("tiering/known_producers.py", "            known.follow(batches)\n", "            pass\n"),
        "is kept as its last sequence",
    ),
    "a leader keeps nothing of the producers of what it deletes on its disk": (
        Patch("tiering/expiry.py", "log.delete_local_before(to, producers.snapshot())", "log.delete_local_before(to)"),
        "None is kept as its last sequence",
    ),
    "what is uploaded of producers is of the records before": (
        Patch(
            "tiering/copier.py",
            "self._producers.catch_up(log, sealed.end)",
            "self._producers.catch_up(log, sealed.base_offset)",
        ),
        "is kept as its last sequence",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    patch, word = FAULTS[name]
    divergence = BROKERS.first_divergence(PLAN.free, SimulationPlan(seed=1), patch)
    assert divergence is not None and re.search(word, divergence.headline), divergence


def _log(records: list[bytes]) -> tuple[Written, Any]:
    written = Written()
    written.add([(offset, 0, value) for offset, value in enumerate(records)], "a log")
    log = SimpleNamespace(log_start=0, end=len(records), epoch_for=lambda _offset: 0)
    return written, SimpleNamespace(log=log)


def test_what_is_kept_of_producers_is_what_the_records_before_say() -> None:
    producers = Producers(1)
    for value in (b"a", b"b", b"c"):
        producers.batch(value, 0)
    written, _ = _log([b"a", b"b", b"c"])
    lineage = dict.fromkeys(range(3), 0)
    kept = encode_producers([ProducerEntry(1, 0, 1, 1, 0)])
    producers.check_kept(kept, lineage, range(2), written)
    producers.check_kept(b"", lineage, range(2, 2), written)
    with pytest.raises(WrongAnswer, match="below offset 3 cannot be read: "):
        producers.check_kept(kept[:-1], lineage, range(3), written)
    for data, word in ((kept, r"\(1, 1\) is kept .* it is \(2, 2\)"), (b"", r"None is kept .* it is \(2, 2\)")):
        with pytest.raises(WrongAnswer, match=word):
            producers.check_kept(data, lineage, range(3), written)


def test_the_next_batch_and_the_last_one_once_more_are_refused_to_nobody() -> None:
    producers = Producers(1)
    for value in (b"a", b"b", b"c", b"d"):
        producers.batch(value, 0)
    written, here = _log([b"a", b"b"])
    for value in (b"b", b"c"):
        with pytest.raises(WrongAnswer, match="sequence 1 at offset 1"):
            producers.check_refusal(here, value, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, written)
        producers.check_refusal(here, value, ErrorCode.NOT_LEADER_OR_FOLLOWER, written)
    for value in (b"a", b"d", b"of no producer"):
        producers.check_refusal(here, value, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, written)
    written, here = _log([b"x"])
    with pytest.raises(WrongAnswer, match="sequence -1 at offset -1"):
        producers.check_refusal(here, b"a", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, written)
    here.log.log_start = 1
    producers.check_refusal(here, b"a", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, written)


def test_of_what_is_deleted_in_remote_storage_nothing_need_be_known() -> None:
    """A leader that has not heard of it takes it for its own still."""
    producers = Producers(1)
    for value in (b"a", b"b", b"c"):
        producers.batch(value, 0)
    written, here = _log([b"a", b"b"])
    view = MetadataView()
    view.copies[0] = Copy(0, 0, 2, {0: 0, 1: 0}, started_at=0)
    assert view.gone_below({0: 0, 1: 0}) == 0
    view.copies[0].deleting_at = 1
    assert view.gone_below({0: 0, 1: 0}) == 0, "it was never finished"
    view.copies[0].finished_at = 1
    assert [view.gone_below(lineage) for lineage in ({0: 0, 1: 0}, {0: 0, 1: 3}, {0: 3}, {})] == [2, 1, 0, 0]
    refused = here, b"c", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, written
    producers.check_refusal(*refused, 2)
    with pytest.raises(WrongAnswer):
        producers.check_refusal(*refused, 1)


def test_producers_take_turns_and_begin_anew_where_they_are_refused() -> None:
    """The first one seldom: what it has sent comes to lie in remote storage alone."""
    producers = Producers(2)
    sent = {value: producers.batch(value, 0) for value in (b"a", b"b", b"c", b"d", b"e", b"f", b"g")}
    assert producers.retried() == [(value, sent[value]) for value in (b"a", b"g", b"e", b"f")]
    producers.heard(b"f", ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert len(producers.retried()) == 4
    producers.heard(b"f", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert producers.retried() == [(value, sent[value]) for value in (b"a", b"g")]
    assert Producers(0).retried() == [] and not Producers(0).is_once(b"a")
    one = Producers(1)
    assert [one.batch(value, 0) for value in (b"h", b"i")] == [data for _, data in one.retried()]


def test_a_log_has_a_record_of_theirs_once() -> None:
    producers = Producers(1)
    producers.batch(b"a", 0)
    written, _ = _log([b"a", b"b", b"b", b"a"])
    lineage = dict.fromkeys(range(3), 0)
    check_once(0, lineage, written, producers)  # who has sent the other has no producer id
    with pytest.raises(WrongAnswer, match="at offset 0 once more at offset 3"):
        check_once(0, {**lineage, 3: 0}, written, producers)
