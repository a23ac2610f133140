"""Counts in sentences."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """``1 file``, ``12,345 files``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
