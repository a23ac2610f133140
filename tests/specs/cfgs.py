"""The ``.cfg`` files of a protocol's module: what they must say, and the same at other constants."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import Enum
from typing import Any

from fencepost.conformance.harness import plan_of
from fencepost.model.core.protocol import Protocol

from .modules import SPECS, camel


def cfg_of(protocol: Protocol, variant: str, constants: tuple[int, ...], *checked: str) -> str:
    """The variant's ``.cfg`` at other constants, checking only this."""
    name = f"{camel(protocol.name)}-{variant}.cfg"
    text = (SPECS / name).read_text(encoding="ascii").partition("INVARIANTS")[0]
    for constant, value in zip(map(camel, protocol.constants), constants, strict=True):
        replicas = f"{{{', '.join(map(str, range(value)))}}}"
        text = re.sub(rf" {constant} = .+", f" {constant} = {replicas if constant == 'Replicas' else value}", text)
    return "\n".join([text, *(f"INVARIANT {promise}" for promise in checked), ""])


def hold_cfg(
    protocol: Protocol, variant: str, rules: Mapping[str, str], promises: Sequence[str], at: str | None = None
) -> None:
    """That a variant's ``.cfg`` has its rules, these promises in this order, and the constants of the plan.

    ``at``: other constants than the plan's.
    """
    text = (SPECS / f"{camel(protocol.name)}-{variant}.cfg").read_text(encoding="ascii")
    given = dict(re.findall(r"^    (\w+) = (.+)$", text, flags=re.MULTILINE))
    plan = plan_of(protocol)
    sizes = (at or {**plan.holds, **plan.breaks}.get(variant, plan.at)).split("/")
    constants = dict(zip(map(camel, protocol.constants), sizes, strict=True))
    replicas = ", ".join(map(str, range(int(constants["Replicas"]))))
    assert given == {**constants, "Replicas": f"{{{replicas}}}", **rules}
    assert re.findall(r"^    (\w+)$", text, flags=re.MULTILINE) == [camel(name) for name in promises]


def written_rules(rules: Any, *without: str) -> dict[str, str]:
    """The rules of a variant, a dataclass of booleans and enums, as a ``.cfg`` has them; ``without`` these."""
    values = {each.name: getattr(rules, each.name) for each in fields(rules) if each.name not in without}
    return {
        camel(name): f'"{value.name.lower()}"' if isinstance(value, Enum) else str(value).upper()
        for name, value in values.items()
    }


def cfg_text(constants: tuple[int, ...], *lines: str) -> str:
    """A ``.cfg`` of the modules of ``fencing`` at these constants; ``lines`` say what to check."""
    replicas, log_size, max_records, max_leader_epoch = constants
    return "\n".join(
        [
            "CONSTANTS",
            f"    Replicas = {{{', '.join(map(str, range(replicas)))}}}",
            f"    LogSize = {log_size}",
            f"    MaxRecords = {max_records}",
            f"    MaxLeaderEpoch = {max_leader_epoch}",
            *lines,
            "",
        ]
    )
