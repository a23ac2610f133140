"""Packed keys: a state as a few 64-bit words, exactly, and back.

Every cell has a fixed field of just enough bits for its domain; no field crosses a word. Keys are exact: two
states have equal keys if and only if they are equal, so there is no collision to speak of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.ground import Layout, State

Words = npt.NDArray[np.uint64]
"""Keys of n states: shape (words, n)."""

Columns = npt.NDArray[np.signedinteger]
"""Cells of n states: shape (cells, n), of the narrowest signed dtype in which every domain fits."""


@dataclass(frozen=True)
class Field:
    """Where a cell lies in the key: ``value - low`` in ``bits`` bits of word ``word`` from bit ``shift``."""

    word: int
    shift: int
    bits: int
    low: int
    high: int


class Packing:
    """The key format of a layout."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.fields: list[Field] = []
        word = shift = 0
        for cell in layout.cells:
            bits = (cell.high - cell.low).bit_length()
            if shift + bits > 64:
                word, shift = word + 1, 0
            self.fields.append(Field(word, shift, bits, cell.low, cell.high))
            shift += bits
        self.words = word + 1
        # ``value - low`` must fit too. One above the domain must still be representable, or an overflow would look
        # like a legal value.
        widest = max(max(abs(f.low), abs(f.high), f.high - f.low) for f in self.fields)
        narrow = (t for t in (np.int8, np.int16, np.int32) if widest + 2 <= np.iinfo(t).max)
        self.dtype: npt.DTypeLike = next(narrow, np.int64)

    def pack(self, columns: Columns) -> Words:
        """Keys of columns whose every value lies in its domain."""
        keys = np.zeros((self.words, columns.shape[1]), dtype=np.uint64)
        for field, column in zip(self.fields, columns, strict=True):
            keys[field.word] |= (column - field.low).astype(np.uint64) << np.uint64(field.shift)
        return keys

    def unpack(self, keys: Words) -> Columns:
        """The columns of keys."""
        columns = np.empty((len(self.fields), keys.shape[1]), dtype=self.dtype)
        for field, column in zip(self.fields, columns, strict=True):
            # What is cut off lies above the field: fewer bytes are masked.
            np.copyto(column, keys[field.word] >> np.uint64(field.shift), casting="unsafe")
            column &= np.uint64((1 << field.bits) - 1).astype(column.dtype)
            if field.low:
                column += field.low
        return columns

    def state(self, key: npt.NDArray[np.uint64]) -> State:
        """One state, of one key of shape (words,)."""
        return tuple((int(key[f.word]) >> f.shift & ((1 << f.bits) - 1)) + f.low for f in self.fields)

    def key(self, state: State) -> npt.NDArray[np.uint64]:
        """The key of one state, shape (words,)."""
        words = [0] * self.words
        for field, value in zip(self.fields, state, strict=True):
            words[field.word] |= (value - field.low) << field.shift
        return np.array(words, dtype=np.uint64)
