"""Pieces of work in a second thread while the first goes on: NumPy leaves Python's lock to others as it computes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue


class _Piece:
    """Work, whether it is over, and what it has raised."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work: Callable[[], object] | None = work
        self.over = threading.Event()
        self.raised: BaseException | None = None

    def do(self) -> None:
        assert self.work is not None
        try:
            self.work()
        except BaseException as error:
            # Raised in the thread that waits for it.
            self.raised = error
        # Nothing that it stands on is kept until the next one comes.
        self.work = None
        self.over.set()


def _serve(pieces: SimpleQueue[_Piece | None]) -> None:
    while (piece := pieces.get()) is not None:
        piece.do()
        del piece


class Beside:
    """One piece of work at a time, in order. What it raises is raised where it is waited for.

    One thread does them all, and is there until ``close``: to start one takes locks of Python's own, which a handler of
    signals needs too. It is a daemon, so that a process that is to end waits for no piece. ``bytes``: what the work
    under way may still take, as whoever began it has reckoned; 0 where there is none.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._pieces: SimpleQueue[_Piece | None] | None = None
        self._piece: _Piece | None = None

    @staticmethod
    def worth() -> bool:
        """Whether this process has a second core to work on."""
        return len(os.sched_getaffinity(0)) > 1

    @property
    def busy(self) -> bool:
        """Whether there is work that nobody has waited for."""
        return self._piece is not None

    def begin(self, work: Callable[[], object], needed: int) -> None:
        """Have it done, once what was begun before has ended."""
        self.wait()
        if self._pieces is None:
            self._pieces = SimpleQueue()
            threading.Thread(target=_serve, args=(self._pieces,), name="fencepost-beside", daemon=True).start()
        self.bytes, self._piece = needed, _Piece(work)
        self._pieces.put(self._piece)

    def wait(self) -> None:
        """Until it has ended, if there is any. Who is interrupted here may wait again."""
        piece = self._piece
        if piece is None:
            return
        piece.over.wait()
        self._piece, self.bytes = None, 0
        if piece.raised is not None:
            raise piece.raised

    def close(self) -> None:
        """Let the thread end, after the work that was begun; other work begins another one."""
        if self._pieces is not None:
            self._pieces.put(None)
            self._pieces = None
