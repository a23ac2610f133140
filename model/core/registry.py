"""Which protocols there are: those whose packages are installed, and those that a command line names by their file.

An installed package registers a protocol by an entry point of the group ``fencepost.protocols``, whose value is
``module:name`` of a ``Registration``. Ours are registered like anybody's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from .errors import BadInput, FencepostError, ProtocolError
from .loading import FORMS, is_place, load
from .protocol import Protocol
from .registration import Registration
from .user_error import is_user_error

GROUP: Final = "fencepost.protocols"


class Registry(Mapping[str, Registration]):
    """The registrations by the protocol's name, in the order of the names. A package is imported when it is asked for.

    An entry point has the name of its protocol. Raises BadInput for a package that cannot be imported, or that
    registers something else; ProtocolError where two packages register one name.
    """

    def __init__(self, group: str = GROUP) -> None:
        self._group = group
        self._loaded: dict[str, Registration] = {}
        self._places: dict[str, tuple[str, str]] = {}

    @cached_property
    def _entries(self) -> dict[str, EntryPoint]:
        found: dict[str, EntryPoint] = {}
        for entry in sorted(entry_points(group=self._group), key=lambda each: each.name):
            other = found.get(entry.name)
            # An installed package may be seen twice, by two entries of the import path.
            if other is not None and other.value != entry.value:
                raise ProtocolError(
                    f"two packages register the protocol {entry.name}: {other.value} and {entry.value}; uninstall one"
                )
            found[entry.name] = entry
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._entries, *self._loaded}))

    def __len__(self) -> int:
        return len({*self._entries, *self._loaded})

    def __contains__(self, name: object) -> bool:
        return name in self._loaded or name in self._entries

    def __getitem__(self, name: str) -> Registration:
        if name not in self._loaded:
            self._loaded[name] = self._imported(self._entries[name])
        return self._loaded[name]

    def _imported(self, entry: EntryPoint) -> Registration:
        where = f"protocol {entry.name} ({entry.value})"
        try:
            found = entry.load()
        except FencepostError:
            raise
        except BaseException as error:
            if not is_user_error(error):
                raise
            what = " ".join(f"{type(error).__name__}: {error}".split())
            raise BadInput(f"importing it raised {what}", where, "mend or uninstall its package") from error
        if not isinstance(found, Registration):
            raise BadInput(f"it is a {type(found).__name__}, no Registration", where, "mend its entry point")
        if found.name != entry.name:
            raise BadInput(f"it is the protocol {found.name!r}", where, "give the entry point the protocol's name")
        return found

    def add(self, registration: Registration) -> None:
        """Take in a protocol that no installed package registers, for this process.

        Raises BadInput where another one has its name.
        """
        name = registration.name
        if name in self and self[name].protocol is not registration.protocol:
            raise BadInput(
                f"there is another protocol of the name {name!r}", registration.package, "give yours a name of its own"
            )
        self._loaded[name] = registration

    def named(self, name: str, where: str = "PROTOCOL") -> Registration:
        """The registration of a protocol by its name, or by its place (``loading``), which is then taken in.

        Raises BadInput for an unknown one; ``where`` is what named it.
        """
        if is_place(name):
            found = load(name, where)
            known, place = found.registration.name, (found.module, found.name)
            if self._places.get(known) == place:
                # The file may have been changed since it was named the last time, in the same process.
                self._loaded.pop(known, None)
            self.add(found.registration)
            self._places[known] = place
            return found.registration
        if name not in self:
            raise BadInput(f"there is no protocol {name!r}", where, f"choose one of {', '.join(self)}, or give {FORMS}")
        return self[name]

    def places(self) -> dict[str, tuple[str, str]]:
        """By protocol, the module and the name in it, of every one that this process has imported from elsewhere."""
        ours = __name__.partition(".")[0]
        entries = {name: self._entries[name] for name in self._loaded if name in self._entries}
        found = {name: (each.module, each.attr) for name, each in entries.items()} | self._places
        return {name: found[name] for name in sorted(found) if found[name][0].partition(".")[0] != ours}

    @property
    def of_brokers_logs(self) -> Registration:
        """The protocol that brokers' partition logs are states of. Raises BadInput where none says so."""
        for registration in self.values():
            if registration.brokers_logs:
                return registration
        raise BadInput(
            "no protocol is registered for brokers' logs", "PROTOCOL", "install a package that registers one"
        )


class _Protocols(Mapping[str, Protocol]):
    """The protocols alone."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def __iter__(self) -> Iterator[str]:
        return iter(self._registry)

    def __len__(self) -> int:
        return len(self._registry)

    def __contains__(self, name: object) -> bool:
        return name in self._registry

    def __getitem__(self, name: str) -> Protocol:
        return self._registry[name].protocol


REGISTRY: Final = Registry()
"""What is registered in this process."""

PROTOCOLS: Final[Mapping[str, Protocol]] = _Protocols(REGISTRY)
"""The protocols that a command or a trace may name."""
