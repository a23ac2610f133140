"""All defects that are driven against ``snapshots``."""

from __future__ import annotations

from typing import Final

from ...mutants.defects import Defect
from .defects_quorum import QUORUM_DEFECTS
from .defects_snapshots import SNAPSHOT_DEFECTS

DEFECTS: Final[tuple[Defect, ...]] = QUORUM_DEFECTS + SNAPSHOT_DEFECTS
"""Elections, replication and the LBO first, then snapshots."""
