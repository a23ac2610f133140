"""Kill process groups when the process that started them dies, however it dies."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

_PROGRAM: Final = """\
trap '' INT TERM HUP
groups=
while read -r action group; do
    kept=
    for each in $groups; do [ "$each" = "$group" ] || kept="$kept $each"; done
    groups=$kept
    [ "$action" = forget ] || groups="$groups $group"
done
for each in $groups; do kill -s KILL -- "-$each"; done
"""


class OrphanGuard:
    """A shell that reads from this process, and kills the groups that it watches when the pipe ends.

    The pipe ends with this process, also by SIGKILL and without a line of Python run. A parent-death signal
    (``prctl``) would reach one process, and only by the death of the thread that started it. The shell has a session
    of its own, so that signals to this process's group do not reach it.

    Usage::

        with OrphanGuard() as guard:
            process = subprocess.Popen(..., process_group=0)
            guard.watch(process.pid)
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - a shell that only reads numbers
            ["/bin/sh", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def watch(self, group: int) -> None:
        """Kill this process group when this process dies."""
        self._send("watch", group)

    def forget(self, group: int) -> None:
        """Watch a process group no longer: it has ended, and its number may be given to another one."""
        self._send("forget", group)

    def _send(self, action: str, group: int) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{action} {group}\n".encode())
            self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the shell kill what is still watched, and wait for it."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
