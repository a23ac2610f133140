"""A proxy before each node of a cluster, whose messages pass, wait or get lost as the one who holds the gate says.

Whoever wants to talk to a node connects to its front; the proxy connects to the node. A `Hold` names a node, a kind of
request, whose it is, and whether requests or their responses are meant; what it matches waits there until it is let
through or lost, and so does all that comes behind it on the same connection, as Kafka promises that order. A message
that is lost takes its connection along: TCP loses nothing in the midst of one.

The proxies run in a thread of their own. The methods of `Gate` and `Hold` are for other threads.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from ....traces.kafka.cluster import RecordingError
from .frames import API_NAMES, FrameError, Header, read_frame, request_header, response_correlation

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, Queue, StreamReader, StreamWriter
    from collections.abc import Callable, Coroutine, Mapping, Sequence

Alters: TypeAlias = "Callable[[int, Header, bool, bytes], bytes]"
"""The bytes that go on in place of a message: of the node, the request's head, whether it is a response, the frame."""
_LOST: Final = (ConnectionError, EOFError, OSError)
"""What ends a connection: asyncio's ``IncompleteReadError`` is an EOFError."""
_PAUSE: Final = 0.02
_SETTLES: Final = 1.0
"""So many seconds are given to what a message brings about, before the next one is let through."""


@dataclass(frozen=True)
class Seen:
    """What became of a message at the gate: ``passed``, ``held``, ``let through``, ``lost``."""

    number: int
    seconds: float  #: since the gate was opened
    target: int  #: the node to which the request goes, or from which the response comes
    header: Header
    response: bool
    what: str

    def __str__(self) -> str:
        whose = "the response to " if self.response else ""
        return f"{self.seconds:8.3f} s  {whose}{self.header} at node {self.target}: {self.what}"


@dataclass(eq=False)
class Waiting:
    """A message that is held, with its bytes, the size included."""

    header: Header
    response: bool
    decided: Future[bool]
    frame: bytes


@dataclass(eq=False)
class _Way:
    """One of the two ways of a connection to a node."""

    node: int
    reader: StreamReader
    writer: StreamWriter
    header: Callable[[bytes], Header]
    response: bool = field(kw_only=True)
    frames: Queue[bytes | None] = field(default_factory=asyncio.Queue)  #: None where the connection has ended
    ended: bool = False
    waits: Waiting | None = None

    async def read_all(self) -> None:
        """Read until it ends; a message that waits then is lost."""
        try:
            while True:
                self.frames.put_nowait(await read_frame(self.reader))
        except _LOST:
            pass
        finally:
            self.ended = True
            self.frames.put_nowait(None)
            if self.waits is not None:
                _settle(self.waits.decided, passes=False)


