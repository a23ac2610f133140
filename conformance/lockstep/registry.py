"""Which adapters there are, and how ``--impl`` finds one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, cast

from ...model.core.errors import BadInput
from ...model.core.importing import module_named
from ...model.core.loading import module_of_file
from ...model.core.registry import REGISTRY
from ...model.core.user_error import is_user_error
from ..harness import find_harness
from .adapter import Adapter, MakeAdapter
from .model_adapter import ModelAdapter

_MODEL: Final = "model"
"""The model itself, for every protocol that has a binding."""
NEEDED: Final = ("name", "protocol", "variant", "faults", "reset", "apply", "observe", "inject", "close")
"""What an adapter has."""


def make_adapter(spec: str, protocol: str | None, variant: str | None) -> Adapter:
    """Make the adapter that ``--impl`` names. Raises BadInput where there is none, or where it is no adapter.

    ``protocol`` and ``variant``: those that the command line names, if any. The adapter's protocol must be that one.
    """
    make = named(spec, protocol) or placed(spec, _mend(protocol))
    made = called(make, spec, protocol, variant)
    missing = lacking(made, NEEDED)
    if missing:
        raise BadInput(
            f"what it makes has no {', '.join(missing)}", f"--impl {spec}", "see conformance/lockstep/adapter.py"
        )
    return cast("Adapter", made)


def called(make: Callable[[str | None, str | None], Any], spec: str, protocol: str | None, variant: str | None) -> Any:
    """What ``make`` makes; whatever it raises is BadInput. What has a protocol must have the one that is asked for."""
    try:
        made = make(protocol, variant)
    except BadInput:
        raise
    except BaseException as error:
        if not is_user_error(error):
            raise
        raise BadInput(
            f"making the adapter raised {type(error).__name__}: {error}",
            f"--impl {spec}",
            "it is called with the protocol and the variant, each a name or None",
        ) from error
    if protocol is not None and getattr(made, "protocol", protocol) != protocol:
        raise BadInput(f"it implements {made.protocol}, not {protocol}", f"--impl {spec}", "leave --protocol out")
    return made


def lacking(made: object, needed: Iterable[str]) -> list[str]:
    """Those of these attributes that something does not have."""
    return [name for name in needed if not hasattr(made, name)]


def named(name: str, protocol: str | None) -> MakeAdapter | None:
    """An adapter that the protocol's harness names; of the protocol of brokers' logs where none is named."""
    if name == _MODEL:
        return ModelAdapter
    harness = find_harness(protocol or REGISTRY.of_brokers_logs.name)
    return None if harness is None else harness.find_adapter(name)


def adapter_names(protocol: str | None) -> tuple[str, ...]:
    """The adapters of a protocol that have a name of their own, the default first.

    Where no protocol is named they are those of that of brokers' logs.
    """
    harness = find_harness(protocol or REGISTRY.of_brokers_logs.name)
    return (*(() if harness is None else harness.adapter_names), _MODEL)


def _mend(protocol: str | None) -> str:
    return f"name one of {', '.join(adapter_names(protocol))}, or module:attribute, or file.py:attribute"


def placed(spec: str, mend: str) -> Callable[[str | None, str | None], Any]:
    """What ``module:attribute`` or ``file.py:attribute`` names. Raises BadInput where that is nothing to call."""
    place, _, attribute = spec.rpartition(":")
    if not place:
        raise BadInput(f"there is no adapter {spec!r}", "--impl", mend)
    module = module_of_file(Path(place), "--impl") if place.endswith(".py") else module_named(place, "--impl")
    value: Any = module
    for part in attribute.split("."):
        value = getattr(value, part, None)
    if not callable(value):
        raise BadInput(f"{place} has nothing to call named {attribute!r}", f"--impl {spec}", mend)
    return cast("Callable[[str | None, str | None], Any]", value)
