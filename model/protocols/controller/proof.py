"""The proof of ``controller`` with no bound: ghosts, and lemmas of log, partitions, brokers, data, each in a file."""

from .proof_ghosts import kip_631

from . import proof_log, proof_brokers, proof_partitions, proof_data  # isort: skip  # noqa: F401 - what they register belongs to the proof

__all__ = ["kip_631"]
