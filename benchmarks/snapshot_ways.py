"""What it costs to resign before a snapshot, and to go on beside it: ``python -m benchmarks.snapshot_ways``.

KIP-631 has an active controller give up leadership before it makes a snapshot of its own; KIP-630 rejects that ("Change
leader when generating snapshots") and has it go on. Three controllers and three brokers in one simulated cluster, whose
messages take 1 to 4 ms, with elections after 300 ms at the latest: one client alters a config every 10 ms for so many
simulated seconds, each change at the controller that it knows of, and at another one where that answers NOT_CONTROLLER
20 ms later, or
not at all within 100 ms. What is committed, and each image and snapshot, is checked after each event.

Times are the simulation's, the same on each machine. An active controller's turn is that it is to make a snapshot; all
that controllers have made are counted beside. An interruption is the time from one active controller to the next. One
voter has nobody to resign to.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from cyclopts import App
from fencepost.impl.kraft import ControllerNode, take_snapshot
from fencepost.impl.wire.controller import (
    ConfigChange,
    CreateTopicsRequest,
    IncrementalAlterConfigsRequest,
    ResourceType,
)
from fencepost.impl.wire.errors import ErrorCode
from rich.console import Console
from rich.table import Table

from tests.impl.kraft_rack import CONTROLLER, QUORUM, Rack

app = App(help=__doc__, version_flags=[])

EVERY_MS, PATIENCE_MS, BACKOFF_MS, LOOK_MS = 10, 100, 20, 2


@dataclass
class Cost:
    """Of one way: what all of its runs came to."""

    turns: int = 0
    """How often an active controller was to make a snapshot: it has resigned for it, or made it."""
    snapshots: int = 0
    """Of all controllers."""
    elections: int = 0
    refused: int = 0
    """Answers NOT_CONTROLLER, and requests that nobody answered."""
    interruptions: list[int] = field(default_factory=list)
    latencies: list[int] = field(default_factory=list)


@dataclass
class _Change:
    began: int
    body: Any
    node: int
    number: int
    sent: int


class _Run:
    """One cluster, one client."""

    def __init__(self, seed: int, voters: tuple[int, ...], *, resigns: bool) -> None:
        self.rack = Rack(seed, quorum=replace(QUORUM, voters=voters), controller=CONTROLLER)
        self.cost = Cost()
        self._resigns = resigns
        self._voters = voters
        self._chance = random.Random(seed)
        self._known = voters[0]
        self._open: list[_Change] = []
        self._since: int | None = None
        for controller in self.rack.controllers.values():
            self._watch(controller)

    def _watch(self, controller: ControllerNode) -> None:
        """Tell whose snapshots are made; where nobody resigns, the active one makes its own at once."""
        resigning = controller._snapshot_as_active

        def asked() -> None:
            if self._resigns:
                if not controller._yielded:
                    self.cost.turns += 1
                resigning()
            elif take_snapshot(controller.quorum):
                self.cost.turns += 1

        controller._snapshot_as_active = asked  # type: ignore[method-assign]

    def go(self, seconds: int) -> Cost:
        rack = self.rack
        rack.until(rack.unfenced)
        assert rack.ask(CreateTopicsRequest("t", 1, 3)).error is ErrorCode.NONE
        first = max(each.quorum.epoch for each in rack.controllers.values())
        end, due, number = rack.clock.now() + seconds * 1_000, rack.clock.now(), 0
        while rack.clock.now() < end or self._open:
            now = rack.clock.now()
            if due <= now < end:
                change = ConfigChange("min.insync.replicas", str(1 + number))
                self._send(IncrementalAlterConfigsRequest(ResourceType.TOPIC, "t", (change,)), now)
                number, due = number + 1, due + EVERY_MS
            self._settle(now)
            self._look(now)
            rack.run(LOOK_MS)
        self.cost.elections = max(each.quorum.epoch for each in rack.controllers.values()) - first
        self.cost.snapshots = sum(node in self._voters for node, _, _ in rack.ledger._loaded)
        return self.cost

    def _send(self, body: Any, now: int) -> None:
        self._open.append(_Change(now, body, self._known, self.rack.client.ask(self._known, body), now))

    def _settle(self, now: int) -> None:
        for change in list(self._open):
            answer = self.rack.client.answers.get(change.number)
            if answer is not None and answer.error is ErrorCode.NONE:
                self.cost.latencies.append(now - change.began)
                self._known = change.node
                self._open.remove(change)
            elif answer is not None and answer.error is not ErrorCode.NOT_CONTROLLER:
                raise SystemExit(f"{change.body} is answered with {answer}")
            elif now - change.sent >= (PATIENCE_MS if answer is None else BACKOFF_MS):
                self.cost.refused += 1
                if change.node == self._known:
                    others = [each for each in self._voters if each != change.node]
                    self._known = self._chance.choice(others or [change.node])
                change.node, change.sent = self._known, now
                change.number = self.rack.client.ask(change.node, change.body)

    def _look(self, now: int) -> None:
        if self.rack.active is None:
            self._since = now if self._since is None else self._since
        elif self._since is not None:
            self.cost.interruptions.append(now - self._since)
            self._since = None


def told(table: Table, what: str, costs: list[Cost]) -> None:
    """One row, of all runs of a way."""
    pauses = [each for cost in costs for each in cost.interruptions]
    latencies = sorted(each for cost in costs for each in cost.latencies)
    of: Callable[[str], int] = lambda name: sum(getattr(cost, name) for cost in costs)  # noqa: E731
    table.add_row(
        what,
        *(f"{of(name):,}" for name in ("turns", "snapshots", "elections")),
        f"{len(pauses)}: {median(pauses):g}, {max(pauses)}" if pauses else "0",
        f"{of('refused'):,}",
        f"{len(latencies):,}: {median(latencies):g}, {latencies[len(latencies) * 999 // 1000]}, {latencies[-1]}",
    )


@app.default
def main(seconds: int = 10, runs: int = 5, seed: int = 0) -> None:
    """Run each way so often, each run with a seed of its own, and print a row for it."""
    table = Table(
        "way",
        "its turns",
        "snapshots",
        "elections",
        "interruptions: ms in the median, at most",
        "refused",
        "changes: ms in the median, 999 of 1,000, at most",
        title=f"{runs} runs of {seconds} simulated seconds, seeds from {seed}",
    )
    for voters, name in ((QUORUM.voters, "three voters"), (QUORUM.voters[:1], "one voter")):
        for resigns in (True, False):
            costs = [_Run(seed + each, voters, resigns=resigns).go(seconds) for each in range(runs)]
            told(table, f"{name}, {'resigns (KIP-631)' if resigns else 'goes on (KIP-630)'}", costs)
    Console(width=150).print(table)


if __name__ == "__main__":
    app()
