"""Where a node keeps its files: one small interface, a real folder, and a disk in memory that can crash."""

from .disk import DiskFiles
from .interface import File, Files, read_file
from .simulated import SimulatedFiles

__all__ = ["DiskFiles", "File", "Files", "SimulatedFiles", "read_file"]
