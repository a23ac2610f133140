"""How a cleaned segment takes the place of those that it was made of, whatever crash comes between.

Kafka's names and order (``UnifiedLog.replaceSegments``, ``LogLoader``). What is written has ``.cleaned`` behind its
names, until it is whole and synced. Then it is renamed ``.swap``: from there on it counts, and opening the log
completes what a crash has ended. The segments that it replaces are renamed ``.deleted``, it gets its own name, they are
removed. The folder is synced between these steps, so that no crash shows two of them in another order.

A crash may leave segments that were to be replaced. Those that begin below the end of the cleaned one go: some of what
they hold is in it. Those behind that hold nothing that survived the cleaning, and no harm is done where they stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..files.interface import Files
from .segment import INDEX_SUFFIX, LOG_SUFFIX, Segment, segment_name

CLEANED = ".cleaned"
SWAP = ".swap"
DELETED = ".deleted"


def swap_in(files: Files, folder: str, bases: Sequence[int], removing: list[str], renaming: list[str]) -> None:
    """Put the ``.cleaned`` segment of the first of these base offsets, which is synced, in place of all of them.

    The caller has closed their files. ``removing`` and ``renaming`` name, where this raises ``OSError``, what may be
    there again after a crash, and what may not be.
    """
    stems = [f"{folder}/{segment_name(base)}" for base in bases]
    cleaned = [stems[0] + kind for kind in (INDEX_SUFFIX, LOG_SUFFIX)]
    _rename(files, folder, [(path + CLEANED, path + SWAP) for path in cleaned], removing, renaming)
    replaced = [stem + kind for stem in stems for kind in (LOG_SUFFIX, INDEX_SUFFIX)]
    _rename(files, folder, [(path, path + DELETED) for path in replaced], removing, [])
    _rename(files, folder, [(path + SWAP, path) for path in cleaned], removing, renaming)
    for path in replaced:
        files.remove(path + DELETED)  # not synced: a log that is opened removes what is left of these


def _rename(
    files: Files, folder: str, names: Sequence[tuple[str, str]], removing: list[str], renaming: list[str]
) -> None:
    for source, target in names:
        removing.append(source)
        renaming.append(target)
        files.rename(source, target)
    files.fsync_dir(folder)
    removing.clear()
    renaming.clear()


def complete_swaps(files: Files, folder: str) -> list[str]:
    """Complete what a crash has ended after a segment was renamed ``.swap``; gives the paths that were removed.

    Raises ``CorruptLog`` for such a segment that is damaged: it was synced before it got the name.
    """
    removed: list[str] = []
    names = files.list(folder)
    for name in names:
        if not name.endswith(LOG_SUFFIX + SWAP) or not name[:20].isdigit() or len(name) != 29:
            continue
        base = int(name[:20])
        end = max(_end(files, folder, base), base + 1)
        # It is there now in any case, as a segment is opened with its index.
        own = segment_name(base) + INDEX_SUFFIX + SWAP
        for old in (own, *(each for each in names if each != own)):
            kind = old[20:]
            stale = old == own
            if kind in (LOG_SUFFIX, INDEX_SUFFIX) and old[:20].isdigit() and base <= int(old[:20]) < end:
                # The renaming takes the place of the log at the base; its index is not that of the cleaned one.
                stale = kind == INDEX_SUFFIX or int(old[:20]) != base
            if stale and files.exists(f"{folder}/{old}"):
                files.remove(f"{folder}/{old}")
                removed.append(f"{folder}/{old}")
        files.fsync_dir(folder)
        files.rename(f"{folder}/{name}", f"{folder}/{name.removesuffix(SWAP)}")
        files.fsync_dir(folder)
    for name in names:
        if name.endswith(SWAP) and files.exists(f"{folder}/{name}"):  # an index, and its log was not renamed
            files.remove(f"{folder}/{name}")
            removed.append(f"{folder}/{name}")
    return removed


def _end(files: Files, folder: str, base: int) -> int:
    """One more than the last offset of the ``.swap`` segment, its base where it has none."""
    segment = Segment(files, folder, base, 0, create=False, holes=True, suffix=SWAP)
    try:
        for place in segment.places():
            segment.next_offset = place.last_offset + 1
        return segment.next_offset
    finally:
        segment.close()
