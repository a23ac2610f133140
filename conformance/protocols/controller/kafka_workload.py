"""How likely events around Apache Kafka's controllers are, and which of them are due where nothing goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...simulation.events import Event, EventKind
from ...simulation.system import EnabledEvent

if TYPE_CHECKING:
    from .kafka import KafkaControllers

_SELDOM: Final = 0.05
_RATHER: Final = 3.0
_AMID: Final = 0.5
"""How likely the active controller resigns or fails while records are pending."""


def _is_newest(system: KafkaControllers) -> bool:
    """Whoever was elected last leads still, and can be reached."""
    leads = system.newest[1]
    return (
        leads >= 0 and leads not in system.down | system.cut and bool(system.seen[leads - len(system.brokers)]["leads"])
    )


def due(event: Event, system: KafkaControllers) -> bool:
    """Whether a timer has run off, in peace: all fetch, live, and follow; who has no leader elects one."""
    if event.what is not EventKind.TIMER or event.node is None:
        return False
    match event.name:
        case "stand":
            return not _is_newest(system)
        case "fetch":
            return event.arg("leader") == system.newest[1]
        case "isr":
            return len(event.args) == 2 and _is_to_join(event, system)
        case "metadata":
            return event.arg("records") != 1 or len(system.logs.committed) - system.processes[event.node].end == 1
    return True


def _is_to_join(event: Event, system: KafkaControllers) -> bool:
    """A broker that works is not in the ISR of who leads, as far as that one knows."""
    assert event.node is not None
    other = int(event.arg("member"))
    view = system.logs.prefix(system.processes[event.node].end)
    held = view.partitions[system.names[int(event.arg("partition"))]]
    return other not in held.isr and view.alive(other) and other not in system.down | system.cut


def weight(pending: EnabledEvent, system: KafkaControllers) -> float:
    """How likely an event is, beside 1 of any other."""
    event = pending.event
    led = _is_newest(system)
    is_pending = led and len(system.logs.committed) < system.seen[system.newest[1] - len(system.brokers)]["end"]
    match event.what:
        case EventKind.DELIVER:
            return _SELDOM if pending.message in system.slow else _RATHER
        case EventKind.CRASH | EventKind.CUT if event.name != "stop":
            amid = event.node == system.newest[1] and is_pending
            return _AMID if amid else _SELDOM
        case EventKind.OPERATE if event.name == "resign":
            return _AMID if is_pending else _SELDOM
        case EventKind.OPERATE:
            return _SELDOM * 2
        case EventKind.TIMER if event.name == "stand":
            return _SELDOM / 2 if led else _RATHER * 2
        case EventKind.TIMER if event.name == "register":
            return _RATHER
        case EventKind.START | EventKind.HEAL:
            return _RATHER
        case EventKind.TIMER if event.name == "metadata":
            return 1.0 if event.arg("records") != 1 else 0.3
        case EventKind.TIMER if event.name == "fetch":
            return _RATHER if is_pending or not led else _SELDOM * 4
        case EventKind.TIMER if event.name == "isr":
            return 0.6 if event.arg("member") != event.node and len(event.args) == 2 else _SELDOM
        case EventKind.CALL:
            return _call(event, system)
        case EventKind.TIME:
            return 0.5
        case EventKind.PROBE:
            return _SELDOM * 4
    return 1.0


def _call(event: Event, system: KafkaControllers) -> float:
    """Of clients: who can be elected uncleanly is, and topics stay for a while."""
    match event.name:
        case "create-topic":
            return 0.5
        case "elect-unclean":
            held = system.image.partitions.get(system.names[int(event.arg("partition"))])
            lost = held is not None and held.leader is None and not any(map(system.image.alive, held.isr))
            return _RATHER if lost else _SELDOM
    return _SELDOM
