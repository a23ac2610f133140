"""The proof of ``snapshots`` with no bound: ghosts, lemmas, those of late responses, and hints, each in a file."""

from .proof_ghosts import kip_630

from . import proof_late_lemmas, proof_lemmas, proof_hints  # isort: skip  # noqa: F401 - what they register belongs to the proof

__all__ = ["kip_630"]
