"""The ``.cfg`` files of a protocol's module, at other constants than those that they are written for."""

from __future__ import annotations

import re

from fencepost.model.core.protocol import Protocol

from .test_modules import SPECS, camel


def cfg_of(protocol: Protocol, variant: str, constants: tuple[int, ...], *checked: str) -> str:
    """The variant's ``.cfg`` at other constants, checking only this."""
    name = f"{camel(protocol.name)}-{variant}.cfg"
    text = (SPECS / name).read_text(encoding="ascii").partition("INVARIANTS")[0]
    for constant, value in zip(map(camel, protocol.constants), constants, strict=True):
        replicas = f"{{{', '.join(map(str, range(value)))}}}"
        text = re.sub(rf" {constant} = .+", f" {constant} = {replicas if constant == 'Replicas' else value}", text)
    return "\n".join([text, *(f"INVARIANT {promise}" for promise in checked), ""])
