"""What can be said in a trace of one variant at given constants: its actions, their parameters, its cells."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..model.core.domains import Constants
from ..model.core.ground import Layout
from ..model.core.loading import FORMS
from ..model.core.protocol import Protocol
from ..model.core.registry import PROTOCOLS
from .format import TraceEvent, TraceHeader
from .observe import domain_words, encode


@dataclass(frozen=True)
class Fault:
    """Something wrong with a line of a trace, and how to mend it."""

    what: str
    mend: str


def shown(value: object, limit: int = 60) -> str:
    """A value from the input on one line of plain ASCII, cut off where it is long."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 3] + "..."


@dataclass(frozen=True)
class Vocabulary:
    """The words of a trace. ``actions`` gives each action's parameters, and for each the number of its values."""

    protocol: Protocol
    variant: str
    constants: Constants
    actions: Mapping[str, Mapping[str, int]]
    layout: Layout

    @classmethod
    def of(cls, protocol: Protocol, variant: str, constants: Constants) -> Vocabulary:
        """The words of one variant. The names and constants must be right (``header_faults``)."""
        rules = protocol.variants[variant].rules
        actions = {
            action.name: {name: index.size(constants) for name, index in action.params.items()}
            for action in protocol.actions.values()
            if action.present(rules)
        }
        return cls(protocol, variant, constants, actions, Layout(protocol.variables_of(variant), constants))

    def faults(self, event: TraceEvent) -> Iterator[Fault]:
        """What an event says that cannot be said."""
        if event.action is not None:
            yield from self._step_faults(event.action, event.params)
        for name, value in event.observed.items():
            number = self.layout.by_name.get(name)
            if number is None:
                yield self._unknown_cell(name)
                continue
            cell = self.layout.cells[number]
            try:
                encode(cell, value)
            except ValueError:
                yield Fault(f"{name} is observed as {shown(value)}", f"give {domain_words(cell)}")

    def bound(self, event: TraceEvent) -> TraceEvent:
        """An event without faults, its parameters as the model has them: a name becomes the value that it names."""
        if event.action is None or not any(isinstance(value, str) for value in event.params.values()):
            return event
        indices = self.protocol.actions[event.action].params
        params: dict[str, Any] = {name: indices[name].number(value) for name, value in event.params.items()}
        return replace(event, params=params)

    def _step_faults(self, action: str, params: Mapping[str, int | None]) -> Iterator[Fault]:
        wanted = self.actions.get(action)
        if wanted is None:
            yield Fault(
                f"{self.protocol.name} {self.variant} has no action {shown(action)}",
                f"use one of {', '.join(self.actions)}",
            )
            return
        for name, size in wanted.items():
            if name not in params:
                yield Fault(f"{action} lacks its parameter {name}", "give it, or null where it is not known")
                continue
            value: object = params[name]
            names = self.protocol.actions[action].params[name].names
            if names and value is not None and str(value) not in names:
                told = value if isinstance(value, int) else shown(value)
                yield Fault(f"{name} of {action} is {told}", f"give {' or '.join(map(repr, names))}, or null")
            elif names or value is None:
                continue
            elif not isinstance(value, int):
                yield Fault(f"{name} of {action} is {shown(value)}", f"give an integer from 0 to {size - 1}, or null")
            elif not 0 <= value < size:
                yield Fault(f"{name} of {action} is {value}", f"give an integer from 0 to {size - 1}, or null")
        for name in params:
            if name not in wanted:
                takes = ", ".join(wanted) or "none"
                yield Fault(f"{action} has no parameter {shown(name)}", f"its parameters are {takes}")

    def _unknown_cell(self, name: str) -> Fault:
        variable = name.partition("[")[0]
        numbers = self.layout.by_variable.get(variable)
        if numbers is None:
            known = ", ".join(self.layout.by_variable)
            return Fault(f"the state has no variable for the cell {shown(name)}", f"use one of {known}")
        cells = [self.layout.cells[number].name for number in numbers.values()]
        allowed = cells[0] if len(cells) == 1 else f"{cells[0]} to {cells[-1]}"
        return Fault(f"the state has no cell {shown(name)}", f"{variable} has {allowed}")


def header_faults(header: TraceHeader, protocols: Mapping[str, Protocol] = PROTOCOLS) -> Iterator[Fault]:
    """What a header names that is not there."""
    protocol = protocols.get(header.protocol)
    if protocol is None:
        known = ", ".join(protocols)
        yield Fault(
            f"unknown protocol {shown(header.protocol)}", f"use one of {known}, or name it by --protocol {FORMS}"
        )
        return
    if header.variant not in protocol.variants:
        known = ", ".join(protocol.variants)
        yield Fault(f"{protocol.name} has no variant {shown(header.variant)}", f"use one of {known}")
    for name, value in header.constants.items():
        spec = protocol.constants.get(name)
        if spec is None:
            known = ", ".join(protocol.constants)
            yield Fault(f"{protocol.name} has no constant {shown(name)}", f"its constants are {known}")
        elif not spec.minimum <= value <= spec.largest:
            yield Fault(f"the constant {name} is {value}", f"give an integer from {spec.minimum} to {spec.largest}")
    for name in protocol.constants:
        if name not in header.constants:
            yield Fault(f"the constant {name} is missing", "give every constant of the protocol")


def vocabulary_of(header: TraceHeader, protocols: Mapping[str, Protocol] = PROTOCOLS) -> Vocabulary:
    """The words of a trace with this header. Raises ValueError where the header names what is not there."""
    for fault in header_faults(header, protocols):
        raise ValueError(f"{fault.what}; {fault.mend}")
    return Vocabulary.of(protocols[header.protocol], header.variant, dict(header.constants))
