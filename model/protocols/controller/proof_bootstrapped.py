"""The same promises where the log begins with an image: all brokers are registered and unfenced, all topics are there.

So does a cluster that begins from records written beforehand (``bootstrap.checkpoint``, as shipped), or whose log was
cut behind a snapshot. Nobody leads yet. The lemmas are those of ``proof.py``, and read what the log begins with
(``first_image``). Three more are needed: an ISR of all brokers
is not empty, since there is a broker; no topic's id is left to be drawn, so that no record creates one; and the version
that a partition has at first is behind no offset.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...core.algebra import Algebra, Value, View
from ...core.domains import Constants, Values
from ...core.terms import Sort
from ...prove.specialize import FixedProof, once_is_zero
from ..logs import OFFSET
from .proof import kip_631
from .proof_log import is_current, known_isr_is_never_empty
from .state import NODE, PARTITION, controller

_FIXED: Final = {"bootstrapped": 1}
_SOMEBODY: Final = Values(Sort.REPLICA, lambda _: 0, lambda c: c["replicas"] - 1)


def _at(*values: int) -> Constants:
    return dict(zip((name for name in controller.constants if name not in _FIXED), values, strict=True))


kip_631_bootstrapped = FixedProof(
    controller,
    "kip-631-safe",
    _FIXED,
    follows=tuple(sorted(kip_631.follows)),
    sizes=(
        _at(2, 1, 2, 2, 1, 1, 1),
        _at(1, 3, 1, 1, 1, 1, 1),
        _at(2, 2, 2, 3, 1, 1, 1),
        _at(2, 1, 1, 5, 0, 0, 0),
    ),
    cores=Path(__file__).with_name("cores-kip-631-safe-bootstrapped.json"),
    never=("create_topic",),
)
_OWN: Final = {once_is_zero.__name__, known_isr_is_never_empty.__name__}
kip_631_bootstrapped.takes(kip_631, *kip_631.ghosts, *kip_631.update_texts)
kip_631_bootstrapped.takes(kip_631, *(name for name in kip_631.lemmas if name not in _OWN))
kip_631_bootstrapped.takes_hints(kip_631)
kip_631_bootstrapped.ghost("somebody", "one of the brokers, whichever", _SOMEBODY)


@kip_631_bootstrapped.lemma()
def somebody_is_a_broker(k: Algebra, s: View) -> Value:
    """There is a broker: an ISR of all of them is not empty."""
    return k.all(s.somebody != k.NONE, k.member(s.somebody, s.brokers))


@kip_631_bootstrapped.lemma(partition=PARTITION)
def topics_are_there(k: Algebra, s: View, partition: Value) -> Value:
    """Every topic was there at first: its id is drawn, and no record creates it."""
    return k.all(s.created[partition] == 1, s.created_at[partition] == -1)


@kip_631_bootstrapped.lemma(offset=OFFSET, partition=PARTITION)
def first_version_is_not_led(k: Algebra, s: View, offset: Value, partition: Value) -> Value:
    """In the version that a partition has at first nobody leads it: no offset of the log has that image by itself."""
    first = k.all(offset < s.end, s.prefix_partition_epoch[offset, partition] == 0)
    led_by_none = s.prefix_leader[offset, partition] == k.NONE
    return k.implies(first, k.all(led_by_none, s.prefix_leader_epoch[offset, partition] == 0))


def _known_isr_is_never_empty(k: Algebra, s: View, node: Value, partition: Value) -> Value:
    """Nor is an ISR empty in a node's memory. That it has somebody says no more, but names a member at first."""
    there = k.all(is_current(k, s, node), s.node_leader_epoch[node, partition] != -1)
    isr = s.node_isr[node, partition]
    return k.implies(there, k.any(isr != k.EMPTY, k.member(s.somebody, isr)))


_known_isr_is_never_empty.__name__ = known_isr_is_never_empty.__name__
kip_631_bootstrapped.lemma(node=NODE, partition=PARTITION)(_known_isr_is_never_empty)
