"""Stages of a recorded release in one small archive: the same bytes for the same files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...bundled.archive import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

STAGES: Final = ("1-healthy", "2-clean-failover", "3-unclean-election", "4-all-back")


def write_archive(recorded: Path, archive: Path, stages: Iterable[str] = STAGES) -> Path:
    """Pack those stages that a recording has, as ``recording.record_release`` leaves them; returns `archive`."""
    return pack(recorded, archive, [stage for stage in stages if (recorded / stage).is_dir()])


def read_archive(archive: Path, home: Path) -> dict[str, list[Path]]:
    """Unpack into `home`: by stage, the nodes' data directories."""
    unpack(archive, home)
    return {stage.name: sorted(stage.iterdir()) for stage in sorted(home.iterdir())}
