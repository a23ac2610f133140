"""What there is of a protocol, as data: what ``fencepost protocols`` tells, and what help texts are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model.core.domains import Index, Variable
from ..model.core.pretty import show
from ..model.core.protocol import Protocol
from ..model.core.registration import Registration
from ..model.prove.proof import Proof
from ..traces.run_report import Json
from .harness import Harness, find_harness
from .lockstep.faults import Kind
from .lockstep.registry import adapter_names
from .simulation.registry import Mode, simulated_names


def described(registration: Registration) -> dict[str, Json]:
    """One protocol with everything that has a name: variants, constants, cells, actions, promises, what it lacks.

    ``held_to``: the same of the text that its systems are held to, where that is another one.
    """
    protocol = registration.protocol
    defaults = protocol.check_constants({})
    proof, *more = registration.find_proofs() or (None,)
    harness = find_harness(registration.name)
    text = None if harness is None else harness.find_text()
    return {
        "protocol": protocol.name,
        "source": protocol.source,
        **_text(protocol, defaults),
        "liveness": [
            {"name": each.name, "form": each.form.value, "says": each.doc} for each in protocol.liveness.values()
        ],
        "fairness": [{"name": each.name, "says": each.doc} for each in protocol.fairness.values()],
        "proof": None if proof is None else _proof(proof),
        "more_proofs": [_proof(each) for each in more if each is not None],
        "binding": harness is not None and harness.binding is not None,
        "adapters": list(adapter_names(protocol.name)) if harness is not None and harness.binding is not None else [],
        "free": list(simulated_names(protocol.name)) if harness is not None and harness.binding is not None else [],
        "faults": [kind.value for kind in _faults(harness)],
        "defects": 0 if harness is None else len(harness.find_defects()),
        "held_to": None if text is None else _text(text, text.check_constants({})),
    }


def _text(protocol: Protocol, defaults: dict[str, int]) -> dict[str, Json]:
    """What has a name in a text."""
    return {
        "variants": [
            {"name": each.name, "says": each.doc, "safe": each.name == protocol.default_variant}
            for each in protocol.variants.values()
        ],
        "constants": [
            {
                "name": each.name,
                "default": each.default,
                "minimum": each.minimum,
                **({} if each.maximum is None else {"maximum": each.maximum}),
                "says": each.doc,
            }
            for each in protocol.constants.values()
        ],
        "variables": [_variable(each, defaults) for each in protocol.variables.values()],
        "actions": _actions(protocol),
        "invariants": [{"name": each.name, "says": each.doc} for each in protocol.invariants.values()],
        "witnesses": [{"name": each.name, "says": each.doc} for each in protocol.witnesses.values()],
    }


def _proof(proof: Proof) -> dict[str, Json]:
    return {"variant": proof.variant, "lemmas": len(proof.lemmas)}


def _variable(variable: Variable, defaults: dict[str, int]) -> dict[str, Json]:
    values = variable.values
    return {
        "name": variable.name,
        "per": [index.name for index in variable.per],
        "holds": " | ".join(values.names) or values.sort.value,
        "cells": _cells(variable, defaults),
        "says": variable.doc,
    }


def _cells(variable: Variable, defaults: dict[str, int]) -> int:
    """How many cells it has at the default constants."""
    cells = 1
    for size in variable.shape(defaults):
        cells *= size
    return cells


def _actions(protocol: Protocol) -> list[Json]:
    """Every action of any variant, with the guards that it has in the last variant that has it."""
    found: dict[str, dict[str, Json]] = {}
    for variant in protocol.variants:
        for action in protocol.traced(variant).actions:
            spec = protocol.actions[action.name]
            variants = [name for name, each in protocol.variants.items() if spec.present(each.rules)]
            found[action.name] = {
                "name": action.name,
                "tla": spec.tla_name,
                "parameters": {name: _index(index) for name, index in action.params.items()},
                "guards": {name: show(guard) for name, guard in action.guards},
                "variants": "all" if len(variants) == len(protocol.variants) else list[Json](variants),
                "says": spec.doc,
            }
    return [found[name] for name in protocol.actions if name in found]


def _index(index: Index) -> str:
    return f"{index.name} ({' | '.join(index.names)})" if index.names else index.name


def ways_of(described: Mapping[str, Any]) -> dict[str, list[str]]:
    """By the name of a system of a protocol, the ways in which it is driven."""
    by_way = {Mode.FREE: described["free"], Mode.LOCKSTEP: described["adapters"]}
    names = dict.fromkeys((*described["adapters"], *described["free"]))
    return {name: [way.value for way in Mode if name in by_way[way]] for name in names}


def _faults(harness: Harness | None) -> list[Kind]:
    """The kinds of fault that the protocol's own system can have; without one, those that the model's adapter draws."""
    if harness is None or harness.binding is None:
        return []
    make = harness.find_adapter(harness.adapter_names[0]) if harness.adapter_names else None
    if make is None:
        return list(Kind)
    adapter = make(None, None)
    try:
        return [kind for kind in Kind if kind in adapter.faults]
    finally:
        adapter.close()
