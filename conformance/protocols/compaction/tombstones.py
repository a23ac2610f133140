"""KIP-630's argument against compacting the controllers' log, as two runs that the explorer finds.

"The current implementation of log compaction in Kafka can lead to divergent logs because it is possible for slow
replicas to miss the tombstone records" (KIP-630, "Consistent Log and Tombstones"). On the left the shortest run of a
variant of this protocol in which a tombstone goes before all have it: a slow replica ends with a key that is deleted.
On the right the shortest run of the protocol of snapshots in which a replica is as slow: it has the first record, and
the second is in nobody's log any more. It loads the snapshot, which is made of both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ....model.core.ground import State, System, ground
from ....model.core.registry import REGISTRY
from ....model.explore import Query, Verdict, explore
from ....model.explore.goal import run_to
from ....model.interpret.staged import stage
from ....traces.build_run_report import story_of_run
from ....traces.report.beside import Beside, Box, Row, Side
from ....traces.run_report import Moment, Story
from ....traces.stepper import DirectStepper
from ...plan import Compared, Comparison, Written, constants_of

QUOTE: Final = (
    "The current implementation of log compaction in Kafka can lead to divergent logs because it is possible for slow "
    "replicas to miss the tombstone records."
)
_HERE, _VARIANT, _PROMISE = "compaction", "slow-readers", "deleted_stays_deleted"
_AT: Final[Written] = "2/3/2/1/0/0/0/0/0/0"
_THERE: Final = "snapshots"
_THERE_AT: Final[Written] = "2/1/2/0/1/0/0/1"
_SLOW, _LEADER = 1, 0


def side_by_side() -> Comparison:
    """Both runs, and whether they are what the argument says."""
    spec = REGISTRY[_HERE].protocol
    system = ground(spec.traced(_VARIANT), constants_of(spec, _AT))
    lost = explore(Query.of(system, (_PROMISE,)))
    # Of the shortest runs one in which the record that lets the tombstone go is of another key.
    path = run_to(system, _breaks_beside(system)) if lost.path is not None else None
    other = REGISTRY[_THERE].protocol
    safe = ground(other.traced(), constants_of(other, _THERE_AT))
    kept = explore(Query.of(safe))
    states = lost.distinct + kept.distinct
    for found in (lost, kept):
        if found.verdict is Verdict.UNKNOWN:
            return Comparison(Verdict.UNKNOWN, found.reason or "a budget ran out", states)
    if path is None or kept.verdict is not Verdict.HOLDS:
        what = f"{_VARIANT} holds" if path is None else f"{other.default_variant} breaks {kept.violated}"
        return Comparison(Verdict.VIOLATED, what, states)
    behind = run_to(safe, lambda state: _is_behind(safe, state))
    loaded = None if behind is None else run_to(safe, lambda state: _has_loaded(safe, state), behind[-1].state)
    if behind is None or loaded is None:
        return Comparison(Verdict.VIOLATED, "no replica ever loads a snapshot in place of a record", states)
    left = story_of_run(
        DirectStepper(system.traced, system.constants), path, verdict=lost.verdict, violated=lost.violated
    )
    right = story_of_run(
        DirectStepper(safe.traced, safe.constants),
        [*behind, *loaded],
        verdict=kept.verdict,
        headline="A replica that has missed a record loads the snapshot that has it.",
    )
    written = _written(left)
    sides = (
        Side("Log compaction", left, [_compacted(left, each) for each in left.moments], _tables(left)),
        Side("Snapshots", right, [_snapshots(right, each, written) for each in right.moments], _loaded(right, written)),
    )
    differ = len(set(sides[0].states.values())) > 1
    agree = len(set(sides[1].states.values())) == 1
    detail = (
        f"log compaction: {_PROMISE} breaks after {len(path)} steps of {_VARIANT}; snapshots: the slow replica "
        f"has the leader's state after {len(right.moments) - 1} steps, and all {kept.distinct:,} states hold"
    )
    page = Beside("A slow replica misses a delete", QUOTE, "KIP-630, Consistent Log and Tombstones", sides, detail)
    return Comparison(Verdict.HOLDS if differ and agree else Verdict.VIOLATED, detail, states, page)


COMPARED: Final = Compared("a slow replica misses a delete: log compaction beside snapshots", side_by_side)


def _breaks_beside(system: System) -> Callable[[State], bool]:
    """The promise is broken, and the third record is of the second key."""
    holds, at = stage(system).invariants[_PROMISE], system.layout.by_name
    third = at["record_key[0][2]"]
    return lambda state: state[third] == 1 and not holds(state)


def _is_behind(system: System, state: State) -> bool:
    """The slow replica has the first record, and the leader's log begins behind the second."""
    at = system.layout.by_name
    has_first = state[at[f"record_epoch[{_SLOW}][0]"]] != -1 and state[at[f"leo[{_SLOW}]"]] == 1
    return has_first and state[at[f"lbo[{_SLOW}]"]] == 0 and state[at[f"lbo[{_LEADER}]"]] == 2


