"""A system of real processes: it takes long to start, and a second for what others do in a millisecond."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ....traces.kafka.cluster import RecordingError
from ...simulation.system import CannotDrive
from ..process import OfKafka
from .clients import ClientError


@contextmanager
def in_time() -> Iterator[None]:
    """Processes that do not do in time what they are waited for: the run is given up. What clients throw is thrown."""
    try:
        yield
    except ClientError:
        raise
    except RecordingError as late:
        raise CannotDrive(str(late)) from late


class SlowSystem(OfKafka, ABC):
    """A ``SimulatedSystem`` that is started before anything of it is timed, and of which less is drawn.

    Its own events say what goes wrong; the harness adds nothing: no message comes twice, and no power is lost in the
    midst of an event. ``most``: the largest values of constants for which it has room. ``runs``, ``events``: how much
    is drawn unless somebody says otherwise. ``troubles``: whether it offers what goes wrong; not with ``--no-faults``.
    ``patience``: so many seconds an event may take, whatever is the limit of others. ``starts``: what is said before.
    """

    most: Mapping[str, int] = {}
    runs: int
    events: int
    troubles: bool = True
    patience: float = 240.0
    starts: str = ""

    @abstractmethod
    def begin(self) -> None:
        """Start it; done once, and again does nothing."""
