"""What there is in Kafka's ISR replication: the variants and their rules, the state, and what it says of a replica.

``actions.py`` has the steps, ``alter_isr.py`` those of KIP-497, ``promises.py`` the invariants and ``liveness.py`` what
holds in the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ...core.algebra import Algebra, Value, View
from ...core.domains import OPTIONAL_REPLICA, REPLICA, REPLICA_SET, Index, all_replicas, integers
from ...core.protocol import Protocol
from ...core.terms import Sort
from ..logs import EPOCH, OFFSET, partition_constants

fencing = Protocol(
    "fencing",
    "KIP-320, replicas",
    constants=partition_constants(replicas=3, max_records=2),
)


class Truncation(Enum):
    """How far a new follower cuts its log back."""

    HIGH_WATERMARK = "to its own high watermark (before KIP-101)"
    EPOCH_END = "to the end offset of its last epoch on the leader (KIP-101)"
    FIRST_MISMATCH = "to the first offset at which its log differs from the leader's (KIP-279)"
    ON_FETCH = "not at all: a fetch that finds a divergence truncates (KIP-320, first try)"


class Restart(Enum):
    """In which leader epoch a replica is that comes back from a crash."""

    SAME_EPOCH = "in the one that it was in: it may follow in it, and lead in a newer one"
    RESUMES = "in the one that it was in, in which it may also lead again"
    FORGETS = "in none: it did not store it"


class RemoteLeo(Enum):
    """What a leader goes by when it counts who has a record, and who lags."""

    AS_IT_IS = "its followers' logs and leader epochs as they are, which no broker sees"
    OF_EPOCH = "what their fetches have told it in its leader epoch"
    OF_OFFICE = "what their fetches have told it since it last began to lead, unless somebody else has led in between"
    OF_ANY_EPOCH = "what their fetches have told it since it last began to lead, in whatever epoch"


class AlterIsr(Enum):
    """Whom a leader counts on while an ISR that it has proposed to the controller is open (KIP-497)."""

    MAXIMAL = "everyone who is in the ISR that it knows, or may soon be: the maximal ISR"
    MEMBERS = "the ISR that it knows alone"
    UNTIL_LOST = "the maximal ISR, until it gives up waiting for the answer"
    UNTIL_FENCED = "the maximal ISR, until it is answered that the controller is in a newer leader epoch"


@dataclass(frozen=True)
class Rules:
    """In what a variant differs: the truncation, the fencing, whether replicas crash, and what a leader goes by.

    ``fenced`` compares the leader epochs of leader and follower wherever the two talk; ``validated`` compares
    the epoch of the record before the fetch position instead. ``alter_isr``: a leader asks the controller for another
    ISR by a request that is answered, where there is one (``alter_isr.py``); else both change it in one step.
    """

    truncation: Truncation
    fenced: bool = False
    validated: bool = False
    restart: Restart | None = None
    remote_leo: RemoteLeo = RemoteLeo.AS_IT_IS
    alter_isr: AlterIsr | None = None
    running: bool = False
    """Whether a step is what one node does at once: see ``impl_spec.py``."""
    shipped: bool = False
    """Whether it is as Apache Kafka does it with KRaft, where that differs from the text: the K rows of
    ``specs/DEVIATIONS.md``. A role is taken up at once, of whichever record of the metadata log is the last that a
    broker has replayed; a fetch tells where logs part; and processes crash, while disks keep what was written."""
    forgets: bool = False
    """Whether a leader that replays the ISR that it knows forgets what it has asked for since (K12)."""
    fences: bool = False
    """Whether the controller takes a failed follower out of the ISR in the same leader epoch, too (K14)."""

    @property
    def loses_power(self) -> bool:
        """Whether what is not synced may be lost."""
        return self.running and not self.shipped

    @property
    def told(self) -> bool:
        """Whether a leader knows of its followers' LEOs only what their fetches told it."""
        return self.remote_leo is not RemoteLeo.AS_IT_IS


fencing.variant("truncate-to-hw", Rules(Truncation.HIGH_WATERMARK), "Kafka before 0.11")
fencing.variant("kip-101", Rules(Truncation.EPOCH_END), "Kafka 0.11: truncation by leader epoch")
fencing.variant("kip-279", Rules(Truncation.FIRST_MISMATCH), "Kafka 2.0: truncation by the whole lineage")
fencing.variant(
    "kip-320-first-try",
    Rules(Truncation.ON_FETCH, validated=True),
    "KIP-320, Rejected Alternatives: the fetch names the last fetched epoch, not the current one",
)
for _name, _restart, _doc in (
    ("kip-320-resumes", Restart.RESUMES, "KIP-320 with crashes: a restarted leader goes on leading in its epoch"),
    ("kip-320-forgets", Restart.FORGETS, "KIP-320 with crashes: a restarted replica has lost its leader epoch"),
    ("kip-320-restarts", Restart.SAME_EPOCH, "KIP-320 with crashes: a restarted replica leads in a newer epoch only"),
):
    fencing.variant(_name, Rules(Truncation.FIRST_MISMATCH, fenced=True, restart=_restart), _doc, restarts=True)
