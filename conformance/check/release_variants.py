"""The older variants of the protocol that a cluster without a controller log may have run, as far as its files show.

Kafka has KIP-320 since 2.1. Later releases leave signs: a metadata log, topic ids (2.8), and a cluster id in
``meta.properties`` (2.4).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model.core.protocol import Protocol
from ...model.core.registration import Registration
from .files import Cluster


def earlier_variants(cluster: Cluster, registration: Registration) -> tuple[str, ...]:
    """Return the variants of earlier releases that the brokers may have run, newest first.

    None if the files show a later release.
    """
    for broker in cluster.report.brokers:
        if broker.metadata is not None or broker.cluster_id is not None:
            return ()
        if any(files.topic_id is not None for files in broker.partitions.values()):
            return ()
    return registration.earlier


def lossy_variants(lossy: Protocol, registration: Registration, earlier: tuple[str, ...]) -> Iterator[str]:
    """Yield the variants with losses, most likely cause first; those of earlier releases only if in ``earlier``."""
    for variant in reversed(lossy.variants):
        base = next((each for each in registration.earlier if variant.startswith(f"{each}-")), None)
        if base is None or base in earlier:
            yield variant
