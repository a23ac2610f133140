"""A story whose replicas have the ids that they have where the story comes from: brokers 1, 2, 3 for replicas 0, 1, 2.

All of it is renamed alike: cells by their index, values and parameters that are replicas, sets of replicas, lanes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..model.core.ground import Cell, System
from ..model.core.terms import Sort
from .diagnose import value_words
from .run_report import Breach, Call, Json, Moment, Story


def with_replicas(story: Story, system: System, ids: Sequence[int], noun: str) -> Story:
    """``story``, a run of ``system``, with ``ids[r]`` for replica ``r``, each a ``noun`` (``broker``).

    Raises ValueError where the ids are not one for each replica, or two are the same.
    """
    if len(set(ids)) != len(story.replicas) or len(ids) != len(story.replicas):
        raise ValueError(f"{ids} is not an id for each of {len(story.replicas)} replicas")
    return _Renaming(system, ids).story(story, noun)


class _Renaming:
    def __init__(self, system: System, ids: Sequence[int]) -> None:
        self._ids = ids
        self._params_of = {action.name: action.params for action in system.traced.actions}
        self._cells = {cell.name: cell for cell in system.layout.cells}

    def story(self, story: Story, noun: str) -> Story:
        moments = tuple(self._moment(moment) for moment in story.moments)
        return replace(story, replicas=tuple(self._ids[r] for r in story.replicas), noun=noun, moments=moments)

    def _moment(self, moment: Moment) -> Moment:
        return replace(
            moment,
            params=moment.params if moment.action is None else self._params(moment.action, moment.params),
            state={self._name(cell): self._value(cell, value) for cell, value in moment.state.items()},
            enabled=tuple(Call(call.action, self._params(call.action, call.params)) for call in moment.enabled),
            broken=tuple(self._breach(breach, moment.state) for breach in moment.broken),
        )

    def _params(self, action: str, params: Mapping[str, Json]) -> dict[str, Json]:
        spec = self._params_of[action]
        return {
            name: self._replica(value) if spec[name].sort is Sort.REPLICA else value for name, value in params.items()
        }

    def _breach(self, breach: Breach, state: Mapping[str, Json]) -> Breach:
        cells = tuple(self._name(cell) for cell in breach.cells)
        values = [self._value(cell, state[cell]) for cell in breach.cells]
        words = [value_words(tuple(v) if isinstance(v, list) else v) for v in values]  # type: ignore[arg-type]
        detail = ", ".join(f"{cell} is {value}" for cell, value in zip(cells, words, strict=True))
        return Breach(breach.invariant, detail, cells)

    def _name(self, name: str) -> str:
        cell = self._cells[name]
        return cell.variable.name + "".join(f"[{each}]" for each in self._index(cell))

    def _index(self, cell: Cell) -> list[int]:
        pairs = zip(cell.variable.per, cell.index, strict=True)
        return [self._ids[at] if index.sort is Sort.REPLICA else at for index, at in pairs]

    def _value(self, name: str, value: Json) -> Json:
        sort = self._cells[name].variable.values.sort
        if sort is Sort.SET and isinstance(value, list):
            return list(sorted(self._ids[r] for r in value if isinstance(r, int)))  # noqa: C413 - a list of Json
        return self._replica(value) if sort is Sort.REPLICA else value

    def _replica(self, value: Json) -> Json:
        return self._ids[value] if isinstance(value, int) and value >= 0 else value
