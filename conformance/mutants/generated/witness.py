"""Everything that can be seen of a system after a step, boiled down to a few words, so that two runs can be compared.

What it shows and answers, and what may happen next, any system has. Of a system over the simulated network and disks of
``impl/`` it is every message that was sent, and every file: what is written, and what would survive a crash. Another
system may say more by a method ``evidence()`` that gives anything with a ``repr`` of its own, such as the messages that
it has sent since it was asked last.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from ....impl.files.simulated import SimulatedFiles
from ....impl.net.simulated import SimulatedNetwork
from ....impl.wire.messages import Envelope

ASPECTS: Final = ("answers", "observations", "messages", "files", "evidence")
"""What is compared, in the order in which a difference is told."""


_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")


class World:
    """The simulated disks, and what goes over simulated networks, since it was last looked at."""

    def __init__(self) -> None:
        self.disks: list[SimulatedFiles] = []
        self.sent: list[str] = []

    def forget(self) -> None:
        """A system starts afresh, on new disks."""
        self.disks.clear()
        self.sent.clear()

    def seen(self, answer: object, observed: Mapping[str, object], system: object) -> tuple[str, ...]:
        """A word for each of ``ASPECTS``."""
        more: Callable[[], object] | None = getattr(system, "evidence", None)
        files = [piece for disk in self.disks for piece in disk.image()]
        sent, self.sent[:] = list(self.sent), []
        parts = (answer, sorted(observed.items()), sent, files, None if more is None else more())
        return tuple(_word(part) for part in parts)


def _word(part: object) -> str:
    # An object without a repr of its own shows where it lies in memory.
    told = _ADDRESS.sub("", repr(part))
    return hashlib.blake2b(told.encode(), digest_size=6).hexdigest()


@contextmanager
def watched_world() -> Iterator[World]:
    """Notice every simulated disk that is made, and every message that is sent, while the block lasts."""
    world = World()
    make, send = SimulatedFiles.__init__, SimulatedNetwork.send

    def making(self: SimulatedFiles, *arguments: Any, **more: Any) -> None:
        make(self, *arguments, **more)
        world.disks.append(self)

    def sending(self: SimulatedNetwork, envelope: Envelope) -> None:
        world.sent.append(repr(envelope))
        send(self, envelope)

    # Whatever adapter there is, it is made of these two: so nothing that it does is overlooked.
    SimulatedFiles.__init__ = making  # type: ignore[method-assign]
    SimulatedNetwork.send = sending  # type: ignore[method-assign]
    try:
        yield world
    finally:
        SimulatedFiles.__init__ = make  # type: ignore[method-assign]
        SimulatedNetwork.send = send  # type: ignore[method-assign]
