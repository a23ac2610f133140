"""Stages of a recorded release in one small archive: the same bytes for the same files."""

from __future__ import annotations

import gzip
import tarfile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

STAGES: Final = ("1-healthy", "2-clean-failover", "3-unclean-election", "4-all-back")


def write_archive(recorded: Path, archive: Path, stages: Iterable[str] = STAGES) -> Path:
    """Pack those stages that a recording has, as ``recording.record_release`` leaves them; returns `archive`."""
    with (
        archive.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for path in sorted(each for stage in stages for each in (recorded / stage).rglob("*") if each.is_file()):
            member = tarfile.TarInfo(path.relative_to(recorded).as_posix())
            member.size = path.stat().st_size
            with path.open("rb") as content:
                tar.addfile(member, content)
    return archive


def read_archive(archive: Path, home: Path) -> dict[str, list[Path]]:
    """Unpack into `home`: by stage, the nodes' data directories."""
    with tarfile.open(archive) as tar:
        tar.extractall(home, filter="data")
    return {stage.name: sorted(stage.iterdir()) for stage in sorted(home.iterdir())}
