"""From sightings to bugs: which of them are the same.

What counts as one bug:

- a guard of an action that refuses a step. Whether it was left out or only off by one cannot be told from what
  happened: both take steps that the guard refuses. So two mutants of one guard are one bug, seen in the same place;
- an outcome other than the model's: sightings of one action belong together where a single change of the action (a
  mutant of the model: a bound off by one) has every one of these outcomes, since one wrong position shows in the LEO
  here and in a record's epoch there. The fewest changes that explain all sightings of an action are taken: the change
  that explains the most, then the next. Such a change may explain refused steps too, where its bound stands in a guard
  as well. Another variant of the protocol is such a change only for what no mutant explains. Where nothing explains
  some outcomes of the same variables, nothing explains any of them: it would be by chance. They belong together where
  the variables that differ overlap;
- a promise that allowed steps break, where the variant held against does not keep it.

The shapes of the last steps are counted, and do not part a bug: the same missing guard lets many shapes through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...model.core.mutants import DROPPED
from ..corpus.faults import Fault
from .part import Sighting


@dataclass
class Explained:
    """A sighting with the changes of the model that allow its shortest trace's bad step."""

    sighting: Sighting
    changes: Sequence[Fault]


@dataclass
class Family:
    """Sightings of one bug. ``changes`` explain each of them; the first is the most likely one."""

    members: list[Explained]
    changes: list[Fault]

    @property
    def merged(self) -> Sighting:
        """All traces of the bug; the bug is named as in the shortest of them."""
        ranked = sorted((each.sighting for each in self.members), key=lambda s: (s.prefix, s.shortest))
        whole = ranked[0].copy()
        for each in ranked[1:]:
            whole.merge(each)
        return whole


def families(sightings: Sequence[Explained]) -> list[Family]:
    """The bugs, those of the most traces first."""
    found: list[Family] = []
    by_action: dict[tuple[str, str | None], list[Explained]] = {}
    odd = {each.sighting.bug.seen for each in sightings if not each.changes}
    for each in sorted(sightings, key=lambda each: repr(each.sighting.bug)):
        bug = each.sighting.bug
        if bug.seen in odd:
            each = Explained(each.sighting, ())
        if bug.kind == "promise":
            found.append(Family([each], []))
        else:
            by_action.setdefault((bug.protocol, bug.action), []).append(each)
    for together in by_action.values():
        found += _covered(together)
    return sorted(found, key=lambda family: (-sum(m.sighting.count for m in family.members), _name(family)))


def _name(family: Family) -> str:
    return repr(min((each.sighting.bug for each in family.members), key=repr))


def _covered(sightings: list[Explained]) -> list[Family]:
    """Families of one action, by the fewest changes."""
    left = list(sightings)
    found: list[Family] = []
    while left:
        names = {change.name: change for each in left for change in each.changes}
        if not names:
            return found + _overlapping(left)
        best = min(names.values(), key=lambda change: _rank(change, left))
        members = [each for each in left if any(change.name == best.name for change in each.changes)]
        # Other variants differ in more than this; what a mutant explains needs none of them.
        common = [
            c
            for c in members[0].changes
            if c.mutant is best.mutant and all(c.name in {o.name for o in e.changes} for e in members)
        ]
        found.append(Family(members, sorted(common, key=lambda change: change.name != best.name)))
        left = [each for each in left if each not in members]
    return found


def _rank(change: Fault, left: Sequence[Explained]) -> tuple[bool, int, bool, str]:
    explains = sum(any(each.name == change.name for each in one.changes) for one in left)
    return not change.mutant, -explains, not change.name.endswith(DROPPED), change.name


def _overlapping(sightings: list[Explained]) -> list[Family]:
    """Families of sightings that no change explains: refused steps by guard, outcomes by variables in common."""
    found: list[Family] = []
    for each in sightings:
        mine = _variables(each)
        joined = [family for family in found if mine and any(mine & _variables(member) for member in family.members)]
        whole = Family([each], [])
        for family in joined:
            whole.members += family.members
            found.remove(family)
        found.append(whole)
    return found


def _variables(each: Explained) -> set[str]:
    return {name.rstrip("+-") for name in each.sighting.bug.variables}
