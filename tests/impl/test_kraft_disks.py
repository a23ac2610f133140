"""Disks that fail under controllers and brokers of KIP-631: who cannot go on stops, and leaves no file open."""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from fencepost.impl.kraft import ControllerNode, MetadataBroker
from fencepost.impl.log import LogError
from fencepost.impl.metadata.image import Image
from fencepost.impl.net import LoopbackHost
from fencepost.impl.wire.controller import CreateTopicsRequest
from fencepost.impl.wire.errors import ErrorCode

from .kraft_cluster import settled, topics
from .kraft_rack import CONTROLLER, QUORUM, Rack
from .test_open_files import Disk


def test_a_broker_that_cannot_start_leaves_no_file_open() -> None:
    """Whichever operation fails, on its logs or on its metadata."""
    started = 0
    for which in (0, 1):
        for place in range(1, 60):
            disks = Disk(), Disk()
            disks[which].fails_at = place
            host = LoopbackHost()
            try:
                made = MetadataBroker(0, *disks, host, host.clock, QUORUM, incarnation=UUID(int=1))
            except (OSError, LogError):
                assert disks[0].still_open == disks[1].still_open == []
                continue
            started += 1
            with suppress(OSError, LogError):
                made.close()
            assert disks[0].still_open == disks[1].still_open == []
    assert 2 < started < 110, "some places are before the end of starting, and some behind"


def _fails(address: int) -> Any:
    def hook(operation: str, path: str) -> None:
        if operation in ("append", "fsync"):
            raise OSError(errno.EIO, f"the disk of {address} has failed", path)

    return hook


def run_unchecked(rack: Rack, milliseconds: int) -> None:
    """Without the rack's demand that no node is offline."""
    rack.net.run(rack.clock.now() + milliseconds)


def test_an_active_controller_whose_disk_fails_is_relieved() -> None:
    rack = settled()
    topics(rack, "t")
    active = rack.active
    assert active is not None
    rack.disks[active.address][0].hook = _fails(active.address)
    number = rack.client.ask(active.address, CreateTopicsRequest("u"))
    run_unchecked(rack, 20)
    assert active.quorum.failure is not None and active.active is None
    run_unchecked(rack, 2_000)
    assert number not in rack.client.answers, "nobody can say what became of it"
    again = rack.client.ask(active.address, CreateTopicsRequest("v"))
    run_unchecked(rack, 50)
    assert again not in rack.client.answers and active.deadline() is None
    rack.disks[active.address][0].hook = None
    rack.crash(active.address, 1)
    rack.start(active.address)
    rack.until(lambda: rack.unfenced() and rack.even())
    assert {"t"} <= set(rack.ledger.image.names) <= {"t", "u"}
    topics(rack, "w")


def test_a_broker_whose_metadata_log_fails_is_fenced() -> None:
    rack = settled()
    rack.client.told = lambda *_: None  # the rack would demand that every node works
    rack.disks[1][1].hook = _fails(1)
    active = rack.active
    assert active is not None
    assert rack.client.ask(active.address, CreateTopicsRequest("t", 3, 3))
    run_unchecked(rack, 1_000)
    assert rack.brokers[1].quorum.failure is not None
    image: Image = active.machine.image
    assert not image.alive(1) and all(1 not in each.isr for each in image.partitions.values())


@pytest.mark.parametrize("standby", [True, False])
def test_a_snapshot_that_cannot_be_written_takes_its_node_offline(standby: bool) -> None:
    rack = settled()
    active = rack.active
    assert active is not None
    victim: ControllerNode = active
    if standby:
        victim = next(each for each in rack.controllers.values() if each is not active)
    else:
        victim._yielded = True

    def hook(operation: str, path: str) -> None:
        if ".checkpoint" in path and operation == "append":
            raise OSError(errno.ENOSPC, "full", path)

    rack.disks[victim.address][0].hook = hook
    for number in range(12):
        rack.client.ask(active.address, CreateTopicsRequest(f"t{number}", 1, 3))
        run_unchecked(rack, 20)
    if standby:
        run_unchecked(rack, 10 * CONTROLLER.heartbeat_interval_ms)
    else:
        active._snapshot_as_active()
        active._settle()
    assert victim.quorum.failure is not None and victim.active is None
    assert rack.client.answers[1].error is ErrorCode.NONE