for _name, _remote_leo, _doc in (
    ("kip-320-stale-acks", RemoteLeo.OF_ANY_EPOCH, "KIP-320 with remote LEOs that outlive their leader epoch"),
    ("kip-320-brokers", RemoteLeo.OF_EPOCH, "KIP-320 as brokers do it: with crashes, and remote LEOs of this epoch"),
):
    fencing.variant(
        _name,
        Rules(Truncation.FIRST_MISMATCH, fenced=True, restart=Restart.SAME_EPOCH, remote_leo=_remote_leo),
        _doc,
        restarts=True,
    )
for _name, _alter_isr, _doc in (
    ("kip-497-eager", AlterIsr.MEMBERS, "KIP-497 with a high watermark that waits for no member to be"),
    ("kip-497-forgets", AlterIsr.UNTIL_LOST, "KIP-497 with a leader that forgets its proposal when no answer comes"),
    ("kip-497-fenced", AlterIsr.UNTIL_FENCED, "KIP-497 with a leader that forgets its proposal when it is fenced"),
    ("kip-497", AlterIsr.MAXIMAL, "kip-320-brokers with an ISR that the leader proposes and the controller takes up"),
):
    fencing.variant(
        _name,
        Rules(
            Truncation.FIRST_MISMATCH,
            fenced=True,
            restart=Restart.SAME_EPOCH,
            remote_leo=RemoteLeo.OF_EPOCH,
            alter_isr=_alter_isr,
        ),
        _doc,
        restarts=True,
    )
fencing.variant(
    "kip-320-cluster",
    Rules(
        Truncation.FIRST_MISMATCH,
        fenced=True,
        restart=Restart.SAME_EPOCH,
        remote_leo=RemoteLeo.OF_EPOCH,
        running=True,
    ),
    "KIP-320 as a running cluster does it: step by step, with disks that lose what is not synced, and clients",
    restarts=True,
)
for _name, _remote_leo, _forgets, _fences, _doc in (
    (
        "kip-320-kafka-shipped",
        RemoteLeo.OF_ANY_EPOCH,
        True,
        False,
        "KIP-320 as Apache Kafka 4.4 does it, with K11 and K12",
    ),
    (
        "kip-320-kafka-shipped-fences",
        RemoteLeo.OF_ANY_EPOCH,
        True,
        True,
        "kip-320-kafka-shipped with followers that are fenced in the same leader epoch (K14)",
    ),
    (
        "kip-320-kafka-stale-acks",
        RemoteLeo.OF_ANY_EPOCH,
        False,
        False,
        "kip-320-kafka with remote LEOs of other epochs (K11)",
    ),
    (
        "kip-320-kafka-forgets",
        RemoteLeo.OF_OFFICE,
        True,
        False,
        "kip-320-kafka with a leader that forgets its proposal (K12)",
    ),
    (
        "kip-320-kafka-fences",
        RemoteLeo.OF_OFFICE,
        False,
        True,
        "kip-320-kafka with followers that are fenced in the same leader epoch (K14)",
    ),
    (
        "kip-320-kafka",
        RemoteLeo.OF_OFFICE,
        False,
        False,
        "KIP-320 as Apache Kafka does it, but for what breaks it (K11, K12)",
    ),
):
    fencing.variant(
        _name,
        Rules(
            Truncation.ON_FETCH,
            fenced=True,
            validated=True,
            restart=Restart.SAME_EPOCH,
            remote_leo=_remote_leo,
            running=True,
            shipped=True,
            forgets=_forgets,
            fences=_fences,
        ),
        _doc,
        restarts=True,
    )
fencing.variant(
    "kip-320",
    Rules(Truncation.FIRST_MISMATCH, fenced=True),
    "Kafka 2.1: fetch and truncation fenced by epoch",
)

_IDS = integers(0, lambda c: c["max_records"])
_EPOCHS = integers(-1, lambda c: c["max_leader_epoch"])
_OFFSETS = integers(0, lambda c: c["log_size"])
_OPTIONAL_IDS = integers(-1, lambda c: c["max_records"] - 1)
_OPTIONAL_OFFSETS = integers(-1, lambda c: c["log_size"] - 1)

RECORD = Index("record", Sort.INT, lambda c: c["max_records"])
"""The records that producers write, by their ids."""


def keeps_committed(rules: Rules) -> bool:
    """Whether an acknowledged or read record stays: in a running variant that loses none below a high watermark.

    In a variant with K11, K12 or K14 a stale leader may commit another record once the controller's ISR is empty, and
    no invariant compares that record with others.
    """
    safe = rules.remote_leo in (RemoteLeo.OF_EPOCH, RemoteLeo.OF_OFFICE)
    return rules.running and safe and not (rules.forgets or rules.fences)