@dataclass(eq=False)
class Hold:
    """Requests to node ``target`` (or with ``responses``: its answers to them) that wait, in the order they came.

    Made by `Gate.hold`. ``client``: the client id of the asker, such as ``broker-2-fetcher-0`` or ``raft-client-1``.
    """

    gate: Gate
    target: int
    api: int | None  #: None: all that the client asks there
    client: str
    responses: bool
    refuses: bool = False
    """Nothing waits: what comes is lost at once."""
    closed: bool = False
    waiting: deque[Waiting] = field(default_factory=deque)

    def __str__(self) -> str:
        what = "responses" if self.responses else "requests"
        name = "all" if self.api is None else API_NAMES.get(self.api, f"api {self.api}")
        return f"{name} {what} of {self.client} at node {self.target}"

    def matches(self, target: int, header: Header, *, response: bool) -> bool:
        """Whether such a message waits here."""
        mine = (self.target, self.client, self.responses)
        api = self.api is None or self.api == header.api
        return not self.closed and api and mine == (target, header.client, response)

    def wait(self, seconds: float = 60.0) -> None:
        """Wait until a message is held here: nothing of the kind that was under way before is so any more.

        Raises `RecordingError` after `seconds`.
        """
        self.gate.wait_for(f"one of the {self}", lambda: bool(self.waiting), seconds)

    def let_one(self, seconds: float = 60.0) -> None:
        """Let the first message through, and wait for the next one to be held. Of requests that means: the first was
        answered, and its asker has taken in the answer.

        Raises `RecordingError` after `seconds` without one.
        """
        self.wait(seconds)
        before = self.gate.counted(self)
        self.gate.decide(self, passes=True, count=1)
        self.gate.wait_for(f"the next of the {self}", lambda: self.gate.counted(self) > before, seconds)

    def let_until(self, what: str, holds: Callable[[], bool], seconds: float = 60.0) -> None:
        """Let messages through, one at a time, until `holds` does; what comes after that is held.

        The first need not be enough: a broker that has just learned of a topic may have to be asked again. Raises
        `RecordingError` naming `what` after `seconds`.
        """
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                raise RecordingError(f"waited {seconds:g} s in vain for: {what}")
            if not self.waiting:
                time.sleep(_PAUSE)
                continue
            self.let_on()
            settled = time.monotonic() + _SETTLES
            while not holds() and time.monotonic() < settled:
                time.sleep(_PAUSE)

    def let_on(self) -> None:
        """Let the first message through, and wait for nothing."""
        self.gate.decide(self, passes=True, count=1)

    def open(self) -> None:
        """Hold no longer: what waits goes through, and all that comes after."""
        self.closed = True
        self.gate.decide(self, passes=True)

    def lose(self) -> None:
        """Hold no longer, and lose what waits, with the connection that it came on."""
        self.closed = True
        self.gate.decide(self, passes=False)


