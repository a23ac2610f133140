"""Resident memory of this process: how much it is, how much it was at most, and what is free and still resident.

glibc keeps pages that were freed, for the next array: that makes a search faster, but they count as resident. So
whoever is short of memory gives them back first, and looks again.
"""

from __future__ import annotations

import ctypes
import os
import resource
from pathlib import Path
from typing import Final

_STATUS = Path("/proc/self/status")
_STATM = Path("/proc/self/statm")

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Bytes resident now; on Linux without ``/proc``, the most that ever were."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        if os.uname().sysname == "Linux":
            # A limit of memory is then reached too soon, and never too late.
            return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # It takes longer to load than all else of this package.
    import psutil

    size: int = psutil.Process().memory_info().rss
    return size


def peak() -> int:
    """The most bytes that were ever resident in this process, by the kernel's count (``VmHWM``).

    Where the kernel does not say it, it is what is resident now.
    """
    try:
        status = _STATUS.read_text()
    except OSError:
        return resident()
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return max(resident(), 1024 * int(found[0])) if found else resident()


def keep_pages() -> None:
    """Have glibc keep freed arrays of up to 32 MiB for the next block, instead of giving their pages back.

    The temporary arrays of a block are a few MiB each; taking fresh pages for them cost a tenth of a short search.
    Elsewhere than on glibc nothing happens.
    """
    m_trim_threshold, m_mmap_threshold, m_arena_max = -1, -3, -8
    _call("mallopt", m_mmap_threshold, 32 << 20)
    _call("mallopt", m_trim_threshold, 256 << 20)
    # What a second thread frees is there for the first.
    _call("mallopt", m_arena_max, 1)


def give_back() -> None:
    """Have glibc give back all pages that are free. Elsewhere than on glibc nothing happens."""
    _call("malloc_trim", 0)


def _call(name: str, *values: int) -> None:
    try:
        getattr(ctypes.CDLL(None), name)(*values)
    except (AttributeError, OSError):
        return
