"""The voters of Apache Kafka's controllers behind the driver: who leads, what each log has, what each has in mind.

After each thing that happens every controller is looked at, and held to the logs (``kafka_log.py``). The clock is here
too, and with it whose session is over: what the active controller has heard of whom, by the requests that reached it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ....traces.format import Value
from ...kafka.process import Jvm, OfKafka
from ...simulation.mailbox import MailSystem
from .kafka_log import Image, Logs

ALL: Final = 1_000
"""More batches than a log has."""
_BUDGET: Final = 40


class KafkaVoters(OfKafka, MailSystem):
    """The controllers, as nodes ``voters``; brokers are those below."""

    brokers: range
    voters: range
    _jvm: Jvm | None = None
    _cells: dict[str, Value]
    """What was seen after the last event."""

    def _forget(self, session: int) -> None:
        """Empty logs, at which nobody has been elected. ``session``: its time, in milliseconds."""
        self.session = session
        self.now = 0
        self.logs = Logs()
        self.seen: dict[int, Mapping[str, Any]] = {}
        self.newest = (0, -1)
        """The newest epoch, and which voter was elected for it."""
        self._contacts: dict[tuple[int, int], int] = {}
        """By broker and broker epoch, when the active controller has heard of it last."""
        self._term = (-1, -1)
        self._stopping: tuple[int, ...] = ()
        """Whose controlled shutdown the active controller has begun; the last one, where there is none."""
        self._given: dict[str, Value] = {}
        self._cells = {}
        self._told: list[Mapping[str, Any]] = []
        """What controllers have answered, and nobody has been told yet."""
        self._ask("reset", nodes=len(self.voters), session=session)

    def _id(self, voter: int) -> int:
        return voter - self.voters.start

    def _seen(self, voter: int) -> Mapping[str, Any]:
        return self.seen[self._id(voter)]

    def _ask(self, do: str, **more: Any) -> Mapping[str, Any]:
        """Have the driver do something, and look at every controller that runs. Raises ``WrongState``."""
        assert self._jvm is not None
        answer = self._jvm.ask(do, **more)
        # Whoever has most committed first: the others are held to that.
        seen = {int(name): each for name, each in answer["seen"].items()}
        for number in sorted(seen, key=lambda each: -seen[each]["hw"]):
            self.logs.learn(number, seen[number])
        self.seen |= seen
        self._note_term()
        self._told += answer["answered"]
        return answer

    @property
    def active(self) -> int | None:
        """The active controller of the newest epoch."""
        leads = self.newest[1]
        if leads < 0 or leads in self.down:
            return None
        seen = self._seen(leads)
        return leads if seen["leads"] and seen["active"] == self.newest[0] == seen["epoch"] else None

    @property
    def image(self) -> Image:
        """What all of the newest leader's log comes to."""
        leads = self.newest[1]
        return Image() if leads < 0 else self.logs.whole(self._id(leads))

    def _note_term(self) -> None:
        """A controller that becomes active has heard of all that are unfenced."""
        active = self.active
        term = (-1, -1) if active is None else (active, self._seen(active)["active"])
        if active is not None:
            self._stopping = tuple(sorted(self._seen(active)["stopping"]))
        if term != self._term:
            self._term = term
            known = Image() if active is None else self.logs.whole(self._id(active))
            self._contacts = {(each, b.epoch): self.now for each, b in known.brokers.items() if not b.fenced}

    def _note_moment(self) -> None:
        """What is so before an event, or as soon as its time has come."""
        image = self.image
        live = {
            broker: self.now - self._contacts.get((broker, known.epoch), -ALL * ALL) <= self.session
            for broker, known in image.brokers.items()
        }
        self._given = {f"session[{broker}]": int(live.get(broker, False)) for broker in self.brokers}
        self._given["before"] = int(str(self._cells.get("end", 0)))
        self._given["led"] = tuple(sorted({p.leader for p in image.partitions.values() if p.leader is not None}))

    def _supporters(self, voter: int) -> list[int] | None:
        """Who elects a voter; None where no majority would, or it leads."""
        if voter == self.newest[1] and self._seen(voter)["leads"]:
            return None
        mine = self._position(voter)
        able = [
            each
            for each in self.voters
            if each != voter and each not in self.down | self.cut and self._position(each) <= mine
        ]
        # Who leads hears of it last.
        able.sort(key=lambda each: bool(self._seen(each)["leads"]))
        wanted = len(self.voters) // 2
        return able[:wanted] if len(able) >= wanted else None

    def _position(self, voter: int) -> tuple[int, int]:
        mine = self.logs.own[self._id(voter)]
        return (mine[-1].epoch if mine else 0), len(mine)

    def _stand(self, voter: int) -> None:
        """A voter is elected: who has voted for it has heard of its epoch."""
        supporters = self._supporters(voter)
        assert supporters is not None
        epoch = self.newest[0] + 1
        for each in (*supporters, voter):
            self._ask("hear", node=self._id(each), epoch=epoch)
        self.newest = epoch, voter
        self._ask("lead", node=self._id(voter), epoch=epoch)

    def _fetch(self, voter: int, leader: int, batches: int) -> None:
        self._ask("fetch", node=self._id(voter), leader=self._id(leader), batches=batches)

    def _spread(self) -> None:
        for _ in range(_BUDGET):
            end = len(self.logs.committed)
            for voter in self.voters:
                if voter != self.newest[1]:
                    self._fetch(voter, self.newest[1], ALL)
            if end == len(self.logs.committed) == self._seen(self.newest[1])["end"]:
                return

    def _cells_of_controller(self, voter: int) -> dict[str, Value]:
        number = self._id(voter)
        if voter in self.down:
            ends = dict.fromkeys((f"{name}[{number}]" for name in ("node_end", "node_applied", "snapshot_end")), 0)
            return {f"role[{number}]": "down", f"node_epoch[{number}]": -1, **ends}
        seen = self._seen(voter)
        return {
            f"role[{number}]": "active" if seen["active"] >= 0 else "standby",
            f"node_epoch[{number}]": seen["epoch"],
            f"node_end[{number}]": seen["end"],
            f"node_applied[{number}]": seen["applied"],
            f"snapshot_end[{number}]": 0,
        }

    def close(self) -> None:
        """End the JVM."""
        if self._jvm is not None:
            self._jvm.close()
            self._jvm = None
