"""Replay of metadata logs checked against Kafka's own controller and MetadataLoader, on generated logs."""

from __future__ import annotations

import base64
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fencepost.conformance.kafka.jars import REPLAYS
from fencepost.conformance.kafka.process import DriverFailedError, Jvm
from fencepost.model.core.errors import BadInput
from fencepost.traces.kafka.broker import BrokerFiles, read_broker
from fencepost.traces.kafka.metadata import MetadataError, MetadataRecord, decode_metadata_record, is_newer
from fencepost.traces.kafka.rejection import Refusal
from fencepost.traces.kafka.replay_rules import FEATURES, ReplayRules

from .controller_logs import ODD, ControllerLog, controller_logs
from .encoder import Partition, batch, encode, metadata_log, snapshot_file, write_broker

pytestmark = pytest.mark.kafka

SEED = 44
BY_DAY, BY_NIGHT = 400, 10_000
DAMAGED = 300
A_LINE = 50
"""Logs that the JVM is sent at once."""
LOG = "__cluster_metadata-0"


class Outcome(NamedTuple):
    """Offset of the first rejected record, or its number in the snapshot; ``None`` if every record is replayed."""

    at: int | None
    in_snapshot: bool = False
    brokers_too: bool = False


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """A JVM that replays logs."""
    try:
        made = Jvm(drives=REPLAYS)
    except BadInput as missing:
        pytest.skip(f"absent: Apache Kafka: {missing}")
    yield made
    made.close()


def write(root: Path, log: ControllerLog) -> Path:
    """Write a log as the directory of a controller."""
    if log.snapshot is None:
        data, base = metadata_log([]), 1
    else:
        data, base = b"", log.start
    for values in log.batches:
        if values:
            data += batch(base, values, epoch=1)
            base += len(values)
    start = 0 if log.snapshot is None else log.start
    snapshots = {} if log.snapshot is None else {(log.start, 1): snapshot_file(log.snapshot)}
    files = Partition({start: data}, [(1, start)], None, log_start=start or None, topic_id=None, snapshots=snapshots)
    return write_broker(root, 100, {LOG: files})


def read(root: Path, log: ControllerLog) -> BrokerFiles:
    """Write a log and read it."""
    return read_broker(write(root, log))


def fenceposts(broker: BrokerFiles) -> Outcome:
    """Fencepost's outcome."""
    assert broker.metadata is not None and not broker.problems, broker.problems
    rejection = broker.metadata.rejection
    if rejection is None:
        return Outcome(None)
    return Outcome(rejection.offset, rejection.in_snapshot, rejection.refusal.brokers_too)


def kafkas(jvm: Jvm, logs: Iterable[ControllerLog]) -> list[tuple[Outcome, str]]:
    """Kafka's outcomes, with its words."""
    asked = [_asked(each) for each in logs]
    answer = jvm.ask("replay", logs=asked)
    found = []
    for log, result in zip(asked, answer["results"], strict=True):
        faults = [each for each in (result["controller"], result["loader"]) if each is not None]
        if not faults:
            found.append((Outcome(None), ""))
            continue
        first = min(faults, key=lambda each: (each["at"] < 0, each["at"]))
        loader = result["loader"]
        too = loader is not None and loader["at"] == first["at"]
        in_snapshot = log["snapshot"] is not None and "snapshot" in first["why"]
        found.append((Outcome(first["at"], in_snapshot, too), first["why"]))
    return found


def _asked(log: ControllerLog) -> dict[str, Any]:
    text = [[base64.b64encode(value).decode() for value in values] for values in log.batches]
    if log.snapshot is None:
        return {"batches": text, "snapshot": None}
    snapshot = [base64.b64encode(value).decode() for value in log.snapshot]
    return {"batches": [each for each in text if each], "snapshot": snapshot, "end": log.start}


