"""The proof of ``tiering`` with no bound: what is on remote, and what is committed, each in a file."""

from .proof_remote import kip_1023

from . import proof_committed  # isort: skip  # noqa: F401 - what it registers belongs to the proof

__all__ = ["kip_1023"]
