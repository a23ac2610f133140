"""The reference page of a protocol, from its model, its expected results and its deviations."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from fencepost.conformance.harness import find_harness
from fencepost.conformance.plan import Plan
from fencepost.conformance.stages import markdown, stages
from fencepost.model.core.protocol import Protocol
from fencepost.model.core.registration import Registration
from fencepost.model.expected.counterexample import Counterexample
from fencepost.model.expected.obligation_count import ObligationCount
from fencepost.model.expected.state_count import StateCount

_ROOT: Final = Path(__file__).parents[2]


def overview_page() -> str:
    """Return the page that compares the protocols."""
    table = "\n".join(markdown(stages()))
    introduction = "The page of each protocol has its constants, actions, invariants, variants and counts."
    return f"# Protocols\n\n{introduction}\n\n{table}\n"


def protocol_page(registration: Registration) -> str:
    """Return the page in Markdown: constants, actions, guards, invariants, variants, counts, proofs, deviations."""
    protocol, name = registration.protocol, registration.name
    traced, diagram = protocol.traced(), f"../../images/actions-{name}.svg"
    sections = [
        f"# {name}: {protocol.source}",
        f"The tables describe the safe variant `{protocol.default_variant}`.",
        _section(
            "Constants",
            ("constant", "meaning", "default", "minimum"),
            ((f"`{each.name}`", each.doc, each.default, each.minimum) for each in protocol.constants.values()),
        ),
        _section(
            "Variables",
            ("variable", "one cell per", "meaning"),
            (
                (f"`{each.name}`", ", ".join(index.name for index in each.per) or "-", each.doc)
                for each in (protocol.variables[name] for name in traced.variables)
            ),
        ),
        "## Actions",
        f"[![Guards read and updates write these variables]({diagram})]({diagram})",
        "Rows are actions, columns are variables. A ring: a guard reads it. A square: the action writes it.",
        *_actions(protocol),
        _section(
            "Invariants",
            ("invariant", "claim"),
            ((f"`{each}`", _summary(protocol.invariants[each].text)) for each in traced.invariants),
        ),
        _section(
            "Liveness",
            ("property", "claim"),
            ((f"`{each.name}`", _summary(each.text)) for each in protocol.liveness.values()),
        ),
        _section(
            "Variants",
            ("variant", "what differs", "verdict of `fencepost check`"),
            ((f"`{each.name}`", each.doc, _verdict(registration, each.name)) for each in protocol.variants.values()),
        ),
        *_expected(registration),
        *_deviations(name),
    ]
    return "\n\n".join(each for each in sections if each) + "\n"


def _actions(protocol: Protocol) -> Iterable[str]:
    for action in protocol.traced().actions:
        params = ", ".join(f"{name}: {index.name}" for name, index in action.params.items())
        yield f"### {action.name}"
        yield f"`{action.name}({params})`"
        yield _cell(protocol.actions[action.name].doc)
        yield _table(("guard", "condition"), ((f"`{name}`", f"`{term!r}`") for name, term in action.guards))
        yield _table(("writes", "value"), ((f"`{left!r}`", f"`{right!r}`") for left, right in action.writes))


def _verdict(registration: Registration, variant: str) -> str:
    harness = find_harness(registration.name)
    plan = Plan() if harness is None else harness.find_plan()
    if variant in plan.breaks:
        return "violated"
    return "holds" if variant in (registration.protocol.default_variant, *plan.holds) else "not part of it"


def _expected(registration: Registration) -> Iterable[str]:
    """Tables of the state counts, counterexamples and obligations that the tests demand."""
    try:
        module = importlib.import_module(f"{registration.package}.expected")
    except ModuleNotFoundError:
        return
    rows = [row for value in vars(module).values() if isinstance(value, tuple) for row in value]
    name, default = registration.name, registration.protocol.default_variant
    yield _section(
        "State counts",
        ("variant", "constants that differ from the defaults", "states", "depth"),
        (
            (f"`{each.variant}`", _constants(each.constants), f"{each.states:,}", _depth(each))
            for each in rows
            if isinstance(each, StateCount) and not each.dropped
        ),
        f"`fencepost explore {name} --variant VARIANT` with these constants prints the same numbers.",
    )
    yield _section(
        "Shortest counterexamples",
        ("variant", "constants that differ from the defaults", "invariant", "steps"),
        (
            (f"`{each.variant}`", _constants(each.constants), f"`{each.violated}`", each.steps)
            for each in rows
            if isinstance(each, Counterexample) and not each.dropped
        ),
    )
    yield _section(
        "Counterexamples without a guard",
        ("guard that is dropped", "constants that differ from the defaults", "invariant", "steps"),
        (
            (
                ", ".join(f"`{guard}`" for guard in each.dropped),
                _constants(each.constants),
                f"`{each.violated}`",
                each.steps,
            )
            for each in rows
            if isinstance(each, Counterexample) and each.dropped and each.variant == default
        ),
        f"`fencepost explore {name} --drop GUARD` finds each.",
    )
    yield _section(
        "Proofs for all constants",
        ("variant", "fixed constants", "obligations"),
        (
            (f"`{each.variant}`", _constants(each.at), f"{each.obligations:,}")
            for each in rows
            if isinstance(each, ObligationCount)
        ),
        f"`fencepost prove {name} --variant VARIANT` proves these obligations with Z3.",
    )


def _depth(count: StateCount) -> str:
    return "-" if count.depth is None else str(count.depth)


def _deviations(name: str) -> Iterable[str]:
    """List the sections of the table of deviations that are about a protocol."""
    text = (_ROOT / "specs" / "DEVIATIONS.md").read_text(encoding="utf-8")
    part = re.search(rf"^## {name} .*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if part is None:
        return
    links = (
        f"- [{title}](../deviations.md#{_slug(title)})" for title in re.findall(r"^### (.*)$", part[0], re.MULTILINE)
    )
    yield "## Deviations"
    yield "The KIP, this model, `impl/` and Apache Kafka differ in these respects:"
    yield "\n".join(links)


def _slug(title: str) -> str:
    """Return the anchor that Markdown's table of contents gives a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


def _constants(constants: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in constants.items()) or "none"


def _summary(text: object) -> str:
    """Return the first paragraph of a function's docstring, on one line."""
    return " ".join((inspect.getdoc(text) or "").split("\n\n")[0].split())


def _section(title: str, head: tuple[str, ...], rows: Iterable[tuple[object, ...]], introduction: str = "") -> str:
    table = _table(head, rows)
    return "\n\n".join(each for each in (f"## {title}", introduction, table) if each) if table else ""


def _table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines]) if lines else ""


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")
