"""The TLA+ modules in ``specs/``, read as text: what they declare, and each definition with its named guards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fencepost.model.core.protocol import Protocol, TracedProtocol

SPECS = Path(__file__).parents[2] / "specs"


def camel(name: str) -> str:
    """``kip-320-first-try`` and ``follower_fetch`` as TLA+ has them."""
    return "".join(part.capitalize() for part in re.split("[-_]", name))


def snake(name: str) -> str:
    """``newLeader`` as Python has it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


@dataclass(frozen=True)
class Definition:
    """One definition of a module: its parameters and its text, without blank lines and whole-line comments."""

    name: str
    parameters: tuple[str, ...]
    text: str

    def conjuncts(self) -> list[str]:
        """The outermost conjuncts, each from its ``/\\`` up to the next."""
        return re.split(r"^    /\\ ", self.text, flags=re.MULTILINE)[1:]

    def guards(self) -> list[str]:
        """The names of the guards, in order. Fails where a conjunct is neither a named guard nor an effect."""
        names = []
        for conjunct in self.conjuncts():
            named = re.findall(r"\\\* ([a-z_0-9]+)$", conjunct, flags=re.MULTILINE)
            effect = re.search(r"\w'|UNCHANGED|\w+Effect\(", conjunct) is not None
            assert len(named) == (0 if effect else 1), (
                f"{self.name}: neither a guard with its name nor an effect: {conjunct}"
            )
            names += named
        return names


@dataclass(frozen=True)
class Module:
    """A module together with what it extends: the definitions that its name stands for in TLC."""

    name: str
    constants: tuple[str, ...]
    variables: tuple[str, ...]
    definitions: Mapping[str, Definition]


def read_module(name: str) -> Module:
    """Read ``specs/NAME.tla`` and the modules of this folder that it extends."""
    text = (SPECS / f"{name}.tla").read_text(encoding="ascii")
    text = re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL)
    text = re.sub(r"^\s*\\\*.*\n", "", text, flags=re.MULTILINE)
    constants: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    definitions: dict[str, Definition] = {}
    extends = re.search(r"^EXTENDS (.+)$", text, flags=re.MULTILINE)
    for base in extends.group(1).split(", ") if extends else ():
        if (SPECS / f"{base}.tla").exists():
            parent = read_module(base)
            # Two modules that are extended may extend the same one.
            constants = tuple(dict.fromkeys(constants + parent.constants))
            variables = tuple(dict.fromkeys(variables + parent.variables))
            definitions |= parent.definitions
    constants += _declared(text, "CONSTANTS")
    variables += _declared(text, "VARIABLES")
    for block in re.split(r"^(?=\w+(?:\([\w, ]+\))? +==)", text, flags=re.MULTILINE)[1:]:
        head, body = block.split("==", 1)
        match = re.fullmatch(r"(\w+)(?:\(([\w, ]+)\))?\s*", head)
        assert match, f"{name}.tla: unreadable head {head!r}"
        body = re.split(r"^(?:-{4,}|={4,})", body, flags=re.MULTILINE)[0]
        parameters = tuple(match.group(2).split(", ")) if match.group(2) else ()
        assert match.group(1) not in definitions, f"{name}.tla defines {match.group(1)} again"
        definitions[match.group(1)] = Definition(match.group(1), parameters, body.strip("\n"))
    return Module(name, constants, variables, definitions)


def _declared(text: str, keyword: str) -> tuple[str, ...]:
    block = re.search(rf"^{keyword}\n((?:    .*\n)+)", text, flags=re.MULTILINE)
    return tuple(re.findall(r"^    (\w+)", block.group(1), flags=re.MULTILINE)) if block else ()


def left_out(module: Module, traced: TracedProtocol) -> set[str]:
    """Guards of the module's actions that a variant's have not. Fails where names, parameters or order differ."""
    missing: set[str] = set()
    for action in traced.actions:
        definition = module.definitions[camel(action.name)]
        assert tuple(map(snake, definition.parameters)) == tuple(action.params), action.name
        guards = [name for name, _ in action.guards]
        missing |= set(definition.guards()) - set(guards)
        assert [name for name in definition.guards() if name in guards] == guards, action.name
    return missing


def steps_of(module: Module) -> list[str]:
    """The actions that ``Next`` calls, sorted."""
    text = module.definitions["Next"].text
    return sorted(re.findall(r"^ *\\/ (?:\\E [^:]+ : )?(\w+)", text, flags=re.MULTILINE))


def hold_missing_guard(protocol: Protocol, action: str, guard: str) -> None:
    """The planted fault for the comparison: the module's action without a guard is another than the protocol's."""
    definition = read_module(camel(protocol.name)).definitions[camel(action)]
    lines = [line for line in definition.text.split("\n") if not line.endswith(f" {guard}")]
    planted = Definition(definition.name, definition.parameters, "\n".join(lines))
    guards = [name for name, _ in protocol.traced().action(action).guards]
    assert planted.guards() != guards == definition.guards()
