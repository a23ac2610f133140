"""Which adapters there are, and how ``--impl`` finds one."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from ...model.core.errors import BadInput
from ...model.core.registry import REGISTRY
from ..harness import find_harness
from .adapter import Adapter, MakeAdapter
from .model_adapter import ModelAdapter

DEFAULT: Final = "memory"

_MODEL: Final = "model"
"""The model itself, for every protocol that has a binding."""
_NEEDED: Final = ("name", "protocol", "variant", "faults", "reset", "apply", "observe", "inject", "close")


def make_adapter(spec: str, protocol: str | None, variant: str | None) -> Adapter:
    """Make the adapter that ``--impl`` names. Raises BadInput where there is none, or where it is no adapter.

    ``protocol`` and ``variant``: those that the command line names, if any. The adapter's protocol must be that one.
    """
    make = _named(spec, protocol) or _found(spec, protocol)
    try:
        made = make(protocol, variant)
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(
            f"making the adapter raised {type(error).__name__}: {error}",
            f"--impl {spec}",
            "it is called with the protocol and the variant, each a name or None",
        ) from error
    missing = [name for name in _NEEDED if not hasattr(made, name)]
    if missing:
        raise BadInput(
            f"what it makes has no {', '.join(missing)}", f"--impl {spec}", "see conformance/lockstep/adapter.py"
        )
    if protocol is not None and made.protocol != protocol:
        raise BadInput(f"it implements {made.protocol}, not {protocol}", f"--impl {spec}", "leave --protocol out")
    return made


def _named(name: str, protocol: str | None) -> MakeAdapter | None:
    """An adapter that the protocol's harness names; of the protocol of brokers' logs where none is named."""
    if name == _MODEL:
        return ModelAdapter
    harness = find_harness(protocol or REGISTRY.of_brokers_logs.name)
    return None if harness is None else harness.find_adapter(name)


def adapter_names(protocol: str | None) -> tuple[str, ...]:
    """The adapters of a protocol that have a name of their own; of that of brokers' logs where none is named."""
    harness = find_harness(protocol or REGISTRY.of_brokers_logs.name)
    return (*(() if harness is None else harness.adapter_names), _MODEL)


def _mend(protocol: str | None) -> str:
    return f"name one of {', '.join(adapter_names(protocol))}, or module:attribute, or file.py:attribute"


def _found(spec: str, protocol: str | None) -> MakeAdapter:
    place, _, attribute = spec.rpartition(":")
    mend = _mend(protocol)
    if not place:
        raise BadInput(f"there is no adapter {spec!r}", "--impl", mend)
    module = _file(Path(place), spec, mend) if place.endswith(".py") else _module(place, spec, mend)
    value: Any = module
    for part in attribute.split("."):
        value = getattr(value, part, None)
    if not callable(value):
        raise BadInput(f"{place} has nothing to call named {attribute!r}", f"--impl {spec}", mend)
    return cast("MakeAdapter", value)


def _module(name: str, spec: str, mend: str) -> ModuleType:
    if "" not in sys.path:
        # A console script does not look in the folder that it is started in; whoever names a module there means it.
        sys.path.append("")
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise _refused(error, spec, mend) from error


def _file(path: Path, spec: str, mend: str) -> ModuleType:
    name = f"fencepost_adapter_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None or not path.is_file():
        raise BadInput(f"there is no file {path}", f"--impl {spec}", mend)
    module = importlib.util.module_from_spec(found)
    # Dataclasses look their own module up by name.
    sys.modules[name] = module
    try:
        found.loader.exec_module(module)
    except Exception as error:
        raise _refused(error, spec, mend) from error
    return module


def _refused(error: Exception, spec: str, mend: str) -> BadInput:
    what = " ".join(str(error).split())
    return BadInput(f"importing it raised {type(error).__name__}: {what}", f"--impl {spec}", mend)
