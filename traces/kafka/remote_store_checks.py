"""Checks of a remote store's objects against the remote log metadata, which say what is there (KIP-405).

Directories and store are to be of one time: a segment that is deleted between the two looks like one that is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..text import counted
from .remote_metadata import SegmentState
from .remote_store import EPOCHS, LOG
from .verdicts import CheckResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from uuid import UUID

    from .remote_metadata import RemoteSegment
    from .remote_store import RemoteStore, StoredSegment

STORED = "remote_segments_are_stored"
EPOCHS_STORED = "stored_epochs_are_the_segments"
LEFT_OVER = "stored_objects_have_a_segment"


def check_store(
    key: tuple[str, int],
    topic_id: UUID,
    segments: Sequence[RemoteSegment],
    uncommitted: Collection[UUID],
    store: RemoteStore,
    doubt: str,
) -> list[CheckResult]:
    """All checks of one partition's objects.

    ``segments``: what the metadata say up to their high watermark; of ``uncommitted`` ones they say more above it.
    ``doubt``: why they may not be all that there is; empty where they are. Raises BadInput where the store fails.
    """
    subject = f"{key[0]}-{key[1]}"
    readable = [each for each in segments if each.state is SegmentState.COPY_SEGMENT_FINISHED]
    readable = [each for each in readable if each.copy.id not in uncommitted]
    mine = {id_: each for id_, each in store.segments.items() if (each.topic, each.partition) == key}
    mine = {id_: each for id_, each in mine.items() if each.topic_id == topic_id}
    unsure: Verdict = "unknown" if doubt else "holds"
    results = []
    for check, wrong_of in ((STORED, _not_stored), (EPOCHS_STORED, _other_epochs)):
        wrong = [told for each in readable if (told := wrong_of(each, mine, store)) is not None]
        if wrong:
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            message, where = wrong[0]
            results.append(CheckResult(check, "violated", subject, message + more, where))
        else:
            found = counted(len(readable), "remote segment")
            results.append(CheckResult(check, unsure, subject, f"{found}; {doubt}" if doubt else found))
    known = {each.copy.id for each in segments if each.state < SegmentState.DELETE_SEGMENT_FINISHED} | set(uncommitted)
    left = sorted(mine.keys() - known, key=lambda id_: (mine[id_].start, id_))
    if left:
        name = next(iter(mine[left[0]].parts.values())).name
        message = f"{counted(len(left), 'segment')} in the store that the metadata do not have, or have deleted"
        results.append(CheckResult(LEFT_OVER, "unknown", subject, message, name, informative=True))
    return results


def _named(segment: RemoteSegment) -> str:
    copy = segment.copy
    return f"the remote segment of offsets {copy.start} to {copy.end}, of broker {copy.broker},"


def _not_stored(
    segment: RemoteSegment, stored: dict[UUID, StoredSegment], store: RemoteStore
) -> tuple[str, str] | None:
    """What is wrong with a segment's objects, and where."""
    found = stored.get(segment.copy.id)
    if found is None or LOG not in found.parts:
        return f"{_named(segment)} is not in the store", store.where
    log = found.parts[LOG]
    if found.start != segment.copy.start:
        return f"{_named(segment)} is stored as one from offset {found.start} on", log.name
    sizes = {LOG: segment.copy.size, **dict(segment.objects)}
    for part, size in sizes.items():
        there = found.parts.get(part)
        if there is None:
            return f"{_named(segment)} lacks its {part} in the store", log.name
        if there.size != size:
            return f"{_named(segment)} has a {part} of {there.size} bytes in the store, not {size}", there.name
    return None


def _other_epochs(
    segment: RemoteSegment, stored: dict[UUID, StoredSegment], store: RemoteStore
) -> tuple[str, str] | None:
    """A stored leader epoch checkpoint that is none, or says other epochs of the segment than the metadata.

    It begins at the uploader's log start, and a follower builds its own from it.
    """
    found = stored.get(segment.copy.id)
    if found is None or EPOCHS not in found.parts:
        return None
    name = found.parts[EPOCHS].name
    entries = store.epochs(segment.copy.id)
    if entries is None:
        return f"{_named(segment)} has a leader epoch checkpoint in the store that cannot be read", name
    start, end = segment.copy.start, segment.copy.end
    last = [each for each in entries if each.start_offset <= start][-1:]
    told = [(each.epoch, max(start, each.start_offset)) for each in entries if start < each.start_offset <= end]
    told = [*((each.epoch, start) for each in last), *told]
    wanted = [(each.epoch, each.start_offset) for each in segment.copy.epochs]
    if told != wanted:
        shown = [", ".join(f"{epoch} from {offset}" for epoch, offset in each) or "none" for each in (told, wanted)]
        return f"{_named(segment)} is stored with the leader epochs {shown[0]}, and its metadata say {shown[1]}", name
    return None
