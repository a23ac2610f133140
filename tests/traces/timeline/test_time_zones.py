"""``--time-zone``: logs in local time, and the errors of the option."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.conformance.cli import main
from fencepost.model.core.errors import BadInput
from fencepost.traces.timeline.checkers import check_timeline
from fencepost.traces.timeline.clocks import zone_notes
from fencepost.traces.timeline.sources import read_sources
from fencepost.traces.timeline.time_zones import TimeZones
from fencepost.traces.timeline.timeline import Timeline

ZONED = "[2026-03-04T10:00:00.000Z] INFO [Broker id=1] Follower a-0 starts at leader epoch 2 from offset 9 with high \
watermark 9. (state.change.logger)"


def role(time: str, node: int, epoch: int, end: int, watermark: int) -> str:
    role = "Leader" if node == 2 or epoch == 0 else "Follower"
    tail = f" ISR [{node}]" if role == "Leader" else "."
    text = f"{role} a-0 starts at leader epoch {epoch} from offset {end} with high watermark {watermark}"
    return f"[{time}] INFO [Broker id={node}] {text}{tail} (state.change.logger)\n"


def shrink(time: str) -> str:
    told = "Shrinking ISR from 1,2 to 1. Leader: (highWatermark: 120, endOffset: 120)."
    return f"[{time}] INFO [Partition a-0 broker=1] {told} (kafka.cluster.Partition)\n"


def times(path: Path, *options: str) -> list[int | None]:
    read = read_sources([path], TimeZones.parse(options, [path]))
    assert not read.problems
    return [each.time for each in read.observations]


@pytest.mark.parametrize(
    ("zone", "hours"),
    [("UTC", 0), ("Z", 0), ("Europe/Berlin", 1), ("+05:30", 5.5), ("-0800", -8), ("UTC+2", 2), ("+9", 9)],
)
def test_zone_moves_unzoned_times(zone: str, hours: float, tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text(role("2026-03-04 10:00:00,000", 1, 2, 9, 9))
    (plain,), (moved,) = times(path), times(path, zone)
    assert plain is not None and moved == plain - hours * 3_600_000


def test_line_that_names_its_zone_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text(ZONED + "\n")
    assert times(path, "Asia/Tokyo") == times(path)


def test_nearest_source_counts(tmp_path: Path) -> None:
    folder = tmp_path / "broker-1"
    folder.mkdir()
    path = folder / "server.log"
    path.write_text(role("2026-03-04 10:00:00,000", 1, 2, 9, 9))
    options = ("+01:00", f"{folder}=+02:00", f"{path}=+03:00")
    (plain,) = times(path)
    assert plain is not None
    assert times(path, *options) == [plain - 3 * 3_600_000]
    assert times(path, *options[:2]) == [plain - 2 * 3_600_000]
    assert times(path, options[0]) == [plain - 3_600_000]


def test_second_part_of_a_repeated_hour_is_later(tmp_path: Path) -> None:
    """Summer time ends on 25 October 2026 at 3:00, which becomes 2:00."""
    path = tmp_path / "server.log"
    clocks = ("01:30:00", "02:40:00", "02:10:00", "02:50:00", "03:10:00")
    path.write_text("".join(role(f"2026-10-25 {clock},000", 1, epoch, 9, 9) for epoch, clock in enumerate(clocks)))
    found = times(path, "Europe/Berlin")
    first = found[0]
    assert first is not None
    assert [(each or 0) - first for each in found] == [60_000 * each for each in (0, 70, 100, 140, 160)]


def test_zones_order_what_local_times_do_not(tmp_path: Path) -> None:
    """Broker 1 logs in New York, broker 2 in Berlin: by UTC, the report comes before the leader's start."""
    one, two = tmp_path / "one.log", tmp_path / "two.log"
    one.write_text(role("2026-03-04 04:00:00,000", 1, 0, 0, 0) + shrink("2026-03-04 04:30:00,000"))
    two.write_text(role("2026-03-04 11:00:00,000", 2, 5, 90, 80))

    def verdict(*options: str) -> str:
        return check_timeline(
            Timeline.of(read_sources([one, two], TimeZones.parse(options, [one, two])).observations)
        ).verdict

    assert verdict() == "unknown"
    assert verdict(f"{one}=America/New_York", f"{two}=Europe/Berlin") == "violated"
    assert verdict(f"{one}=America/New_York", f"{two}=Asia/Tokyo") == "holds"


def test_note_names_nodes_whose_clocks_are_hours_apart(tmp_path: Path) -> None:
    one, two = tmp_path / "one.log", tmp_path / "two.log"
    one.write_text(role("2026-03-04 04:00:00,000", 1, 2, 9, 9))
    two.write_text(role("2026-03-04 10:00:00,900", 2, 2, 9, 9))

    def notes(*options: str) -> list[str]:
        return zone_notes(
            Timeline.of(read_sources([one, two], TimeZones.parse(options, [one, two])).observations).partitions
        )

    (note,) = notes()
    assert "the clocks of nodes 1 and 2 are about 6 h apart" in note and "--time-zone" in note
    assert notes(f"{one}=America/New_York", f"{two}=Europe/Berlin") == []


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["Europe/Atlantis"], "Europe/Atlantis is no time zone that is known here"),
        (["+25:00"], "+25:00 is no offset of a time zone"),
        (["+02:75"], "+02:75 is no offset of a time zone"),
        (["../etc/passwd"], "../etc/passwd is no time zone that is known here"),
        ([""], "an empty name is no time zone that is known here"),
        (["elsewhere.log=UTC"], "elsewhere.log is no input"),
        (["UTC", "+01:00"], "two zones without a source"),
        (["server.log=UTC", "server.log=+01:00"], "server.log has two zones"),
    ],
)
def test_wrong_zone_is_bad_input(
    options: list[str], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.log").write_text(ZONED)
    with pytest.raises(BadInput, match=r"--time-zone") as raised:
        TimeZones.parse(options, [Path("server.log")])
    assert what in str(raised.value)


def test_wrong_zone_ends_with_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "server.log"
    path.write_text(ZONED)
    assert main(["timeline", str(path), "--time-zone", "Mars/Olympus"]) == 2
    assert "Mars/Olympus is no time zone" in capsys.readouterr().err
