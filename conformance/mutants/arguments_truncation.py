"""Arguments for the mutants of ``truncation``'s ``kip-320-mended`` that nobody kills."""

from __future__ import annotations

from .arguments import Collected

kip_320_mended = Collected()