class Gate:
    """Proxies on loopback before some nodes; a context manager. ``fronts`` has the port of each by the node's id."""

    def __init__(self, nodes: Sequence[int], upstream: Callable[[int], int]) -> None:
        """``upstream``: the port at which a node listens just now; it may change from start to start."""
        self._nodes = tuple(nodes)
        self._upstream = upstream
        self._holds: list[Hold] = []
        self._held: dict[Hold, int] = {}
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        self._began = time.monotonic()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: AbstractEventLoop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gate", daemon=True)
        self._servers: list[asyncio.Server] = []
        self.seen: list[Seen] = []
        self.faults: list[str] = []
        """What came that is no message of Kafka's: its connection was ended."""
        self.fronts: Mapping[int, int] = {}
        self.alters: list[Alters] = []
        """What happens to each message that goes on: by itself a proxy changes nothing."""

    def __enter__(self) -> Self:
        self._thread.start()
        self.fronts = self._called(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every connection and proxy. Safe to call twice."""
        if self._loop.is_closed():
            return
        if self._thread.is_alive():
            self._called(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    # -- for whoever holds the gate ---------------------------------------------------------------------------------

    def hold(self, target: int, api: int | None, client: str, *, responses: bool = False) -> Hold:
        """From now on messages like these wait."""
        made = Hold(self, target, api, client, responses)
        with self._changed:
            self._holds.append(made)
            self._held[made] = 0
        return made

    def refuse(self, target: int, client: str) -> Hold:
        """From now on nothing of this client gets to that node: whatever it sends there is lost, until `Hold.open`."""
        made = self.hold(target, None, client)
        made.refuses = True
        return made

    def wait_for(self, what: str, holds: Callable[[], bool], seconds: float) -> None:
        """Wait until `holds` does of the gate. Raises `RecordingError` naming `what` after `seconds`."""
        with self._changed:
            if not self._changed.wait_for(holds, seconds):
                raise RecordingError(f"waited {seconds:g} s in vain for: {what}")

    def counted(self, hold: Hold) -> int:
        """How many messages were held there by now."""
        return self._held[hold]

    def decide(self, hold: Hold, *, passes: bool, count: int | None = None) -> None:
        """Let the first `count` of what waits through, or lose it; all of it, if no number is given."""
        with self._changed:
            number = len(hold.waiting) if count is None else count
            chosen = [hold.waiting.popleft() for _ in range(min(number, len(hold.waiting)))]
            if hold.closed and hold in self._holds:
                self._holds.remove(hold)
        for each in chosen:
            self._note(hold.target, each.header, "let through" if passes else "lost", response=each.response)
            self._loop.call_soon_threadsafe(partial(_settle, each.decided, passes=passes))

    # -- in the loop's thread ---------------------------------------------------------------------------------------

    def _called(self, work: Coroutine[object, object, dict[int, int]]) -> dict[int, int]:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _listen(self) -> dict[int, int]:
        fronts = {}
        for node in self._nodes:

            async def connected(reader: StreamReader, writer: StreamWriter, node: int = node) -> None:
                task = asyncio.current_task()
                assert task is not None
                self._tasks.add(task)
                try:
                    await self._serve(node, reader, writer)
                except asyncio.CancelledError:
                    pass  # the gate is closed; asyncio would print it
                finally:
                    self._tasks.discard(task)

            server = await asyncio.start_server(connected, "127.0.0.1", 0)
            self._servers.append(server)
            fronts[node] = int(server.sockets[0].getsockname()[1])
        return fronts

    async def _end(self) -> dict[int, int]:
        for server in self._servers:
            server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return {}

    async def _serve(self, node: int, reader: StreamReader, writer: StreamWriter) -> None:
        """One connection: both ways, until either side ends it or a message is lost."""
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._upstream(node))
        except OSError:  # the node is down: so is the connection
            writer.close()
            return
        asked: dict[int, Header] = {}

        def of_request(frame: bytes) -> Header:
            header = request_header(frame)
            asked[header.correlation] = header
            return header

        def of_response(frame: bytes) -> Header:
            correlation = response_correlation(frame)
            if correlation not in asked:
                raise FrameError(f"an answer to request {correlation}, which nobody has sent")
            return asked.pop(correlation)

        ways = [
            asyncio.ensure_future(self._pump(_Way(node, reader, up_writer, of_request, response=False))),
            asyncio.ensure_future(self._pump(_Way(node, up_reader, writer, of_response, response=True))),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for each in (writer, up_writer):
                each.close()

    async def _pump(self, way: _Way) -> None:
        """Messages one way. They are read as they come, so that the end of a connection is noticed while one waits."""
        reading = asyncio.ensure_future(way.read_all())
        passing = asyncio.ensure_future(self._pass_all(way))
        try:
            await asyncio.wait([reading, passing], return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                await asyncio.wait([passing])
        finally:
            for each in (reading, passing):
                each.cancel()
            for failed in await asyncio.gather(reading, passing, return_exceptions=True):
                if isinstance(failed, Exception) and not isinstance(failed, _LOST):
                    self.faults.append(f"node {way.node}: {failed!r}")

    async def _pass_all(self, way: _Way) -> None:
        while (frame := await way.frames.get()) is not None:
            header = way.header(frame)
            if not await self._admitted(way, header, frame):
                return
            for alters in self.alters:
                frame = alters(way.node, header, way.response, frame)
            way.writer.write(frame)
            await way.writer.drain()

    async def _admitted(self, way: _Way, header: Header, frame: bytes) -> bool:
        """Whether the message goes on; comes back when that is decided. What has lost its connection does not wait."""
        with self._changed:
            hold = next((h for h in self._holds if h.matches(way.node, header, response=way.response)), None)
            if hold is not None and not hold.refuses:
                way.waits = Waiting(header, way.response, self._loop.create_future(), frame)
                hold.waiting.append(way.waits)
                self._held[hold] += 1
        what = "passed" if hold is None else "lost" if hold.refuses else "held"
        self._note(way.node, header, what, response=way.response)
        if hold is None or way.waits is None:
            return hold is None
        if way.ended:
            _settle(way.waits.decided, passes=False)
        try:
            passes = await way.waits.decided
        finally:
            with self._changed:
                if way.waits in hold.waiting:
                    hold.waiting.remove(way.waits)
                    self._changed.notify_all()
            way.waits = None
        return passes

    def _note(self, target: int, header: Header, what: str, *, response: bool) -> None:
        with self._changed:
            now = time.monotonic() - self._began
            self.seen.append(Seen(next(self._numbers), now, target, header, response, what))
            self._changed.notify_all()


def _settle(decided: Future[bool], *, passes: bool) -> None:
    if not decided.done():
        decided.set_result(passes)
