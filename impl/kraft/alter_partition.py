"""AlterPartition: a leader's ISR (KIP-497), without brokers that may not be in it (KIP-841, KIP-903).

The order of the checks is that of Kafka's ``ReplicationControlManager.validateAlterPartitionData``.
"""

from __future__ import annotations

from ..metadata import changes
from ..metadata.elections import PartitionImage
from ..metadata.image import Image, PartitionKey
from ..wire.controller import NO_BROKER_EPOCH, AlterPartitionRequest, AlterPartitionResponse, IsrMember
from ..wire.errors import ErrorCode
from .decision import Decision


def alter_partition(image: Image, body: AlterPartitionRequest) -> Decision:
    """Take the ISR up, in the same leader epoch, or say why not and what there is.

    A leader that asks for the ISR that holds gets a new partition epoch, unlike in Kafka, where nothing is changed:
    proposals of it that are still on their way are void then, and it need not wait for whom they name.
    """
    known = image.brokers.get(body.broker)
    if known is None or known.epoch != body.broker_epoch:
        return Decision(AlterPartitionResponse(ErrorCode.STALE_BROKER_EPOCH, body.partition))
    key = PartitionKey(body.topic_id, body.partition.partition)
    partition = image.partitions.get(key)
    if partition is None:
        gone = body.topic_id not in image.topics
        error = ErrorCode.UNKNOWN_TOPIC_ID if gone else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return Decision(AlterPartitionResponse(error, body.partition))
    error = _error(image, partition, body)
    if error is not ErrorCode.NONE:
        return Decision(_answer(error, body, partition))
    members = {member.broker for member in body.new_isr}
    after = partition.with_isr(tuple(each for each in partition.replicas if each in members))
    return Decision(_answer(ErrorCode.NONE, body, after), (changes.isr(key, after),))


def _error(image: Image, partition: PartitionImage, body: AlterPartitionRequest) -> ErrorCode:
    if body.leader_epoch > partition.leader_epoch or body.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER  # it knows of a later state, so this controller is no longer the active one
    if body.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_REPLICA
    if body.broker != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if body.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    members = [member.broker for member in body.new_isr]
    if len(set(members)) < len(members) or not set(members) <= set(partition.replicas):
        return ErrorCode.INVALID_REQUEST
    if partition.leader not in members:
        return ErrorCode.INVALID_REQUEST
    eligible = all(_is_eligible(image, partition, member) for member in body.new_isr)
    return ErrorCode.NONE if eligible else ErrorCode.INELIGIBLE_REPLICA


def _is_eligible(image: Image, partition: PartitionImage, member: IsrMember) -> bool:
    """Not fenced, not shutting down, and the very process that the leader means: another one has lost what that had.

    A leader that does not know the epoch may keep a member, and not let one in.
    """
    if not image.alive(member.broker):
        return False
    if member.broker_epoch == NO_BROKER_EPOCH:
        return member.broker in partition.isr
    return member.broker_epoch == image.brokers[member.broker].epoch


def _answer(error: ErrorCode, body: AlterPartitionRequest, state: PartitionImage) -> AlterPartitionResponse:
    isr = frozenset(state.isr)
    return AlterPartitionResponse(error, body.partition, state.leader, state.leader_epoch, isr, state.partition_epoch)