def _has_loaded(system: System, state: State) -> bool:
    at = system.layout.by_name
    return state[at[f"fetching[{_SLOW}]"]] == -1 and state[at[f"lbo[{_SLOW}]"]] == 2


def _number(moment: Moment, cell: str) -> int:
    value = moment.state[cell]
    return value if isinstance(value, int) else -1


def _written(story: Story) -> list[tuple[int, bool]]:
    """The records of the run, by offset: the key, and whether it is a delete. The same in both runs."""
    last = story.moments[-1]
    rows = []
    for offset in range(_number(last, "hw")):
        epoch = _number(last, f"committed[{offset}]")
        deletes = _number(last, f"record_tombstone[{epoch}][{offset}]") == 1
        rows.append((_number(last, f"record_key[{epoch}][{offset}]"), deletes))
    return rows


def _words(record: tuple[int, bool]) -> str:
    name = chr(ord("A") + record[0])
    return f"delete {name}" if record[1] else f"{name} = 1"


def _state(records: list[tuple[int, bool]]) -> str:
    table: dict[int, None] = {}
    for key, deletes in records:
        if deletes:
            table.pop(key, None)
        else:
            table[key] = None
    return ", ".join(f"{chr(ord('A') + key)} = 1" for key in sorted(table)) or "nothing: every key is deleted"


def _held(moment: Moment, replica: int) -> list[tuple[int, tuple[int, bool] | None]]:
    """Offset and record of a replica's log; ``None`` where it was cleaned away."""
    rows: list[tuple[int, tuple[int, bool] | None]] = []
    for offset in range(_number(moment, f"leo[{replica}]")):
        epoch = _number(moment, f"record_epoch[{replica}][{offset}]")
        if epoch < 0:
            rows.append((offset, None))
            continue
        deletes = _number(moment, f"record_tombstone[{epoch}][{offset}]") == 1
        rows.append((offset, (_number(moment, f"record_key[{epoch}][{offset}]"), deletes)))
    return rows


def _compacted(story: Story, moment: Moment) -> Row:
    logs = {
        replica: [
            Box(f"{offset}", "cleaned away", "gone") if record is None else Box(f"{offset}", _words(record), "record")
            for offset, record in _held(moment, replica)
        ]
        for replica in story.replicas
    }
    return Row(moment, logs)


def _tables(story: Story) -> dict[int, str]:
    last = story.moments[-1]
    committed = _number(last, "hw")
    return {
        r: _state([record for offset, record in _held(last, r) if record is not None and offset < committed])
        for r in story.replicas
    }


def _snapshots(story: Story, moment: Moment, written: list[tuple[int, bool]]) -> Row:
    logs = {}
    for replica in story.replicas:
        start, end = _number(moment, f"lbo[{replica}]"), _number(moment, f"leo[{replica}]")
        boxes = []
        newest = _newest(moment, replica, len(written))
        if newest >= 0:
            count = _number(moment, f"snapshot_records[{replica}][{newest}]")
            boxes.append(Box(f"snapshot, offsets 0 to {newest}", _state(written[:count]), "snapshot"))
        elif _number(moment, f"fetching[{replica}]") >= 0:
            boxes.append(Box("", "being fetched", "gone"))
        boxes += [Box(f"{offset}", _words(written[offset]), "record") for offset in range(start, end)]
        logs[replica] = boxes
    return Row(moment, logs)


def _newest(moment: Moment, replica: int, offsets: int) -> int:
    there = [o for o in range(offsets) if _number(moment, f"snapshot_records[{replica}][{o}]") > 0]
    complete = [o for o in there if _number(moment, f"fetching[{replica}]") != o]
    return max(complete, default=-1)


def _loaded(story: Story, written: list[tuple[int, bool]]) -> dict[int, str]:
    last, states = story.moments[-1], {}
    for replica in story.replicas:
        newest = _newest(last, replica, len(written))
        start = _number(last, f"snapshot_records[{replica}][{newest}]") if newest >= 0 else 0
        end = max(start, _number(last, f"leo[{replica}]"))
        states[replica] = _state([*written[:start], *written[start:end]])
    return states
