"""What is held against the disks themselves: that no record changes, and what a crash leaves of a cleaning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ...lockstep.adapter import Contradiction
from .records import Row, cells_of_record


class WrongState(Contradiction):
    """What is on a disk is not what was written, or not what may be left of it."""


def check_contents(rows: Iterable[Row], known: Mapping[tuple[int, int], Row]) -> None:
    """A record is for ever what it was in the first log that had it. Raises WrongState."""
    for row in rows:
        was = known.get((row.epoch, row.offset))
        if was is not None and was.content != row.content:
            raise WrongState(f"at offset {row.offset} there is {row.content}, and it was {was.content}")


def rank_of(row: Row, strategy: str, constants: Mapping[str, int]) -> int:
    """What a strategy compares before offsets, by the sentences of KIP-280: the cleaner's own rank is not asked."""
    cells = cells_of_record(row, constants)
    if strategy == "timestamp":
        return cells["record_timestamp"]
    if strategy == "header":
        value = cells["record_header"]
        return value if value < constants["header_values"] else -1
    return 0


def state_of(rows: Iterable[Row], strategy: str, constants: Mapping[str, int]) -> dict[bytes, bytes]:
    """What a reader from the start, who applies the same strategy, ends with."""
    found: dict[bytes, Row] = {}
    for row in rows:
        if row.key is None:
            continue
        other = found.get(row.key)
        order = rank_of(row, strategy, constants), row.offset
        if other is None or order > (rank_of(other, strategy, constants), other.offset):
            found[row.key] = row
    return {key: row.value for key, row in found.items() if row.value is not None}


def check_ages(
    before: Mapping[int, Row], after: Mapping[int, Row], clean: int, cleaned: int, now: int, least: int
) -> None:
    """Hold a cleaning against ``min.compaction.lag.ms``, which is ``least``: no younger record is cleaned. WrongState.

    The log was clean up to ``clean``, and is so up to ``cleaned`` now; ``now`` in milliseconds since 1970.
    """
    young = [offset for offset, row in before.items() if offset >= clean and row.timestamp > now - least]
    if not least or not young:
        return
    first = min(young)
    told = f"the record at offset {first} is not {least} ms old"
    if cleaned > first:
        raise WrongState(f"{told}, and the log is clean up to {cleaned}")
    gone = sorted(offset for offset in before if offset >= first and offset not in after)
    if gone:
        raise WrongState(f"{told}, and a cleaning took the record at offset {gone[0]}")


def check_tombstones(before: Mapping[int, Row], after: Mapping[int, Row], clean: int, now: int) -> None:
    """Hold a cleaning of all of a log against ``delete.retention.ms``: what is over goes with it. WrongState.

    The log was clean up to ``clean`` before it; ``now`` in milliseconds since 1970. A tombstone of whose key there is
    another record may have to stay for that.
    """
    keys = Counter(row.key for row in before.values())
    for offset, row in before.items():
        over = row.value is None and row.horizon is not None and row.horizon <= now
        if over and offset < clean and keys[row.key] == 1 and offset in after:
            raise WrongState(f"a cleaning has left the tombstone at offset {offset}, whose time is over")


def check_cleaning(
    before: Mapping[int, Row],
    after: Mapping[int, Row],
    found: Mapping[int, Row],
    end: int,
    synced: int,
    checkpoint: int,
    strategy: str,
    constants: Mapping[str, int],
) -> None:
    """Hold what a loss of power in the midst of a cleaning would leave against the log before and after it. WrongState.

    ``found``: the records of the log that ends at ``end`` then, of which ``checkpoint`` says how far it is clean.
    What the cleaning has left is there, nothing is that was not there before, and a reader comes to the same state.
    """
    where = "after a loss of power in the midst of a cleaning"
    if end < synced:
        raise WrongState(f"{where} the log would end at {end}, and it is synced up to {synced}")
    for offset, row in found.items():
        was = before.get(offset)
        if was is None or (was.epoch, was.content) != (row.epoch, row.content):
            raise WrongState(f"{where} there would be a record at offset {offset} that was not there")
    missing = sorted(offset for offset in after if offset < end and offset not in found)
    if missing:
        raise WrongState(f"{where} the record at offset {missing[0]} would be gone, which stays")
    left = {offset: row for offset, row in before.items() if offset < end}
    wanted = state_of(left.values(), strategy, constants)
    has = state_of(found.values(), strategy, constants)
    if has != wanted:
        raise WrongState(f"{where} a reader would have {has}, and not {wanted}")
    keys = [row.key for offset, row in found.items() if offset < checkpoint]
    if len(set(keys)) < len(keys):
        raise WrongState(f"{where} the log would be clean up to {checkpoint}, and has two records of a key there")
