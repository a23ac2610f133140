"""Structured parts of Kafka's messages: partition states, registrations, fetch states and quorum states."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .pattern import Fields, epoch_of, offset_of, partition_of, set_of, topic_id_of

_PARTITION = r"([A-Za-z0-9._-]{1,249}-\d{1,10}|\[[A-Za-z0-9._-]{1,249},\d{1,10}\])"
_LIST = r"(?:List|ArrayBuffer|Vector|Set|Buffer)?[(\[]([^)\]]*)[)\]]"


def partition_state(text: str) -> Iterator[Fields]:
    """``LeaderAndIsr(...)``, ``PartitionRegistration(...)``, ``(Leader:...)`` and the like."""
    fields: Fields = {}
    if found := re.search(r"\b(?:leader=|Leader:|leader\":)(-?\d{1,10})", text):
        fields["leader"] = int(found[1])
    if found := re.search(r"\b(?:leaderEpoch=|LeaderEpoch:|leader_epoch\":)(-?\d{1,10})", text):
        fields["leader_epoch"] = epoch_of(found[1])
    if found := re.search(r"\b(?:partitionEpoch=|zkVersion=|ZkVersion:)(-?\d{1,10})", text):
        fields["partition_epoch"] = epoch_of(found[1])
    if found := re.search(
        r"\bisrWithBrokerEpoch=(?:List|ArrayBuffer|Vector)?[(\[](.*?)[)\]], leaderRecoveryState", text
    ):
        fields["isr"] = frozenset(int(each) for each in re.findall(r"brokerId=(\d{1,10})", found[1]))
    elif found := re.search(rf"\bisr(?:=|\":){_LIST}|\bISR:([\d,]*),", text):
        fields["isr"] = set_of(found[1] or found[2] or "")
    if found := re.search(r"\breplicas=\[([\d, ]*)\]", text):
        fields["replicas"] = set_of(found[1])
    if found := re.search(r"\btopic ID (\S+)", text):
        fields["topic_id"] = topic_id_of(found[1].rstrip(",."))
    if re.search(r"\b[lL]eaderRecoveryState[=:](?:RECOVERING|1)\b", text):
        fields["recovering"] = True
    yield fields


_CHANGE = re.compile(r"(\w+): (-?\d+|\[[^\]]*\]|\w+) -> (-?\d+|\[[^\]]*\]|\w+)")


def partition_diff(text: str) -> Iterator[Fields]:
    """``isr: [1, 2] -> [1], leader: 2 -> 1, leaderEpoch: 4 -> 5, partitionEpoch: 7 -> 8``."""
    fields: Fields = {}
    for name, before, after in _CHANGE.findall(text):
        match name:
            case "leader":
                fields["leader"] = int(after)
            case "leaderEpoch":
                fields["leader_epoch"] = epoch_of(after)
            case "partitionEpoch":
                fields["partition_epoch"] = epoch_of(after)
            case "isr":
                fields["isr"] = set_of(after)
            case "replicas":
                if set_of(before) != set_of(after):
                    fields["replicas"] = set_of(after)
            case _:
                pass
    yield fields


def loaded_log(text: str) -> Iterator[Fields]:
    """``topicId=..., topic=orders, partition=0, ..., logStartOffset=0, logEndOffset=240) with 1 segments``.

    The high watermark in it is not yet the one of the checkpoint, so it is left out.
    """
    found = re.search(
        r"(?:topicId=(\S+), )?topic=([A-Za-z0-9._-]+), partition=(\d{1,10}),.*?"
        r"logStartOffset=(\d{1,19}), logEndOffset=(\d{1,19})",
        text,
    )
    if found is not None:
        fields: Fields = {
            "partition": f"{found[2]}-{found[3]}",
            "log_start": offset_of(found[4]),
            "log_end": offset_of(found[5]),
        }
        if found[1]:
            fields["topic_id"] = topic_id_of(found[1])
        yield fields


_STATE = re.compile(
    rf"{_PARTITION} -> InitialFetchState\((?:(Some\([^)]*\)|None|Optional\.empty|Optional\[[^\]]*\]),)?"
    r"BrokerEndPoint[(\[]id=(\d{1,10}), [^)\]]*[)\]],(-?\d{1,10}),(-?\d{1,19})\)"
)
_OFFSET_AND_EPOCH = re.compile(rf"{_PARTITION} -> \(offset=(-?\d{{1,19}}), leaderEpoch=(-?\d{{1,10}})\)")
_INITIAL_OFFSET = re.compile(
    rf"{_PARTITION}, initOffset (-?\d{{1,19}}) to broker BrokerEndPoint\((?:id=)?(\d{{1,10}}),"
)


def fetch_states(text: str) -> Iterator[Fields]:
    """Partitions of ``Added fetcher ... for partitions ...``, in the forms of 0.11, 2.2 and 2.7."""
    for name, topic_id, leader, epoch, offset in _STATE.findall(text):
        fields: Fields = {
            "partition": partition_of(name),
            "leader": int(leader),
            "leader_epoch": epoch_of(epoch),
            "offset": offset_of(offset),
        }
        if topic_id:
            fields["topic_id"] = topic_id_of(topic_id)
        yield fields
    broker = re.match(r"(?:BrokerEndPoint\(id=)?(\d{1,10})", text)
    for name, offset, epoch in _OFFSET_AND_EPOCH.findall(text):
        fields = {"partition": partition_of(name), "leader_epoch": epoch_of(epoch), "offset": offset_of(offset)}
        if broker is not None:
            fields["leader"] = int(broker[1])
        yield fields
    for name, offset, leader in _INITIAL_OFFSET.findall(text):
        yield {"partition": partition_of(name), "leader": int(leader), "offset": offset_of(offset)}


def partitions(text: str) -> Iterator[Fields]:
    """Partitions of ``Removed fetcher for partitions Set(orders-0, orders-1)``."""
    for name in re.findall(_PARTITION, text):
        yield {"partition": partition_of(name)}


def requested_isr(text: str) -> Iterator[Fields]:
    """The ISR of ``PendingShrinkIsr(...)`` and ``PendingExpandIsr(...)``, from 2.7 on."""
    if found := re.search(r"isrWithBrokerEpoch=(?:List)?[(\[](.{0,4000}?)[)\]], l", text):
        yield {"isr": frozenset(int(each) for each in re.findall(r"brokerId=(\d{1,10})", found[1]))}
        return
    sent = re.search(r"sentLeaderAndIsr=LeaderAndIsr\(.{0,400}?\bisr=(?:List|ArrayBuffer|Vector)?[(\[]([\d, ]*)", text)
    if sent is not None:
        yield {"isr": set_of(sent[1])}


def quorum_role(text: str) -> Iterator[Fields]:
    """``Leader(...) from CandidateState(...)``: the state, its epoch, leader, vote, high watermark and voters."""
    state, _, before = text.rpartition(" from ")
    if not state:
        state, before = text, ""
    role = re.match(r"\w+", state)
    epoch = re.search(r"\bepoch=(\d{1,10})\b", state)
    if role is None or epoch is None:
        raise ValueError("the quorum state names no epoch of Kafka's")
    fields: Fields = {"role": role[0].removesuffix("State"), "leader_epoch": epoch_of(epoch[1])}
    local = re.search(r"\blocalId=(\d{1,10})|\blocal(?:ReplicaKey|VoterNode)=.{0,60}?\bid=(\d{1,10})", state)
    if fields["role"] == "Leader":
        if local is not None:
            fields["leader"] = int(local[1] or local[2])
        if start := re.search(r"\bepochStartOffset=(\d{1,19})", state):
            fields["log_end"] = offset_of(start[1])
    elif found := re.search(r"\bleader(?:Id)?=(?:OptionalInt\[)?(\d{1,10})", state):
        fields["leader"] = int(found[1])
    if found := re.search(r"\bvoted(?:Id=|Key=(?:Optional\[)?ReplicaKey\(id=)(\d{1,10})", state):
        fields["voted_for"] = int(found[1])
    elif fields["role"] == "Candidate" and local is not None:
        fields["voted_for"] = int(local[1] or local[2])
    watermarks = re.findall(r"\bhighWatermark=Optional\[LogOffsetMetadata\(offset=(\d{1,19})", text)
    if watermarks:
        fields["high_watermark"] = max(map(offset_of, watermarks))
    if found := re.search(r"\bepoch=(\d{1,10})\b", before):
        fields["previous_epoch"] = epoch_of(found[1])
    if found := re.search(r"\bvoters=\[([\d, ]{1,400})\]", state):
        fields["replicas"] = set_of(found[1])
    yield fields


def vote(text: str) -> Iterator[Fields]:
    """``VoteRequestData(...) with epoch 5 is granted``."""
    epoch = re.search(r"\b(?:candidate|replica)Epoch=(\d{1,10})", text)
    candidate = re.search(r"\b(?:candidate|replica)Id=(\d{1,10})", text)
    answer = re.search(r"\bis (granted|rejected)\b", text)
    if epoch is None or candidate is None or answer is None:
        return
    fields: Fields = {
        "leader_epoch": epoch_of(epoch[1]),
        "leader": int(candidate[1]),
        "outcome": "ok" if answer[1] == "granted" else "failed",
    }
    # Since 4.0, a vote that only asks whether an election could succeed binds nobody.
    if re.search(r"\bpreVote=true\b", text):
        fields["role"] = "pre-vote"
    if last := re.search(r"\blastOffset=(\d{1,19})", text):
        fields["log_end"] = offset_of(last[1])
    yield fields
