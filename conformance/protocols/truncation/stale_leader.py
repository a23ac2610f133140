"""A broker that only the controller cannot reach: it may lead on as a zombie, and serve whoever asks it.

And what is not to come of one: an answer to a follower that has not heard either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....impl.replica.partition import Role
from ....impl.wire.messages import CONTROLLER
from ....impl.zk_controller import Controller
from ...adapters.cluster import PARTITION
from ...adapters.events import plain
from ...simulation.events import Event, EventKind
from ...simulation.system import EnabledEvent, StepResult
from .durability import LastingPartition

FROM_CONTROLLER: Final = "controller"
"""That a broker is cut off from the controller alone."""


class SeveredNodes(LastingPartition):
    """Nodes with a controller, the way between which and its leader may be cut."""

    controller: Controller

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New disks, new nodes."""
        self._partly = False
        """Whether it is the way to the controller alone that is cut, or healed, in this event."""
        self._severed: int | None = None
        """Who is cut off from the controller alone."""
        return super().reset(constants, seed)

    def _failures(self, address: int, node: int | None) -> Iterator[EnabledEvent]:
        """What befalls a node, and the ends of that; the way between the controller and its leader, too."""
        yield from super()._failures(address, node)
        if self._severed is None:
            if node is not None and node == self.controller.partition(PARTITION).leader:
                yield plain(EventKind.CUT, FROM_CONTROLLER, node)
        elif self._severed == node:
            yield plain(EventKind.HEAL, FROM_CONTROLLER, node)

    def _part(self, node: int, *, cut: bool) -> None:
        if not self._partly:
            super()._part(node, cut=cut)
            if not cut and self._severed == node:
                self.network.cut(CONTROLLER, node)
        elif cut:
            self._severed = node
            self.network.cut(CONTROLLER, node)
        else:
            self._severed = None
            self.network.heal(node)
            if node in self.cut:
                self.network.isolate(node)

    def _is_copied_late(self, leader: int, follower: int, epoch: int) -> bool:
        """Whether a follower has not heard yet that who has answered it leads no more: the model copies in one step.

        An answer waits, while an election comes, at a follower whose disk may fail it.
        """
        if leader in self.down or follower in self.down:
            return False
        there, here = self._state(leader), self._state(follower)
        if there is None or here is None or here.leader_epoch != epoch:
            return False
        return there.role.value != Role.LEADER.value or there.leader_epoch != epoch

    def step(self, event: Event) -> StepResult:
        """One event. Raises what a node does."""
        self._partly = event.name == FROM_CONTROLLER
        return super().step(event)

    def _has_zombie(self) -> bool:
        """Whether the controller cannot reach its leader, which may lead on: it elects another soon."""
        return self._severed is not None and self.controller.partition(PARTITION).leader == self._severed
