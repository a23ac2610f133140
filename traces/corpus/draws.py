"""Randomness without a state: a number for each seed, trace, step and purpose, whoever asks for it and in what order.

So a corpus does not depend on how its traces are spread over files, tasks or machines. The mixer is SplitMix64's
finalizer (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint64]

_GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
_MIXERS: Final = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))
_LAST: Final = np.uint64(31)


class Purpose(IntEnum):
    """What a number is drawn for: draws for different purposes have nothing to do with each other."""

    ACTION = 1
    INSTANCE = 2
    ACTION_AGAIN = 3
    INSTANCE_AGAIN = 4
    PLANTED = 5
    PLACE = 6
    KEPT = 7
    RUN = 8


def _mixed(bits: Bits) -> Bits:
    for shift, factor in _MIXERS:
        bits = (bits ^ (bits >> np.uint64(shift))) * factor
    return bits ^ (bits >> _LAST)


class Draws:
    """The numbers of one seed, which is any integer from 0 below 2**64."""

    def __init__(self, seed: int) -> None:
        self._seed = _mixed(np.array([seed], dtype=np.uint64) + _GAMMA)

    def bits(self, trace: npt.NDArray[np.integer[Any]], step: int, purpose: Purpose) -> Bits:
        """64 random bits for each of these traces, at a step."""
        here = _mixed(self._seed + np.array([step * len(Purpose) * 2 + purpose], dtype=np.uint64) * _GAMMA)
        return _mixed(_mixed(trace.astype(np.uint64) * _GAMMA + here) + here)

    def below(
        self, bound: npt.NDArray[np.integer[Any]], trace: npt.NDArray[np.integer[Any]], step: int, purpose: Purpose
    ) -> npt.NDArray[np.int64]:
        """For each trace an integer from 0 below its bound (at most 2**31); 0 where that is 0."""
        high = self.bits(trace, step, purpose) >> np.uint64(32)
        drawn: npt.NDArray[np.int64] = ((high * bound.astype(np.uint64)) >> np.uint64(32)).astype(np.int64)
        return drawn
