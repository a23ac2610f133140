"""Why ``kip-631-safe`` keeps its promises, for any number of brokers, controllers, partitions, records, epochs.

The argument in short. The image behind a record is what that record makes of the image before it. So whoever replays
the same records has the same image, and the active controller, which has replayed all of the log, decides on what the
log comes to. What is stable stays, and nobody but the active controller has replayed more than that. A version of a
partition is told by its partition epoch, which only grows while there is the partition: so a leader whose metadata
have the partition epoch that the controller has knows its ISR, and what it asks for is asked of that. Of snapshots, the
active controller orders one when it has heard of every other node that it is idle in its own epoch, in which no order
of another one is taken.

``acknowledged_is_kept`` hangs on the partitions' data, of which ``proof_data.py`` has the lemmas, in a layer of their
own: that promise follows from them, and nothing else needs them. **What is fixed.** The log begins with nothing: all
brokers register, and all topics are created, in it. Where it begins with an image is ``proof_bootstrapped.py``.
"""

from __future__ import annotations

from pathlib import Path

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA_SET, Constants, integers
from ...prove.proof import Ghosts
from ...prove.specialize import FixedProof
from ..logs import OFFSET
from .state import PARTITION, controller

_FIXED = {"bootstrapped": 0}
_OFFSETS = integers(-1, lambda c: c["log_size"] - 1)
_ENDS = integers(0, lambda c: c["log_size"])


def _at(*values: int) -> Constants:
    return dict(zip((name for name in controller.constants if name not in _FIXED), values, strict=True))


kip_631 = FixedProof(
    controller,
    "kip-631-safe",
    _FIXED,
    follows=("acknowledged_is_kept",),
    sizes=(
        _at(2, 1, 2, 2, 1, 1, 1),
        _at(1, 3, 1, 1, 1, 1, 1),
        _at(2, 2, 2, 3, 1, 1, 1),
        _at(2, 1, 1, 5, 0, 1, 1),
        # Whoever joins has registered twice, and somebody has counted on what it had before.
        _at(2, 1, 1, 6, 0, 0, 0),
    ),
    cores=Path(__file__).with_name("cores-kip-631-safe.json"),
)

kip_631.ghost("isr_before", "a partition's ISR before the record at an offset", REPLICA_SET, per=(OFFSET, PARTITION))
kip_631.ghost(
    "created_at", "the offset of the record that creates a partition", _OFFSETS, per=(PARTITION,), initially=-1
)
kip_631.ghost(
    "acknowledged_end",
    "the end of what the leader of a partition had replayed when it acknowledged the record",
    _ENDS,
    per=(PARTITION,),
)


def _appended(k: Algebra, s: View, node: Value, **_: Value) -> Ghosts:
    return {"isr_before": lambda o, p: k.ite(o == s.end, s.node_isr[node, p], s.isr_before[o, p])}


for _action in (
    "register_broker",
    "unfence_broker",
    "fence_broker",
    "request_shutdown",
    "remove_topic",
    "elect_leader",
    "alter_partition",
):
    kip_631.updates(_action)(_appended)


@kip_631.updates("create_topic")
def _created(k: Algebra, s: View, node: Value, partition: Value, **_: Value) -> Ghosts:
    created = {"created_at": lambda p: k.ite(p == partition, s.end, s.created_at[p])}
    return {**_appended(k, s, node), **created}


@kip_631.updates("acknowledge")
def _acknowledged(k: Algebra, s: View, leader: Value, partition: Value) -> Ghosts:
    end = s.view_applied[leader]
    return {"acknowledged_end": lambda p: k.ite(p == partition, end, s.acknowledged_end[p])}