def _in_log(_k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    return offset < s.leo[replica]


def sent(_k: Algebra, s: View, epoch: Value) -> Value:
    """The controller has sent the request of this epoch."""
    return epoch < s.next_leader_epoch


def presumes_leadership(s: View, replica: Value) -> Value:
    """The replica believes that it leads. It need not be true any more."""
    return s.leader[replica] == replica


def _has_remote_leo(k: Algebra, s: View, leader: Value, follower: Value) -> Value:
    return k.all(presumes_leadership(s, leader), leader != follower)


def _leads(_k: Algebra, s: View, replica: Value) -> Value:
    return presumes_leadership(s, replica)


fencing.variable("next_record_id", "the id of the next record that a producer writes", _IDS)
fencing.variable("next_leader_epoch", "the next leader epoch", integers(0, lambda c: c["max_leader_epoch"] + 1))
fencing.variable("leo", "log end offset, exclusive", _OFFSETS, per=(REPLICA,))
fencing.variable(
    "record_id",
    "the record at an offset",
    _OPTIONAL_IDS,
    per=(REPLICA, OFFSET),
    initially=-1,
    live=_in_log,
)
fencing.variable(
    "record_epoch",
    "the leader epoch of the record at an offset",
    _EPOCHS,
    per=(REPLICA, OFFSET),
    initially=-1,
    live=_in_log,
)
fencing.variable("hw", "a replica's high watermark", _OFFSETS, per=(REPLICA,))
fencing.variable("leader_epoch", "the leader epoch that a replica has seen", _EPOCHS, per=(REPLICA,), initially=-1)
fencing.variable("leader", "the leader that a replica follows", OPTIONAL_REPLICA, per=(REPLICA,), initially=-1)
fencing.variable("isr", "the ISR that a replica has seen", REPLICA_SET, per=(REPLICA,))
fencing.variable("quorum_leader_epoch", "the controller's leader epoch", _EPOCHS, initially=-1)
fencing.variable("quorum_leader", "the controller's leader", OPTIONAL_REPLICA, initially=-1)
fencing.variable("quorum_isr", "the controller's ISR", REPLICA_SET, initially=all_replicas)
fencing.variable(
    "request_leader",
    "the leader in the LeaderAndIsr request of an epoch",
    OPTIONAL_REPLICA,
    per=(EPOCH,),
    initially=-1,
    live=sent,
)
fencing.variable(
    "request_isr",
    "the ISR in the LeaderAndIsr request of an epoch",
    REPLICA_SET,
    per=(EPOCH,),
    live=sent,
)
fencing.variable(
    "remote_leo",
    "a follower's LEO as its last fetch in this leader epoch told its leader; -1: none came",
    integers(-1, lambda c: c["log_size"]),
    per=(REPLICA, REPLICA),
    initially=-1,
    live=_has_remote_leo,
    unset=True,
    present=lambda rules: rules.told,
)
fencing.variable(
    "synced",
    "the end of what a replica's disk keeps when power is lost",
    _OFFSETS,
    per=(REPLICA,),
    present=lambda rules: rules.loses_power,
)
fencing.variable(
    "maximal_isr",
    "whoever is, or by what a leader has asked for may be, in the controller's ISR",
    REPLICA_SET,
    per=(REPLICA,),
    live=_leads,
    present=lambda rules: rules.running,
)
fencing.variable(
    "asked_isr",
    "the ISR that a leader has asked the controller for; the one that it knows where it asks for none",
    REPLICA_SET,
    per=(REPLICA,),
    live=_leads,
    present=lambda rules: rules.running,
)
fencing.variable(
    "ahead",
    "1: a leader knows its ISR by the controller's answer, and has not replayed the record of it yet",
    integers(-1, lambda _: 1),
    per=(REPLICA,),
    initially=-1,
    live=_leads,
    present=lambda rules: rules.forgets,
)
fencing.variable(
    "acknowledged",
    "the offset at which its producer was told that all of the ISR have a record; -1: it was not told so",
    _OPTIONAL_OFFSETS,
    per=(RECORD,),
    initially=-1,
    present=lambda rules: rules.running,
    lasting=keeps_committed,
)
fencing.variable(
    "read",
    "the record that a consumer was given at an offset; -1: none yet",
    _OPTIONAL_IDS,
    per=(OFFSET,),
    initially=-1,
    present=lambda rules: rules.running,
    lasting=keeps_committed,
)


def is_true_leader(k: Algebra, s: View, leader: Value) -> Value:
    """The replica presumes leadership in the very epoch in which the controller has it lead."""
    return k.all(
        s.quorum_leader == leader,
        presumes_leadership(s, leader),
        s.leader_epoch[leader] == s.quorum_leader_epoch,
    )


def same_record(k: Algebra, s: View, left: Value, right: Value, offset: Value) -> Value:
    """Both logs hold the same record at this offset."""
    return k.all(
        offset < s.leo[left],
        offset < s.leo[right],
        s.record_id[left, offset] == s.record_id[right, offset],
        s.record_epoch[left, offset] == s.record_epoch[right, offset],
    )