def differences(jvm: Jvm, seed: int, count: int, folder: Path) -> tuple[list[str], Counter[str], Counter[str]]:
    """Logs with different outcomes; and by kind of odd record, how many logs have it and how many Kafka rejects."""
    found: list[str] = []
    seen: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    number = 0
    logs = controller_logs(seed, count)
    while some := list(islice(logs, A_LINE)):
        for log, (expected, why) in zip(some, kafkas(jvm, some), strict=True):
            got = fenceposts(read(folder / str(number), log))
            seen[log.fault] += 1
            rejected[log.fault] += expected.at is not None
            if got != expected:
                found.append(
                    f"seed {seed}, log {number} ({log.fault or 'no odd record'}): {got}, not {expected}: {why}"
                )
            number += 1
    return found, seen, rejected


def check(jvm: Jvm, count: int, folder: Path) -> tuple[Counter[str], Counter[str]]:
    found, seen, rejected = differences(jvm, SEED, count, folder)
    assert not found, f"{len(found)} of {count} logs: " + "\n".join(found[:10])
    assert rejected[""] == 0, "a log without an odd record is rejected"
    return seen, rejected


def test_generated_logs_replay_as_in_kafka(jvm: Jvm, tmp_path: Path) -> None:
    seen, rejected = check(jvm, BY_DAY, tmp_path)
    assert BY_DAY / 3 < seen[""] < BY_DAY * 2 / 3
    assert len(rejected) > len(ODD) / 2 and rejected.total() > BY_DAY / 5


@pytest.mark.nightly(seconds=500)
def test_many_generated_logs_replay_as_in_kafka(jvm: Jvm, tmp_path: Path) -> None:
    seen, rejected = check(jvm, BY_NIGHT, tmp_path)
    assert set(seen) == {"", "transaction in a snapshot", *ODD}
    assert rejected.total() > BY_NIGHT / 5


def test_supported_levels_are_kafkas(jvm: Jvm) -> None:
    """The lowest and the highest level of each feature replay, and those beside them do not."""
    start = encode("FeatureLevelRecord", Name="metadata.version", FeatureLevel=7)
    cases = [
        (name, level, low <= level <= high)
        for name, (low, high) in FEATURES.items()
        for level in {low - 1, low, high, high + 1}
    ]
    logs = [
        ControllerLog([[], [start, encode("FeatureLevelRecord", Name=name, FeatureLevel=level)]])
        for name, level, _ in cases
    ]
    for case, (outcome, why) in zip(cases, kafkas(jvm, logs), strict=True):
        assert (outcome.at is None) is case[2], (case, why)
    assert set(jvm.ask("features")["features"]) == set(FEATURES)


def test_damaged_records_decode_as_in_kafka(jvm: Jvm) -> None:
    """A record of a known type and version that does not decode here does not decode there, and the reverse."""
    chance = random.Random(SEED)
    values = [value for log in controller_logs(SEED, 40) for _, value in log.values]
    seen: Counter[bool] = Counter()
    for _ in range(DAMAGED):
        data = bytearray(chance.choice(values))
        for _ in range(chance.randint(1, 2)):
            data[chance.randrange(1, len(data))] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        if chance.random() < 0.3:
            del data[chance.randrange(1, len(data)) :]
        try:
            found = decode_metadata_record(bytes(data))
        except MetadataError:
            decodes = False
        else:
            if found is None or is_newer(found):
                continue
            decodes = True
        try:
            jvm.ask("replay", logs=[_asked(ControllerLog([[bytes(data)]]))])
        except DriverFailedError:
            kafkas_decodes = False
        else:
            kafkas_decodes = True
        assert decodes is kafkas_decodes, data.hex()
        seen[decodes] += 1
    assert min(seen[True], seen[False]) > DAMAGED / 10


@pytest.mark.parametrize("rule", ["TopicRecord", "UnregisterBrokerRecord", "ProducerIdsRecord"])
def test_a_missing_rule_is_found(jvm: Jvm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    """A replay that rejects no record of a type differs from Kafka's."""
    replay = ReplayRules.replay

    def lenient(rules: ReplayRules, record: MetadataRecord, *, in_snapshot: bool = False) -> Refusal | None:
        refusal = replay(rules, record, in_snapshot=in_snapshot)
        return None if record.type == rule else refusal

    monkeypatch.setattr(ReplayRules, "replay", lenient)
    found, _, _ = differences(jvm, SEED, 300, tmp_path)
    assert found and all(f"{rule} record" in each for each in found)
