"""The order of keys in files: by a hash of 64 bits, and by the words where two keys have the same one.

A hash spreads keys evenly, so that a range of it is a part of them whose size is known before; and what is sorted by it
is found in a table that is laid out by it from first to last. Files hold keys as rows, shape (n, words).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.uint64]
"""Keys of n states, a key's words side by side: shape (n, words)."""

Orders = npt.NDArray[np.uint64]
"""The hash of each key: shape (n,)."""

Actions = npt.NDArray[np.uint16]
"""Of each key the action by which it was found first, and one: shape (n,)."""

BITS: Final = 64

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_NEXT: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_LAST: Final = np.uint64(0xD6E8FEB86659FD93)


def order_of(keys: Rows) -> Orders:
    """The hash of each key; ``hashed`` of ``search.c`` is the same function."""
    mixed: Orders = keys[:, 0] * _ODD
    for word in range(1, keys.shape[1]):
        mixed ^= mixed >> np.uint64(29)
        mixed += keys[:, word]
        mixed *= _NEXT
    mixed ^= mixed >> np.uint64(32)
    mixed *= _LAST
    mixed ^= mixed >> np.uint64(29)
    return mixed


def sorting(keys: Rows, orders: Orders) -> npt.NDArray[np.intp]:
    """Which key comes first, which next; of equal keys the one that came first."""
    by_hash = np.argsort(orders, kind="stable")
    ranked = orders[by_hash]
    tied = np.flatnonzero(ranked[1:] == ranked[:-1])
    if tied.size and (keys[by_hash[tied]] != keys[by_hash[tied + 1]]).any():
        # Two keys with one hash: hardly ever.
        by_hash = np.lexsort((*keys.T[::-1], orders))
    return by_hash


def matches(
    keys: Rows, orders: Orders, other: Rows, of_other: Orders
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The places of keys that both have, in each. Both are in order; neither has a key twice."""
    if orders.size > of_other.size:
        there, here = matches(other, of_other, keys, orders)
        return here, there
    mine: list[npt.NDArray[np.intp]] = []
    theirs: list[npt.NDArray[np.intp]] = []
    asking = np.arange(orders.size)
    at = np.searchsorted(of_other, orders)
    while asking.size:
        inside = at < of_other.size
        asking, at = asking[inside], at[inside]
        alike = of_other[at] == orders[asking]
        asking, at = asking[alike], at[alike]
        same = (keys[asking] == other[at]).all(axis=1)
        mine.append(asking[same])
        theirs.append(at[same])
        # Another key with the same hash may come next.
        asking, at = asking[~same], at[~same] + 1
    nothing = np.empty(0, dtype=np.intp)
    return (np.concatenate(mine), np.concatenate(theirs)) if mine else (nothing, nothing)
