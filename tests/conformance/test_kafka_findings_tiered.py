"""TK1, TK4 and TK17 of docs/findings/, on Kafka's own brokers with remote storage, each beside its control run.

One cluster for all of them. The store is a folder, by a plugin of ours in the brokers' processes; the remote log
metadata are Kafka's own topic.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fencepost.conformance.kafka.cluster.stage import Stage
from fencepost.conformance.kafka.cluster.tiers import settings
from fencepost.conformance.kafka.cluster.tk1 import NEW as AFTER_UNCLEAN
from fencepost.conformance.kafka.cluster.tk1 import NEXT, tk1
from fencepost.conformance.kafka.cluster.tk4 import NEW, OLD, tk4
from fencepost.conformance.kafka.cluster.tk17 import NEW as COMMITTED
from fencepost.conformance.kafka.cluster.tk17 import tk17

from .kafka_jvm import needs_kafka
from .test_kafka_findings import in_the_docs

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """One cluster for all of these."""
    with needs_kafka():
        made = Stage(of_all=settings())
    with made:
        yield made
        assert made.gate.faults == [], "the proxies must understand all that is said"


@pytest.mark.nightly(seconds=40)
def test_tk4_what_is_in_remote_storage_is_deleted(stage: Stage) -> None:
    """Clean elections alone, and a store that one broker cannot read for a time."""
    said: list[str] = []
    found = tk4(stage, "tk4", fails=True, say=said.append)
    assert in_the_docs(said, "tk4", "tk4")
    assert found.acknowledged == {value: offset for offset, value in enumerate((*OLD, *NEW))}
    assert found.gone == list(OLD) and found.lost and (found.uploaded, found.remain) == (4, 1)
    assert found.read == [] and found.thrown == "OffsetOutOfRangeException"


@pytest.mark.nightly(seconds=25)
def test_tk4_not_where_the_store_does_not_fail(stage: Stage) -> None:
    """The control run: the same steps, but for that."""
    said: list[str] = []
    found = tk4(stage, "tk4-control", fails=False, say=said.append)
    assert in_the_docs(said, "tk4-control", "tk4")
    assert [each.value for each in found.read] == [*OLD, *NEW] and found.thrown is None
    assert found.gone == [] and not found.lost and (found.uploaded, found.remain) == (4, 4)


@pytest.mark.nightly(seconds=25)
def test_tk1_what_was_never_uploaded_is_deleted_on_disks(stage: Stage) -> None:
    """One unclean election, then records that both replicas had; a clean one loses them."""
    said: list[str] = []
    found = tk1(stage, "tk1", fails=True, say=said.append)
    assert in_the_docs(said, "tk1", "tk1")
    assert found.acknowledged == {value: offset for offset, value in enumerate((*AFTER_UNCLEAN, *NEXT))}
    assert found.gone == list(AFTER_UNCLEAN[:-1]) and found.lost
    assert not {each.value for each in found.read} & set(found.gone)


@pytest.mark.nightly(seconds=25)
def test_tk1_not_where_uploads_keep_up(stage: Stage) -> None:
    """The control run: the leader uploads what is acknowledged before the other deletes it."""
    said: list[str] = []
    found = tk1(stage, "tk1-control", fails=False, say=said.append)
    assert in_the_docs(said, "tk1-control", "tk1")
    assert [each.value for each in found.read] == [*AFTER_UNCLEAN, *NEXT] and not found.lost


@pytest.mark.nightly(seconds=30)
def test_tk17_what_lies_below_a_former_local_log_start_is_let_go(stage: Stage) -> None:
    """One unclean election, then records that both replicas had; a clean one loses the first of them."""
    said: list[str] = []
    found = tk17(stage, "tk17", deletes=True, say=said.append)
    assert in_the_docs(said, "tk17", "tk17")
    assert found.acknowledged == {value: offset for offset, value in enumerate(COMMITTED)}
    assert found.gone == list(COMMITTED[:1]) and [each.value for each in found.read] == list(COMMITTED[1:])


@pytest.mark.nightly(seconds=25)
def test_tk17_not_where_nothing_was_deleted_before(stage: Stage) -> None:
    """The control run: the log began at 0."""
    said: list[str] = []
    found = tk17(stage, "tk17-control", deletes=False, say=said.append)
    assert in_the_docs(said, "tk17-control", "tk17")
    assert [each.value for each in found.read] == list(COMMITTED) and not found.lost
