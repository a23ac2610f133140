"""An adapter over simulated disks or real ones: what the adapters of all protocols share.

Which variant the nodes of ``impl`` are, which faults befall them, where their files are and how a disk is broken for
one action. What an action stands for, and how a node is brought back, each adapter has to know itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import ClassVar

from ..lockstep.faults import STORAGE, Kind
from .parts import Parts
from .stores import DiskStore, MemoryStore, Store


class StoredAdapter:
    """``parts`` may be those of a copy with a defect; ``variant`` any one of the protocol, to see where nodes differ.

    ``disk`` keeps files in a real folder, which cannot be made to fail, instead of on simulated disks.
    """

    protocol: ClassVar[str]
    implemented: ClassVar[str]
    """The variant that the nodes are."""
    drawn: ClassVar[frozenset[Kind]]
    """The faults on simulated disks."""

    def __init__(self, parts: Parts | None = None, *, disk: bool = False, variant: str | None = None) -> None:
        self.variant = variant or self.implemented
        self.name = "disk" if disk else "memory"
        self.faults: Collection[Kind] = self.drawn - STORAGE if disk else self.drawn
        self._parts = parts or Parts.of()
        self._disk = disk
        self._store: Store | None = None

    def close(self) -> None:
        """Give the files back."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def _new_store(self, seed: int) -> Store:
        """Empty disks, in place of those that there were."""
        self.close()
        self._store = DiskStore() if self._disk else MemoryStore(seed)
        return self._store

    @contextmanager
    def _bad_disk(self, node: int, kind: Kind | None) -> Iterator[None]:
        """A node's disk is full, or fails, by the kind of ``STORAGE``; then it works again."""
        store = self._store
        assert store is not None
        (store.fill if kind is Kind.DISK_FULL else store.fail)(node)
        try:
            yield
        finally:
            store.mend(node)
